import { crc32 } from 'node:zlib'
import { Uint32List } from '../bytes/growable.ts'
import type { PlacedLine } from '../pack/placed-lines.ts'
import type { ByteSource, Segment } from '../pack/segment.ts'
import type { ObjectRecord } from '../records/object-record.ts'

/** More than a pack can hold. */
const INDEX_FACTOR = 2 ** 20
/** They grow together. */
const COLUMNS = 9

/**
 * The objects of one list with the places of their lines, in 36 bytes each. A list of random ids has one of most packs,
 * so they share one set of columns: a few for each pack would be most of the work of such a list.
 */
export class PlacedObjects {
  readonly #ordinal: Uint32List
  readonly #blockStart: Uint32List
  readonly #blockStoredBytes: Uint32List
  readonly #blockRawBytes: Uint32List
  readonly #lineStart: Uint32List
  readonly #idBytes: Uint32List
  readonly #textBytes: Uint32List
  readonly #idCrc32: Uint32List
  readonly #textCrc32: Uint32List

  /** With place for so many objects. It grows. */
  constructor(capacity: number) {
    this.#ordinal = new Uint32List(capacity)
    this.#blockStart = new Uint32List(capacity)
    this.#blockStoredBytes = new Uint32List(capacity)
    this.#blockRawBytes = new Uint32List(capacity)
    this.#lineStart = new Uint32List(capacity)
    this.#idBytes = new Uint32List(capacity)
    this.#textBytes = new Uint32List(capacity)
    this.#idCrc32 = new Uint32List(capacity)
    this.#textCrc32 = new Uint32List(capacity)
  }

  get memoryBytes(): number {
    return COLUMNS * this.#ordinal.memoryBytes
  }

  /** Returns the number of the object in the list. */
  add(id: Uint8Array, record: ObjectRecord): number {
    const number = this.#ordinal.length
    this.#ordinal.push(record.ordinal)
    this.#blockStart.push(record.blockStart)
    this.#blockStoredBytes.push(record.blockStoredBytes)
    this.#blockRawBytes.push(record.blockRawBytes)
    this.#lineStart.push(record.lineStart)
    this.#idBytes.push(id.length)
    this.#textBytes.push(record.textBytes)
    this.#idCrc32.push(crc32(id))
    this.#textCrc32.push(record.textCrc32)
    return number
  }

  /** Of an object, in its pack. */
  ordinal(number: number): number {
    return this.#ordinal.at(number)
  }

  /** A segment for each block of one pack that holds some of these objects of it, in the order of the pack. */
  *segments(source: ByteSource, numbers: readonly number[]): Generator<Segment> {
    const order = this.#byBlock(numbers)
    for (let first = 0; first < order.length;) {
      const start = this.#blockStart.at(order[first])
      let end = first + 1
      while (end < order.length && this.#blockStart.at(order[end]) === start) end++
      yield this.#segment(source, order.slice(first, end))
      first = end
    }
  }

  /** A typed array sorts a hundred thousand numbers in some milliseconds. */
  #byBlock(numbers: readonly number[]): readonly number[] {
    if (numbers.length < 2) return numbers
    const keys = Float64Array.from(numbers, (number, i) => this.#blockStart.at(number) * INDEX_FACTOR + i).sort()
    return Array.from(keys, (key) => numbers[key % INDEX_FACTOR])
  }

  #segment(source: ByteSource, inBlock: number[]): Segment {
    const [first] = inBlock
    const start = this.#blockStart.at(first)
    inBlock.sort((a, b) => this.#lineStart.at(a) - this.#lineStart.at(b))
    return {
      source,
      start,
      end: start + this.#blockStoredBytes.at(first),
      rawBytes: this.#blockRawBytes.at(first),
      rawCrc32: 0,
      storedCrc32: 0,
      objects: inBlock.length,
      idBytes: 0,
      placed: inBlock.map((number) => this.#line(number)),
    }
  }

  #line(number: number): PlacedLine {
    return {
      start: this.#lineStart.at(number),
      idBytes: this.#idBytes.at(number),
      textBytes: this.#textBytes.at(number),
      idCrc32: this.#idCrc32.at(number),
      textCrc32: this.#textCrc32.at(number),
    }
  }
}
