import type { Yielder } from '../../async/yielder.ts'
import type { HashKey } from '../../environment.ts'
import { HEX_ID_BYTES, NIBBLES, NOT_HEX, PACKED_ID_BYTES } from '../../object/hex-id.ts'
import { hashBytes, hashPackedId } from '../../object/id-hash.ts'
import type { ByteTable } from '../pack/pack-format.ts'
import { packedIds } from '../pack/stored-ids.ts'
import type { IndexPieces } from './index-pieces.ts'

/** Bytes that are copied between two looks at the clock. */
const STRETCH_BYTES = 65_536

/** A copy of many ids in little memory: half of it if all are 32 hex digits, as most clients make them. */
export class PackedIds {
  readonly count: number
  readonly #bytes: Uint8Array
  /** Absent if all ids are packed to 16 bytes. */
  readonly #ends: Uint32Array | undefined

  private constructor(count: number, bytes: Uint8Array, ends: Uint32Array | undefined) {
    this.count = count
    this.#bytes = bytes
    this.#ends = ends
  }

  /** A copy in memory of `pieces`; `undefined` if there is none. */
  static async of(ids: ByteTable, pieces: IndexPieces, yielder: Yielder): Promise<PackedIds | undefined> {
    const copy = pieces.reserve(ids.packed?.length ?? ids.ends.byteLength + ids.bytes.length)
    if (copy === undefined) return undefined
    const count = PackedIds.countOf(ids)
    if (ids.packed !== undefined) copy.set(ids.packed)
    const packed = ids.packed === undefined ? await packedIds(ids, yielder, copy) : copy
    pieces.keep((packed ?? copy).length)
    if (packed !== undefined) return new PackedIds(count, packed, undefined)
    const ends = new Uint32Array(copy.buffer, copy.byteOffset, count)
    ends.set(ids.ends)
    return new PackedIds(count, await copied(ids.bytes, copy.subarray(ends.byteLength), yielder), ends)
  }

  /** Without making digits of ids that are packed. */
  static countOf(ids: ByteTable): number {
    return ids.packed === undefined ? ids.ends.length : ids.packed.length / PACKED_ID_BYTES
  }

  /** Whether id `index` is these bytes of `source`. */
  equals(index: number, source: Uint8Array, start: number, end: number): boolean {
    if (this.#ends === undefined) return this.#equalsHex(index, source, start, end)
    const from = index === 0 ? 0 : this.#ends[index - 1]
    if (this.#ends[index] - from !== end - start) return false
    for (let i = from, j = start; j < end; i++, j++) if (this.#bytes[i] !== source[j]) return false
    return true
  }

  /** The hash of id `index`. */
  hashAt(index: number, key: HashKey): number {
    if (this.#ends !== undefined)
      return hashBytes(this.#bytes, index === 0 ? 0 : this.#ends[index - 1], this.#ends[index], key)
    return hashPackedId(this.#bytes, index * PACKED_ID_BYTES, key)
  }

  #equalsHex(index: number, source: Uint8Array, start: number, end: number): boolean {
    if (end - start !== HEX_ID_BYTES) return false
    let at = index * PACKED_ID_BYTES
    for (let i = start; i < end; i += 2) {
      const high = NIBBLES[source[i]]
      const low = NIBBLES[source[i + 1]]
      if (high === NOT_HEX || low === NOT_HEX || this.#bytes[at++] !== ((high << 4) | low)) return false
    }
    return true
  }
}

async function copied(bytes: Uint8Array, copy: Uint8Array, yielder: Yielder): Promise<Uint8Array> {
  for (let start = 0; start < bytes.length; start += STRETCH_BYTES) {
    copy.set(bytes.subarray(start, start + STRETCH_BYTES), start)
    await yielder.due()
  }
  return copy
}
