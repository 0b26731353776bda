import type { HashKey } from '../../environment.ts'
import { IdSet } from '../../object/id-set.ts'
import { Uint32List } from '../bytes/growable.ts'

/** The bytes for so many ids, which have so many bytes themselves. */
export function neededBytes(count: number, idBytes: number): number {
  return IdSet.tablesBytes(count) + idBytes + Uint32Array.BYTES_PER_ELEMENT * count
}

/** Ids that are in no pack loaded so far, each with whether anything refers to it; others are only claimed. */
export class UnresolvedIds {
  readonly ids: IdSet
  readonly #isReferred = new Uint32List()
  /** How many are referred to. */
  referred = 0

  constructor(key: HashKey) {
    this.ids = new IdSet(undefined, undefined, key)
  }

  get memoryBytes(): number {
    return this.ids.memoryBytes + this.#isReferred.memoryBytes
  }

  /** The bytes that the ids need at least, whatever place there is for more. */
  get neededBytes(): number {
    return this.ids.size === 0 ? 0 : neededBytes(this.ids.size, this.ids.idBytes)
  }

  /** What to reserve for so many more ids, or for the share of them that comes before these bytes are needed. */
  roomFor(
    moreCount: number,
    moreIdBytes: number,
    bytesMax: number,
  ): { readonly count: number; readonly idBytes: number } {
    const [count, idBytes] = [this.ids.size + moreCount, this.ids.idBytes + moreIdBytes]
    const share = Math.min(1, bytesMax / neededBytes(count, idBytes))
    return { count: Math.ceil(share * count), idBytes: Math.ceil(share * idBytes) }
  }

  reserve(count: number, idBytes: number): void {
    this.ids.reserve(count, idBytes)
    this.#isReferred.reserve(count)
  }

  /** `hash` is that of the id under the key of these ids. */
  add(hash: number, source: Uint8Array, start: number, end: number, isReference: boolean): void {
    this.#note(this.ids.add(source, start, end, hash), isReference)
  }

  addFrom(other: UnresolvedIds, index: number): void {
    this.#note(this.ids.addFrom(other.ids, index), other.isReferred(index))
  }

  isReferred(index: number): boolean {
    return this.#isReferred.at(index) === 1
  }

  #note(index: number, isReference: boolean): void {
    const isNew = index === this.#isReferred.length
    if (isNew) this.#isReferred.push(isReference ? 1 : 0)
    if (!isReference || (!isNew && this.isReferred(index))) return
    this.#isReferred.set(index, 1)
    this.referred++
  }
}
