import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { MemoryLease } from '../../memory/memory-lease.ts'
import type { IdSet } from '../../object/id-set.ts'
import type { Fragment, HaveOutcome, Selection, SelectionReadOptions } from '../../object/selection.ts'
import { countObjects, packsBytes } from '../closure/closure.ts'
import { chosenSegments, firstIds, inBatches, type SelectionFacts } from '../closure/graph-selection.ts'
import type { SegmentBatches } from '../pack/segment-reader.ts'
import { type DeltaParts, DeltaWalk, type VersionDifference } from './delta-walk.ts'

/**
 * The objects of a newer version that a client lacks, as deltas (`<id> TAB [base, ...] LF`) on objects of an older
 * version that it has, if these are shorter. Objects that the walk through both versions does not meet are sent whole.
 * There is no plan: such a response is for one client, and short.
 */
export class DeltaSelection implements Selection {
  readonly objects: number
  readonly missing: number
  readonly closureDigest?: string
  readonly have?: readonly HaveOutcome[]
  readonly heldBytes: number
  readonly #parts: DeltaParts
  readonly #difference: VersionDifference
  readonly #missing: IdSet
  readonly #buffers: AnswerBuffers
  readonly #memory: MemoryLease | undefined

  constructor(parts: DeltaParts, difference: VersionDifference, facts: SelectionFacts, memory?: MemoryLease) {
    this.#memory = memory
    this.objects = countObjects(difference.packs)
    this.missing = facts.missing.size
    // The walk removes the objects that it meets from a copy.
    this.heldBytes = 2 * packsBytes(difference.packs) + facts.missing.memoryBytes
    this.closureDigest = facts.closureDigest
    this.have = facts.have
    this.#parts = parts
    this.#difference = difference
    this.#missing = facts.missing
    this.#buffers = parts.reader.memory.open()
  }

  get roomBytes(): number {
    return this.#buffers.roomBytes
  }

  missingIds(limit: number): Promise<readonly string[]> {
    return Promise.resolve(firstIds(this.#missing, limit))
  }

  lines(options: SelectionReadOptions): AsyncIterable<Uint8Array> {
    return this.#parts.catalog.reading(this.#difference.project, this.#lines(options))
  }

  async *#lines({ signal }: SelectionReadOptions): AsyncGenerator<Uint8Array> {
    const walk = this.#walk()
    yield* walk.lines(signal)
    yield* this.#parts.reader.lines(this.#segmentsLeft(walk), { signal, buffers: this.#buffers })
  }

  fragments(options: SelectionReadOptions): AsyncIterable<readonly Fragment[]> {
    return this.#parts.catalog.reading(this.#difference.project, this.#fragments(options))
  }

  async *#fragments({ signal }: SelectionReadOptions): AsyncGenerator<readonly Fragment[]> {
    const walk = this.#walk()
    for await (const lines of walk.lines(signal)) yield [{ lines }]
    yield* this.#parts.reader.fragments(this.#segmentsLeft(walk), { signal, buffers: this.#buffers })
  }

  release(): void {
    this.#buffers.end()
  }

  #walk(): DeltaWalk {
    return new DeltaWalk(this.#parts, this.#difference, { buffers: this.#buffers, memory: this.#memory })
  }

  #segmentsLeft(walk: DeltaWalk): SegmentBatches {
    return inBatches(chosenSegments(this.#parts.catalog, this.#difference.project, { packs: walk.left() }))
  }
}
