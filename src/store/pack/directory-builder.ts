import { crc32 } from 'node:zlib'
import { Uint32List } from '../bytes/growable.ts'
import type { LinePlace } from './line-places.ts'
import type { BlockDirectory } from './pack-format.ts'
import { blockOf } from './segment.ts'

/** A block whose objects are known, and not yet its place. */
export interface EndedBlock {
  readonly codec: number
  readonly rawBytes: number
  readonly rawCrc32: number
  /** Objects up to and with the block. */
  readonly objectEnd: number
  readonly idBytes: number
}

/** The directory of a pack that is being written. */
export class DirectoryBuilder {
  readonly #columns = {
    codecs: new Uint32List(),
    offsets: new Uint32List(),
    storedBytes: new Uint32List(),
    rawBytes: new Uint32List(),
    objectEnds: new Uint32List(),
    idBytes: new Uint32List(),
    rawCrc32: new Uint32List(),
    storedCrc32: new Uint32List(),
  }

  get memoryBytes(): number {
    return Object.values(this.#columns).reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)
  }

  get blocks(): number {
    return this.#columns.offsets.length
  }

  end({ codec, rawBytes, rawCrc32, objectEnd, idBytes }: EndedBlock): void {
    const columns = this.#columns
    columns.codecs.push(codec)
    columns.rawBytes.push(rawBytes)
    columns.rawCrc32.push(rawCrc32)
    columns.objectEnds.push(objectEnd)
    columns.idBytes.push(idBytes)
  }

  /** Notes the place of the next block in the pack. */
  placed(stored: Uint8Array, offset: number): void {
    const columns = this.#columns
    columns.offsets.push(offset)
    columns.storedBytes.push(stored.length)
    columns.storedCrc32.push(crc32(stored))
  }

  /** Where an object lies whose block is placed. `lineBytes` says how long each line is. */
  placeOf(ordinal: number, lineBytes: Uint32List): LinePlace {
    const { objectEnds, offsets, storedBytes, rawBytes } = this.#columns
    const block = blockOf({ objectEnds: objectEnds.view() }, ordinal)
    let lineStart = 0
    for (let before = block === 0 ? 0 : objectEnds.at(block - 1); before < ordinal; before++)
      lineStart += lineBytes.at(before)
    return {
      blockStart: offsets.at(block),
      blockStoredBytes: storedBytes.at(block),
      blockRawBytes: rawBytes.at(block),
      lineStart,
    }
  }

  /** A view of all blocks, once each of them is placed. */
  finish(): BlockDirectory {
    const views = Object.entries(this.#columns).map(([name, list]) => [name, list.view()] as const)
    return Object.fromEntries(views) as unknown as BlockDirectory
  }
}
