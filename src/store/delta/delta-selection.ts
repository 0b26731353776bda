import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { MemoryLease } from '../../memory/memory-lease.ts'
import type { IdSet } from '../../object/id-set.ts'
import type { Fragment, HaveOutcome, Selection, SelectionReadOptions } from '../../object/selection.ts'
import { countObjects, packsBytes } from '../closure/closure.ts'
import { chosenSegments, firstIds, inBatches, type SelectionFacts } from '../closure/graph-selection.ts'
import type { SegmentBatches } from '../pack/spans.ts'
import type { DeltaCache } from './delta-cache.ts'
import { type DeltaParts, DeltaWalk, type VersionDifference } from './delta-walk.ts'

/** Where the answer is kept, and the name of everything that it depends on. */
export interface DeltaKeeping {
  readonly cache: DeltaCache
  readonly key: string
}

/** Fragments that are handed on together. */
const FRAGMENTS_AT_ONCE = 16

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
  readonly #heldBytes: number
  readonly #parts: DeltaParts
  readonly #difference: VersionDifference
  readonly #missing: IdSet
  readonly #buffers: AnswerBuffers
  readonly #memory: MemoryLease | undefined
  readonly #keeping: DeltaKeeping | undefined

  constructor(
    parts: DeltaParts,
    difference: VersionDifference,
    facts: SelectionFacts,
    { memory, keeping }: { readonly memory?: MemoryLease | undefined; readonly keeping?: DeltaKeeping | undefined },
  ) {
    this.#memory = memory
    this.#keeping = keeping
    this.objects = countObjects(difference.packs)
    this.missing = facts.missing.size
    // The walk removes the objects that it meets from a copy.
    this.#heldBytes = 2 * packsBytes(difference.packs) + facts.missing.memoryBytes
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

  lease(memory: MemoryLease): Promise<void> {
    return this.#buffers.lease(memory, this.#heldBytes)
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
    const walk = this.#walk()
    const fragments = this.#parts.catalog.reading(this.#difference.project, this.#fragments(walk, options))
    if (this.#keeping === undefined || this.#memory === undefined) return fragments
    const { cache, key } = this.#keeping
    const kept = cache.find(key)
    return kept === undefined
      ? cache.keeping(key, fragments, this.#memory, () => !walk.wasShortOfMemory)
      : inParts(kept)
  }

  async *#fragments(walk: DeltaWalk, { signal }: SelectionReadOptions): AsyncGenerator<readonly Fragment[]> {
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

async function* inParts(fragments: readonly Fragment[]): AsyncGenerator<readonly Fragment[]> {
  for (let at = 0; at < fragments.length; at += FRAGMENTS_AT_ONCE) yield fragments.slice(at, at + FRAGMENTS_AT_ONCE)
}
