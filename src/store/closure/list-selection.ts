import { Yielder } from '../../async/yielder.ts'
import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { MemoryLease } from '../../memory/memory-lease.ts'
import type { IdSet } from '../../object/id-set.ts'
import type { Fragment, ReusedMemory, Selection, SelectionReadOptions } from '../../object/selection.ts'
import type { Segment } from '../pack/segment.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { firstIds } from './graph-selection.ts'
import type { ListedPack } from './listed-pack.ts'

/** Segments that an answer holds at a time. */
const SEGMENTS_AT_ONCE = 64
/** Packs whose records are looked up ahead. */
const PACKS_AT_ONCE = 16

export interface ListParts {
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
}

/** The objects of a list by pack, and what is known of the rest. */
export interface ListedObjects {
  readonly project: ProjectView
  readonly packs: ReadonlyMap<number, ListedPack>
  /** Beside that of the packs. */
  readonly memoryBytes: number
  /** The first ids that are not held. */
  readonly missing: IdSet
  readonly missingCount: number
  readonly textBytes: number
}

/**
 * Objects of a list, read by the places in their records: the blocks that hold them and nothing else. Only where a list
 * wants much of a pack are its tables read.
 */
export class ListSelection implements Selection {
  readonly objects: number
  readonly missing: number
  readonly textBytes: number
  readonly #heldBytes: number
  readonly #parts: ListParts
  readonly #listed: ListedObjects
  readonly #buffers: AnswerBuffers

  constructor(parts: ListParts, listed: ListedObjects) {
    let [objects, heldBytes] = [0, listed.memoryBytes]
    for (const { count, memoryBytes } of listed.packs.values()) {
      objects += count
      heldBytes += memoryBytes
    }
    this.objects = objects
    this.#heldBytes = heldBytes
    this.missing = listed.missingCount
    this.textBytes = listed.textBytes
    this.#parts = parts
    this.#listed = listed
    this.#buffers = parts.reader.memory.open()
  }

  get roomBytes(): number {
    return this.#buffers.roomBytes
  }

  get memory(): ReusedMemory {
    return this.#parts.reader.memory.bufferPool
  }

  lease(memory: MemoryLease): Promise<void> {
    return this.#buffers.lease(memory, this.#heldBytes)
  }

  missingIds(limit: number): Promise<readonly string[]> {
    return Promise.resolve(firstIds(this.#listed.missing, limit))
  }

  lines({ signal }: SelectionReadOptions): AsyncIterable<Uint8Array> {
    const { catalog, reader } = this.#parts
    const lines = reader.lines(this.#segments(), { signal, buffers: this.#buffers })
    return catalog.reading(this.#listed.project, lines)
  }

  fragments({ signal }: SelectionReadOptions): AsyncIterable<readonly Fragment[]> {
    const { catalog, reader } = this.#parts
    const fragments = reader.fragments(this.#segments(), { signal, buffers: this.#buffers })
    return catalog.reading(this.#listed.project, fragments)
  }

  release(): void {
    this.#buffers.end()
  }

  async *#segments(): AsyncGenerator<readonly Segment[]> {
    const { catalog, reader } = this.#parts
    const { project, packs } = this.#listed
    const yielder = new Yielder(reader.environment)
    const sequences = [...packs.keys()].sort((a, b) => a - b)
    let batch: Segment[] = []
    for (let first = 0; first < sequences.length; first += PACKS_AT_ONCE) {
      const some = sequences.slice(first, first + PACKS_AT_ONCE)
      const found = await Promise.all(some.map((sequence) => catalog.packOfAnyLayout(project, sequence)))
      for (const pack of found) {
        const listed = packs.get(pack.sequence) as ListedPack
        for (const segment of await listed.segments(catalog, pack)) {
          const due = yielder.due()
          if (due !== undefined) await due
          if (batch.push(segment) < SEGMENTS_AT_ONCE) continue
          yield batch
          batch = []
        }
      }
    }
    if (batch.length > 0) yield batch
  }
}
