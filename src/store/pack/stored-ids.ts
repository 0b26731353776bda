import type { Yielder } from '../../async/yielder.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import { DIGIT_PAIRS, HEX_ID_BYTES, packHexId, PACKED_ID_BYTES } from '../../object/hex-id.ts'

/** Ids that are packed between two looks at the clock. */
const STRETCH_IDS = 2_048
/** What an id takes as an entry of a table: its digits, and their end. */
export const UNPACKED_BYTES: number = HEX_ID_BYTES + Uint32Array.BYTES_PER_ELEMENT

/** Ids one after the other: id i ends at `ends[i]`. */
interface IdTable {
  readonly ends: Uint32Array
  readonly bytes: Uint8Array
}

/**
 * 16 bytes for each id; `undefined` unless there are some, and each has 32 lower-case hex digits. `into`, if it is
 * given, receives them, and is overwritten in any case.
 */
export async function packedIds(
  { ends, bytes }: IdTable,
  yielder: Yielder,
  into?: Uint8Array,
): Promise<Uint8Array | undefined> {
  if (ends.length === 0 || bytes.length !== ends.length * HEX_ID_BYTES) return undefined
  for (let i = 0; i < ends.length; i++) if (ends[i] !== (i + 1) * HEX_ID_BYTES) return undefined
  const packedBytes = ends.length * PACKED_ID_BYTES
  const packed = into?.subarray(0, packedBytes) ?? new Uint8Array(packedBytes)
  for (let i = 0; i < ends.length; i++) {
    if (!packHexId(bytes, i * HEX_ID_BYTES, packed, i * PACKED_ID_BYTES)) return undefined
    if (i % STRETCH_IDS === STRETCH_IDS - 1) await yielder.due()
  }
  return packed
}

/**
 * Ids that are stored in 16 bytes each. Whoever only follows references needs no ids, so they are unpacked when they are
 * first asked for, into memory of its own that `buffers` lends.
 */
export class StoredIds implements IdTable {
  readonly packed: Uint8Array
  readonly #buffers: BufferPool | undefined
  #memory: Uint8Array | undefined
  #unpacked: IdTable | undefined

  constructor(packed: Uint8Array, buffers?: BufferPool) {
    this.packed = packed
    this.#buffers = buffers
  }

  get ends(): Uint32Array {
    return (this.#unpacked ?? this.#unpack()).ends
  }

  get bytes(): Uint8Array {
    return (this.#unpacked ?? this.#unpack()).bytes
  }

  /** Gives back the memory of the ids: there must be no view of them any more. */
  giveBack(): void {
    if (this.#memory !== undefined) this.#buffers?.giveBack(this.#memory)
    this.#memory = undefined
  }

  #unpack(): IdTable {
    const { packed } = this
    const count = packed.length / PACKED_ID_BYTES
    const memoryBytes = count * UNPACKED_BYTES
    const { buffer, byteOffset } = (this.#memory =
      this.#buffers?.takeAny(memoryBytes) ?? Buffer.allocUnsafeSlow(memoryBytes))
    const ends = new Uint32Array(buffer, byteOffset, count)
    for (let i = 0; i < count; i++) ends[i] = (i + 1) * HEX_ID_BYTES
    const bytes = new Uint8Array(buffer, byteOffset + ends.byteLength, count * HEX_ID_BYTES)
    const pairs = new Uint16Array(buffer, bytes.byteOffset, packed.length)
    for (let i = 0; i < packed.length; i++) pairs[i] = DIGIT_PAIRS[packed[i]]
    this.#unpacked = { ends, bytes }
    return this.#unpacked
  }
}
