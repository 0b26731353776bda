import { type PackTables, targetId } from '../pack/pack-format.ts'

/** How far the two lists are searched for their next common item. */
const LOOK_AHEAD = 16

/** The ids that an object refers to, in the order of its text. */
export class ChildIds {
  readonly length: number
  readonly #tables: PackTables
  readonly #start: number

  constructor(tables: PackTables, ordinal: number) {
    const { ends } = tables.references
    this.#tables = tables
    this.#start = ordinal === 0 ? 0 : ends[ordinal - 1]
    this.length = ends[ordinal] - this.#start
  }

  /** A view. */
  idAt(index: number): Uint8Array {
    return targetId(this.#tables, this.#targetAt(index))
  }

  /** Its number in the same pack, or -1 if the pack does not hold it. */
  ordinalAt(index: number): number {
    const target = this.#targetAt(index)
    return target < this.#tables.objects ? target : -1
  }

  #targetAt(index: number): number {
    return this.#tables.references.targets[this.#start + index]
  }
}

/** Places of the two lists that are looked at between two breaths. */
const PLACES_PER_BREATH = 512

/**
 * Pairs each changed child of the newer object with a child of the older one: those between the same neighbours, in
 * their order. This is a guess, which can make nothing wrong. Yields their places in both lists. Linear in the number of
 * children, of which there can be hundreds of thousands: it yields `undefined` every few milliseconds, so that others can
 * run.
 */
export function* changedChildren(
  older: ChildIds,
  newer: ChildIds,
): Generator<readonly [newerIndex: number, olderIndex: number] | undefined> {
  let i = 0
  let j = 0
  for (let places = 1; i < older.length && j < newer.length; places++) {
    if (places % PLACES_PER_BREATH === 0) yield undefined
    const { replaced, taken, put } = nextMeeting(older, i, newer, j)
    for (let k = 0; k < replaced; k++) yield [j + k, i + k]
    i += replaced + taken
    j += replaced + put
    if (replaced + taken + put > 0) continue
    i++
    j++
  }
}

/** The items before the next place where the lists agree. */
function nextMeeting(
  older: ChildIds,
  i: number,
  newer: ChildIds,
  j: number,
): { readonly replaced: number; readonly taken: number; readonly put: number } {
  for (let k = 0; k <= LOOK_AHEAD; k++) {
    if (isSame(older, i + k, newer, j + k)) return { replaced: k, taken: 0, put: 0 }
    if (isSame(older, i + k, newer, j)) return { replaced: 0, taken: k, put: 0 }
    if (isSame(older, i, newer, j + k)) return { replaced: 0, taken: 0, put: k }
  }
  return { replaced: 1, taken: 0, put: 0 }
}

/** The ends of both lists count as the same. */
function isSame(older: ChildIds, i: number, newer: ChildIds, j: number): boolean {
  if (i >= older.length || j >= newer.length) return i === older.length && j === newer.length
  return Buffer.compare(older.idAt(i), newer.idAt(j)) === 0
}
