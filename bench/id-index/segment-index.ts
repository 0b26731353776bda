import { openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ObjectPlace } from '../../src/store/records/object-record.ts'
import type { IdIndex } from './id-index.ts'
import {
  bytesOf,
  closeAll,
  ENTRY_BYTES,
  ENTRY_WORDS,
  FILTER_BLOCK_BYTES,
  lowerHash,
  mayHold,
  PARTITION_BYTES,
  readAll,
  type SegmentLayout,
  slotOf,
  upperHash,
} from './segment-layout.ts'
import { writeSegment } from './segment-writer.ts'

interface Segment {
  readonly file: number
  readonly path: string
  readonly layout: SegmentLayout
  readonly fence: Uint32Array
  /** All of it, or room for one block. */
  readonly filter: Uint8Array
}

export interface SegmentOptions {
  /** The sizes fall by half from one to the next, as merges of a geometric progression leave them. */
  readonly segments: number
  /** Otherwise each look-up reads its block of the filter. */
  readonly areFiltersInMemory: boolean
  readonly partitionBytes?: number
}

const ENTRIES_READ_MAX = 65_536

/** Sorted immutable segments, read with `pread`. The fences are in memory: 4 bytes for 256 objects. */
export class SegmentIndex implements IdIndex {
  readonly #folder: string
  readonly #options: SegmentOptions
  readonly #segments: Segment[] = []
  readonly #bucket = new Uint32Array(ENTRIES_READ_MAX * ENTRY_WORDS)

  constructor(folder: string, options: SegmentOptions) {
    this.#folder = folder
    this.#options = options
  }

  async build(objects: number): Promise<void> {
    const { segments, areFiltersInMemory, partitionBytes = PARTITION_BYTES } = this.#options
    let from = 0
    for (let left = segments; left > 0; left--) {
      const to = left === 1 ? objects : from + Math.ceil((objects - from) / 2)
      const path = join(this.#folder, `segment-${left}`)
      const layout = writeSegment(path, { from, to }, partitionBytes)
      const file = openSync(path, 'r')
      const fence = new Uint32Array((layout.sizeBytes - layout.fenceStart) / 4)
      readAll(file, bytesOf(fence), layout.fenceStart)
      const filterBytes = areFiltersInMemory ? layout.fenceStart - layout.filterStart : FILTER_BLOCK_BYTES
      const filter = new Uint8Array(filterBytes)
      readAll(file, filter, layout.filterStart)
      this.#segments.push({ file, path, layout, fence, filter })
      from = to
    }
  }

  async find(ids: readonly Uint8Array[]): Promise<readonly (ObjectPlace | undefined)[]> {
    return ids.map((id) => {
      const upper = upperHash(id, 0, id.length)
      const lower = lowerHash(id, 0, id.length)
      for (const segment of this.#segments) {
        if (!this.#mayBeIn(segment, upper, lower)) continue
        const place = this.#placeIn(segment, upper, lower)
        if (place !== undefined) return place
      }
      return undefined
    })
  }

  async sizeBytes(): Promise<number> {
    return this.#segments.reduce((sum, { path }) => sum + statSync(path).size, 0)
  }

  async close(): Promise<void> {
    closeAll(this.#segments.map(({ file }) => file))
  }

  #mayBeIn({ file, layout, filter }: Segment, upper: number, lower: number): boolean {
    const start = slotOf(upper, layout, layout.filterBlocksEach) * FILTER_BLOCK_BYTES
    if (this.#options.areFiltersInMemory) return mayHold(filter, start, lower)
    readAll(file, filter, layout.filterStart + start)
    return mayHold(filter, 0, lower)
  }

  #placeIn({ file, layout, fence }: Segment, upper: number, lower: number): ObjectPlace | undefined {
    const slot = slotOf(upper, layout, layout.bucketsEach)
    const [from, to] = [fence[slot], fence[slot + 1]]
    const entries = this.#bucket.subarray(0, (to - from) * ENTRY_WORDS)
    readAll(file, bytesOf(entries), from * ENTRY_BYTES)
    let low = 0
    for (let high = to - from; low < high;) {
      const middle = (low + high) >>> 1
      const at = middle * ENTRY_WORDS
      if (entries[at] < upper || (entries[at] === upper && entries[at + 1] < lower)) low = middle + 1
      else high = middle
    }
    const at = low * ENTRY_WORDS
    if (low === to - from || entries[at] !== upper || entries[at + 1] !== lower) return undefined
    return { sequence: entries[at + 2], ordinal: entries[at + 3] }
  }
}
