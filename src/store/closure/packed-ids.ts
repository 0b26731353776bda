import type { ByteTable } from '../pack/pack-format.ts'

const HEX_ID_BYTES = 32
const NOT_HEX = 0xff

/** The value of each lower-case hex digit. */
const NIBBLES: Uint8Array = new Uint8Array(256).fill(NOT_HEX)
for (let value = 0; value < 16; value++) NIBBLES['0123456789abcdef'.charCodeAt(value)] = value

/** A copy of many ids in little memory: half of it where all are 32 hex digits, as most clients make them. */
export class PackedIds {
  readonly count: number
  readonly #bytes: Uint8Array
  /** Absent where all ids are packed to 16 bytes. */
  readonly #ends: Uint32Array | undefined

  constructor(ids: ByteTable) {
    this.count = ids.ends.length
    const packed = packedHex(ids)
    this.#bytes = packed ?? Uint8Array.from(ids.bytes)
    this.#ends = packed === undefined ? Uint32Array.from(ids.ends) : undefined
  }

  get memoryBytes(): number {
    return this.#bytes.byteLength + (this.#ends?.byteLength ?? 0)
  }

  equals(index: number, id: Uint8Array): boolean {
    return this.#ends === undefined
      ? this.#equalsHex(index, id)
      : this.#equalsBytes(index === 0 ? 0 : this.#ends[index - 1], this.#ends[index], id)
  }

  #equalsHex(index: number, id: Uint8Array): boolean {
    if (id.length !== HEX_ID_BYTES) return false
    const start = index * (HEX_ID_BYTES / 2)
    for (let i = 0; i < HEX_ID_BYTES; i += 2) {
      const high = NIBBLES[id[i]]
      const low = NIBBLES[id[i + 1]]
      if (high === NOT_HEX || low === NOT_HEX || this.#bytes[start + (i >> 1)] !== ((high << 4) | low)) return false
    }
    return true
  }

  #equalsBytes(start: number, end: number, id: Uint8Array): boolean {
    if (end - start !== id.length) return false
    for (let i = 0; i < id.length; i++) if (this.#bytes[start + i] !== id[i]) return false
    return true
  }
}

function packedHex({ ends, bytes }: ByteTable): Uint8Array | undefined {
  if (bytes.length !== ends.length * HEX_ID_BYTES) return undefined
  for (let i = 0; i < ends.length; i++) if (ends[i] !== (i + 1) * HEX_ID_BYTES) return undefined
  const packed = new Uint8Array(bytes.length >> 1)
  for (let i = 0; i < bytes.length; i += 2) {
    const high = NIBBLES[bytes[i]]
    const low = NIBBLES[bytes[i + 1]]
    if (high === NOT_HEX || low === NOT_HEX) return undefined
    packed[i >> 1] = (high << 4) | low
  }
  return packed
}
