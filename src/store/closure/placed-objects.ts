import { crc32 } from 'node:zlib'
import type { Yielder } from '../../async/yielder.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { Uint32List } from '../bytes/growable.ts'
import type { PlacedLines } from '../pack/placed-lines.ts'
import type { ByteSource, Segment } from '../pack/segment.ts'
import type { ObjectRecord } from '../records/object-record.ts'

/** More than a pack can hold. */
const INDEX_FACTOR = 2 ** 20

/** Objects of one pack with the places of their lines, in 36 bytes each. */
export class PlacedObjects {
  readonly #columns = {
    ordinal: new Uint32List(),
    blockStart: new Uint32List(),
    blockStoredBytes: new Uint32List(),
    blockRawBytes: new Uint32List(),
    lineStart: new Uint32List(),
    idBytes: new Uint32List(),
    textBytes: new Uint32List(),
    idCrc32: new Uint32List(),
    textCrc32: new Uint32List(),
  }

  get count(): number {
    return this.#columns.blockStart.length
  }

  get memoryBytes(): number {
    return Object.values(this.#columns).reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)
  }

  add(id: Uint8Array, record: ObjectRecord): void {
    const columns = this.#columns
    columns.ordinal.push(record.ordinal)
    columns.blockStart.push(record.blockStart)
    columns.blockStoredBytes.push(record.blockStoredBytes)
    columns.blockRawBytes.push(record.blockRawBytes)
    columns.lineStart.push(record.lineStart)
    columns.idBytes.push(id.length)
    columns.textBytes.push(record.textBytes)
    columns.idCrc32.push(crc32(id))
    columns.textCrc32.push(record.textCrc32)
  }

  /** Which objects of a pack of so many they are. */
  ordinals(size: number): Bitmap {
    const bitmap = Bitmap.empty(size)
    for (const ordinal of this.#columns.ordinal.view()) bitmap.add(ordinal)
    return bitmap
  }

  /** A segment for each block that holds some of them, in the order of the pack. */
  async *segments(source: ByteSource, yielder: Yielder): AsyncGenerator<Segment> {
    const { blockStart, blockStoredBytes, blockRawBytes, lineStart } = this.#columns
    const order = this.#order()
    for (let first = 0; first < order.length;) {
      const at = order[first]
      const start = blockStart.at(at)
      let end = first + 1
      while (end < order.length && blockStart.at(order[end]) === start) end++
      const inBlock = order.subarray(first, end).sort((a, b) => lineStart.at(a) - lineStart.at(b))
      yield {
        source,
        start,
        end: start + blockStoredBytes.at(at),
        rawBytes: blockRawBytes.at(at),
        rawCrc32: 0,
        storedCrc32: 0,
        objects: inBlock.length,
        idBytes: 0,
        placed: this.#lines(inBlock),
      }
      first = end
      await yielder.due()
    }
  }

  /** By block. A typed array sorts a hundred thousand numbers in some milliseconds. */
  #order(): Uint32Array {
    const keys = Float64Array.from(this.#columns.blockStart.view(), (start, i) => start * INDEX_FACTOR + i).sort()
    return Uint32Array.from(keys, (key) => key % INDEX_FACTOR)
  }

  #lines(indices: Uint32Array): PlacedLines {
    const { lineStart, idBytes, textBytes, idCrc32, textCrc32 } = this.#columns
    const pick = (list: Uint32List): Uint32Array => indices.map((at) => list.at(at))
    return {
      starts: pick(lineStart),
      idBytes: pick(idBytes),
      textBytes: pick(textBytes),
      idCrc32: pick(idCrc32),
      textCrc32: pick(textCrc32),
    }
  }
}
