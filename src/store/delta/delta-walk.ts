import type { Environment } from '../../environment.ts'
import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { MemoryLease } from '../../memory/memory-lease.ts'
import { DeltaEncoder } from '../../delta/encode.ts'
import type { RecordStore } from '../../storage/backend.ts'
import type { Closure, PackSelection } from '../closure/closure.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { LineReader } from '../pack/line-reader.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
import { locate } from '../records/locator.ts'
import type { ObjectPlace } from '../records/object-record.ts'
import { changedChildren, ChildIds } from './alignment.ts'
import { idOf, lineBytesOf, type PlacedObject, placeObject, readTexts } from './object-texts.ts'

/** Pairs that are looked up and read together: neighbours lie in the same blocks, which are then read once. */
const PAIRS_AT_ONCE = 512
/** Waiting pairs; objects beyond this are sent whole. */
const PAIRS_MAX = 65_536
/** The memory of a waiting pair, and the number of pairs for which memory is leased at a time. */
const PAIR_BYTES = 400
const PAIRS_PER_HOLD = 512
/** Texts that are held at a time, if there is room; one pair may be larger. */
const TEXT_BYTES_MAX = 4_194_304
const SLICE_BYTES = 65_536
const SLICE_MS = 5
const TAB = Buffer.from('\t')
const LF = Buffer.from('\n')

export interface DeltaParts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly lines: LineReader
  readonly environment: Environment
}

/** The objects of a newer version to send, and the roots of it and of the client's older version. */
export interface VersionDifference {
  readonly project: ProjectView
  readonly packs: readonly PackSelection[]
  readonly newer: Closure['root']
  readonly older: Closure['root']
  /** What the client has: an object may have come to the project after the client took its version. */
  readonly held: readonly PackSelection[]
}

/** Counts the memory of a walk. */
export interface DeltaHolding {
  readonly buffers: AnswerBuffers
  /** Absent for calls in process without a lease. */
  readonly memory?: MemoryLease | undefined
}

/** An object by its place, or by its id if it lies in another pack than the one that refers to it. */
type Child = ObjectPlace | Uint8Array

/** An object of the newer version, and the one of the older that it may have come from. */
interface ChildPair {
  readonly newer: Child
  readonly older: Child
}

interface Pair {
  readonly newer: PlacedObject
  readonly older: PlacedObject
}

/**
 * Follows two versions from their roots down: if an object changed, its children are compared, and the changed ones are
 * examined in turn.
 */
export class DeltaWalk {
  readonly #parts: DeltaParts
  readonly #difference: VersionDifference
  readonly #buffers: AnswerBuffers
  /** The objects to send, without those that were sent as one of a pair. */
  readonly #left: ReadonlyMap<number, PackSelection>
  readonly #held: ReadonlyMap<number, Bitmap>
  readonly #waiting: ChildPair[] = []
  readonly #memory: MemoryLease | undefined
  /** Pairs for which memory is leased. */
  #pairsHeld = 0
  #sliceEndsAtMs = 0
  #wasShortOfMemory = false

  constructor(parts: DeltaParts, difference: VersionDifference, holding: DeltaHolding) {
    this.#parts = parts
    this.#difference = difference
    this.#buffers = holding.buffers
    this.#memory = holding.memory
    this.#held = new Map(difference.held.map(({ sequence, wanted }) => [sequence, wanted]))
    this.#left = new Map(
      difference.packs.map((pack) => [
        pack.sequence,
        { ...pack, wanted: new Bitmap(Uint8Array.from(pack.wanted.bytes), pack.wanted.count) },
      ]),
    )
  }

  /** Whether objects are sent whole that deltas might have served, because there was no memory to find that out. */
  get wasShortOfMemory(): boolean {
    return this.#wasShortOfMemory
  }

  /** The objects that were not met so far. */
  left(): readonly PackSelection[] {
    return [...this.#left.values()].filter(({ wanted }) => wanted.count > 0)
  }

  /** The lines of the objects that are met, the root first: a delta if it is shorter. */
  async *lines(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { newer, older } = this.#difference
    this.#left.get(newer.sequence)?.wanted.delete(newer.ordinal)
    const roots = { newer: await this.#place(newer), older: await this.#place(older) }
    for (let pairs: readonly Pair[] = [roots]; pairs.length > 0; pairs = await this.#nextPairs(signal)) {
      for (const pair of pairs) await this.#addChildren(pair, signal)
      for (const group of this.#inGroups(pairs)) yield await this.#encodeAll(group, signal)
    }
  }

  /** Pairs whose newer object is still to be sent; these count as sent from now on. */
  async #nextPairs(signal: AbortSignal): Promise<readonly Pair[]> {
    const pairs: Pair[] = []
    while (this.#waiting.length > 0 && pairs.length === 0) {
      for (const { newer, older } of await this.#placesOf(this.#waiting.splice(-PAIRS_AT_ONCE), signal)) {
        if (newer === undefined || older === undefined) continue
        if (this.#held.get(older.sequence)?.has(older.ordinal) !== true) continue
        const wanted = this.#left.get(newer.sequence)?.wanted
        if (wanted?.has(newer.ordinal) !== true) continue
        wanted.delete(newer.ordinal)
        pairs.push({ newer: await this.#place(newer), older: await this.#place(older) })
      }
      await this.#breathe(signal)
    }
    return pairs
  }

  /** Where both objects of each pair lie; `undefined` if one is not held. */
  async #placesOf(
    pairs: readonly ChildPair[],
    signal: AbortSignal,
  ): Promise<readonly { readonly newer: ObjectPlace | undefined; readonly older: ObjectPlace | undefined }[]> {
    const ids = pairs.flatMap(({ newer, older }) => [newer, older]).filter((child) => child instanceof Uint8Array)
    const found = await locate(this.#parts.records, this.#difference.project, ids, signal)
    let next = 0
    const placeOf = (child: Child): ObjectPlace | undefined => (child instanceof Uint8Array ? found[next++] : child)
    return pairs.map(({ newer, older }) => ({ newer: placeOf(newer), older: placeOf(older) }))
  }

  /** Pairs whose texts may be in memory at the same time. */
  *#inGroups(pairs: readonly Pair[]): Generator<readonly Pair[]> {
    let group: Pair[] = []
    let bytes = 0
    for (const pair of pairs) {
      const pairBytes = lineBytesOf(pair.newer) + lineBytesOf(pair.older)
      if (group.length > 0 && bytes + pairBytes > Math.min(TEXT_BYTES_MAX, this.#buffers.roomBytes)) {
        yield group
        group = []
        bytes = 0
      }
      group.push(pair)
      bytes += pairBytes
    }
    if (group.length > 0) yield group
  }

  async #encodeAll(pairs: readonly Pair[], signal: AbortSignal): Promise<Uint8Array> {
    const buffers = this.#buffers
    const bytes = pairs.reduce((sum, { newer, older }) => sum + lineBytesOf(newer) + lineBytesOf(older), 0)
    buffers.hold(bytes)
    const texts = await readTexts(
      this.#parts,
      pairs.flatMap(({ newer, older }) => [newer, older]),
      { signal, buffers },
    )
    const lines: Uint8Array[] = []
    for (const { newer, older } of pairs) {
      const id = asBuffer(idOf(newer))
      const baseId = asBuffer(idOf(older))
      const text = texts.get(id.toString('latin1')) as Uint8Array
      const encoder = new DeltaEncoder(baseId.toString(), texts.get(baseId.toString('latin1')) as Uint8Array, text)
      while (!encoder.advance(SLICE_BYTES)) await this.#breathe(signal)
      await this.#breathe(signal)
      const delta = encoder.take(newer.tables.textCrc32[newer.ordinal])
      lines.push(id, TAB, delta === undefined ? text : Buffer.from(delta), LF)
    }
    const joined = Buffer.concat(lines)
    buffers.hold(joined.length - bytes)
    buffers.passOn(joined.length)
    return joined
  }

  /** Whether another pair may wait. An object without room is sent whole. */
  #hasRoom(): boolean {
    if (this.#waiting.length < this.#pairsHeld) return true
    if (this.#waiting.length >= PAIRS_MAX) return false
    if (this.#memory?.tryHold(PAIRS_PER_HOLD * PAIR_BYTES) === false) {
      this.#wasShortOfMemory = true
      return false
    }
    this.#pairsHeld += PAIRS_PER_HOLD
    return true
  }

  async #breathe(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#parts.environment.monotonicMs() < this.#sliceEndsAtMs) return
    await this.#parts.environment.workTurn()
    this.#sliceEndsAtMs = this.#parts.environment.monotonicMs() + SLICE_MS
  }

  #place(location: ObjectPlace): Promise<PlacedObject> {
    return placeObject(this.#parts.catalog, this.#difference.project, location)
  }

  async #addChildren({ newer, older }: Pair, signal: AbortSignal): Promise<void> {
    const olderIds = new ChildIds(older.tables, older.ordinal)
    const newerIds = new ChildIds(newer.tables, newer.ordinal)
    for (const changed of changedChildren(olderIds, newerIds)) {
      if (!this.#hasRoom()) return
      if (changed === undefined) {
        await this.#breathe(signal)
        continue
      }
      const [newerIndex, olderIndex] = changed
      this.#waiting.push({
        newer: childAt(newer, newerIds, newerIndex, this.#left.get(newer.pack.sequence)?.wanted),
        older: childAt(older, olderIds, olderIndex, this.#held.get(older.pack.sequence)),
      })
    }
  }
}

/** By its place if the pack of its parent holds it, as far as the version (`versionHere`) has it there. */
function childAt({ pack }: PlacedObject, ids: ChildIds, index: number, versionHere: Bitmap | undefined): Child {
  const ordinal = ids.ordinalAt(index)
  if (ordinal !== -1 && versionHere?.has(ordinal) === true) return { sequence: pack.sequence, ordinal }
  return Uint8Array.from(ids.idAt(index))
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
