import { StowageError } from '../../errors.ts'
import { MAPPED_BYTES_MIN, mappedBuffer } from '../../memory/mapped-buffer.ts'

/** For 53 bits. */
const VARINT_BYTES_MAX = 8

/** Writes little-endian fields one after the other into a buffer that grows. */
export class ByteWriter {
  #buffer: Buffer
  #length = 0

  constructor(capacity = 256) {
    this.#buffer = allocated(capacity)
  }

  u8(value: number): this {
    this.#reserve(1)
    this.#length = this.#buffer.writeUInt8(value, this.#length)
    return this
  }

  u16(value: number): this {
    this.#reserve(2)
    this.#length = this.#buffer.writeUInt16LE(value, this.#length)
    return this
  }

  u32(value: number): this {
    this.#reserve(4)
    this.#length = this.#buffer.writeUInt32LE(value >>> 0, this.#length)
    return this
  }

  u48(value: number): this {
    this.#reserve(6)
    this.#length = this.#buffer.writeUIntLE(value, this.#length, 6)
    return this
  }

  /** A whole number up to 2^53 - 1, seven bits to a byte (LEB128 as in DWARF 5, section 7.6). */
  varint(value: number): this {
    this.#reserve(VARINT_BYTES_MAX)
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#buffer[this.#length++] = (rest % 0x80) | 0x80
    this.#buffer[this.#length++] = rest
    return this
  }

  bytes(value: Uint8Array): this {
    this.#reserve(value.length)
    this.#buffer.set(value, this.#length)
    this.#length += value.length
    return this
  }

  /** A part of `source`, without a view of it: for very many short ones. */
  part(source: Uint8Array, start: number, end: number): this {
    this.#reserve(end - start)
    const buffer = this.#buffer
    for (let from = start, to = this.#length; from < end; from++, to++) buffer[to] = source[from]
    this.#length += end - start
    return this
  }

  /** Makes place for so many bytes more, so that writing them moves nothing. */
  reserve(bytes: number): this {
    this.#reserve(bytes)
    return this
  }

  /** Bytes with their length before them. */
  sized(value: Uint8Array): this {
    return this.u32(value.length).bytes(value)
  }

  text(value: string): this {
    return this.sized(Buffer.from(value, 'utf8'))
  }

  finish(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const larger = allocated(Math.max(this.#length + bytes, this.#buffer.length * 2))
    larger.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = larger
  }
}

function allocated(bytes: number): Buffer {
  return bytes < MAPPED_BYTES_MIN ? Buffer.allocUnsafe(bytes) : Buffer.from(mappedBuffer(bytes), 0, bytes)
}

/** Reads the output of `ByteWriter`. A read beyond the end throws `corrupt_data`, which names the subject. */
export class ByteReader {
  readonly #buffer: Buffer
  readonly #what: string
  #at = 0

  constructor(bytes: Uint8Array, what: string) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#what = what
  }

  get remaining(): number {
    return this.#buffer.length - this.#at
  }

  u8(): number {
    return this.#buffer.readUInt8(this.#advance(1))
  }

  u16(): number {
    return this.#buffer.readUInt16LE(this.#advance(2))
  }

  u32(): number {
    return this.#buffer.readUInt32LE(this.#advance(4))
  }

  u48(): number {
    return this.#buffer.readUIntLE(this.#advance(6), 6)
  }

  varint(): number {
    for (let value = 0, scale = 1, bytes = 1; ; scale *= 0x80, bytes++) {
      const byte = this.#buffer[this.#advance(1)]
      value += (byte & 0x7f) * scale
      if (byte < 0x80 && Number.isSafeInteger(value)) return value
      if (bytes === VARINT_BYTES_MAX) throw corrupt(`${this.#what} has a number that is too large`)
    }
  }

  bytes(length: number): Buffer {
    const start = this.#advance(length)
    return this.#buffer.subarray(start, start + length)
  }

  sized(): Buffer {
    return this.bytes(this.u32())
  }

  text(): string {
    return this.sized().toString('utf8')
  }

  #advance(bytes: number): number {
    const start = this.#at
    if (start + bytes > this.#buffer.length) throw corrupt(`${this.#what} is cut short`)
    this.#at = start + bytes
    return start
  }
}

export function corrupt(message: string, cause?: unknown): StowageError {
  return new StowageError('corrupt_data', message, { cause })
}
