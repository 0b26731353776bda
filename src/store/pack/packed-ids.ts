import type { Yielder } from '../../async/yielder.ts'
import { HEX_ID_BYTES, packHexId, PACKED_ID_BYTES } from '../../object/hex-id.ts'

/** Ids that are packed between two looks at the clock. */
const STRETCH_IDS = 2_048
/** What 16 packed bytes take more as an entry of a table: their other digits, and their end. */
export const UNPACKED_MORE_BYTES: number = HEX_ID_BYTES - PACKED_ID_BYTES + Uint32Array.BYTES_PER_ELEMENT

/** The two digits of each byte, one behind the other in memory. */
const DIGIT_PAIRS = new Uint16Array(
  Uint8Array.from(Buffer.from(Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0')).join('')))
    .buffer,
)

/** Ids one after the other: id i ends at `ends[i]`. */
interface IdTable {
  readonly ends: Uint32Array
  readonly bytes: Uint8Array
}

/** 16 bytes for each id; `undefined` unless each has 32 lower-case hex digits. */
export async function packedIds({ ends, bytes }: IdTable, yielder: Yielder): Promise<Uint8Array | undefined> {
  if (bytes.length !== ends.length * HEX_ID_BYTES) return undefined
  for (let i = 0; i < ends.length; i++) if (ends[i] !== (i + 1) * HEX_ID_BYTES) return undefined
  const packed = new Uint8Array(ends.length * PACKED_ID_BYTES)
  for (let i = 0; i < ends.length; i++) {
    if (!packHexId(bytes, i * HEX_ID_BYTES, packed, i * PACKED_ID_BYTES)) return undefined
    if (i % STRETCH_IDS === STRETCH_IDS - 1) await yielder.due()
  }
  return packed
}

/**
 * Ids that are stored in 16 bytes each. Whoever only follows references needs no ids, so they are unpacked when they are
 * first asked for: where they are, from the last one to the first. The packed ones must begin at a multiple of four
 * bytes in their buffer, with `UNPACKED_MORE_BYTES` more behind them for each.
 */
export class StoredIds implements IdTable {
  #packed: Uint8Array | undefined
  #unpacked: IdTable | undefined

  constructor(packed: Uint8Array) {
    this.#packed = packed
  }

  /** `undefined` once they are unpacked. */
  get packed(): Uint8Array | undefined {
    return this.#packed
  }

  get ends(): Uint32Array {
    return (this.#unpacked ?? this.#unpack()).ends
  }

  get bytes(): Uint8Array {
    return (this.#unpacked ?? this.#unpack()).bytes
  }

  #unpack(): IdTable {
    const { buffer, byteOffset, length } = this.#packed as Uint8Array
    const packed = new Uint8Array(buffer, byteOffset, length)
    this.#packed = undefined
    const ends = new Uint32Array(buffer, byteOffset, length / PACKED_ID_BYTES)
    const bytes = new Uint8Array(buffer, byteOffset + ends.byteLength, ends.length * HEX_ID_BYTES)
    const pairs = new Uint16Array(buffer, bytes.byteOffset, length)
    // A pair is never written over bytes that are still to be read.
    for (let i = length - 1; i >= 0; i--) pairs[i] = DIGIT_PAIRS[packed[i]]
    for (let i = 0; i < ends.length; i++) ends[i] = (i + 1) * HEX_ID_BYTES
    this.#unpacked = { ends, bytes }
    return this.#unpacked
  }
}
