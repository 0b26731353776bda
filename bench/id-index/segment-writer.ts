import { closeSync, fstatSync, fsyncSync, openSync, rmSync } from 'node:fs'
import { placeOf } from './id-index.ts'
import {
  addToFilter,
  bytesOf,
  ENTRY_BYTES,
  ENTRY_WORDS,
  FILTER_BLOCK_BYTES,
  layoutOf,
  lowerHash,
  partitionOf,
  readAll,
  type SegmentLayout,
  slotOf,
  upperHash,
  writeAll,
} from './segment-layout.ts'
import { ID_BYTES, writeId } from './synthetic-ids.ts'

export interface ObjectRange {
  readonly from: number
  readonly to: number
}

const BUFFER_ENTRIES = 4_096
const RADIX_BITS = 11
const RADIX = 1 << RADIX_BITS

/**
 * Writes the segment of some objects. Memory is bounded: entries go to a file for each range of fingerprints first, and
 * one range at a time is sorted.
 */
export function writeSegment(path: string, objects: ObjectRange, partitionBytes: number): SegmentLayout {
  const layout = layoutOf(objects.to - objects.from, partitionBytes)
  const parts = divide(path, objects, layout)
  const file = openSync(path, 'w')
  const fence = new Uint32Array(layout.partitions * layout.bucketsEach + 1).fill(layout.entries)
  let written = 0
  for (const [partition, part] of parts.entries()) {
    const entries = sorted(readPart(part))
    writeAll(file, bytesOf(entries), written * ENTRY_BYTES)
    writeFilter(file, entries, { layout, partition })
    for (let at = entries.length - ENTRY_WORDS; at >= 0; at -= ENTRY_WORDS)
      fence[slotOf(entries[at], layout, layout.bucketsEach)] = written + at / ENTRY_WORDS
    written += entries.length / ENTRY_WORDS
  }
  for (let bucket = fence.length - 2; bucket >= 0; bucket--) fence[bucket] = Math.min(fence[bucket], fence[bucket + 1])
  writeAll(file, bytesOf(fence), layout.fenceStart)
  fsyncSync(file)
  closeSync(file)
  return layout
}

/** The entries of each range of fingerprints, in open files that have no name any more. */
function divide(path: string, { from, to }: ObjectRange, layout: SegmentLayout): readonly number[] {
  const buffers = Array.from({ length: layout.partitions }, () => new Uint32Array(BUFFER_ENTRIES * ENTRY_WORDS))
  const filled = new Uint32Array(layout.partitions)
  const files = buffers.map((_, partition) => {
    const name = `${path}.${partition}`
    const file = openSync(name, 'wx+')
    rmSync(name)
    return file
  })
  const flush = (partition: number): void => {
    writeAll(files[partition], bytesOf(buffers[partition].subarray(0, filled[partition])), null)
    filled[partition] = 0
  }
  const id = new Uint8Array(ID_BYTES)
  for (let object = from; object < to; object++) {
    writeId(object, id)
    const upper = upperHash(id, 0, ID_BYTES)
    const partition = partitionOf(upper, layout)
    const buffer = buffers[partition]
    const { sequence, ordinal } = placeOf(object)
    let at = filled[partition]
    buffer[at++] = upper
    buffer[at++] = lowerHash(id, 0, ID_BYTES)
    buffer[at++] = sequence
    buffer[at++] = ordinal
    filled[partition] = at
    if (at === buffer.length) flush(partition)
  }
  for (const partition of files.keys()) flush(partition)
  return files
}

function readPart(file: number): Uint32Array {
  const words = new Uint32Array(fstatSync(file).size / 4)
  readAll(file, bytesOf(words), 0)
  closeSync(file)
  return words
}

/** By fingerprint: a radix sort by the upper halves; the lower ones decide between the few that are equal. */
function sorted(entries: Uint32Array): Uint32Array {
  let source = entries
  let target: Uint32Array = new Uint32Array(entries.length)
  for (let shift = 0; shift < 32; shift += RADIX_BITS) {
    const next = new Uint32Array(RADIX + 1)
    for (let at = 0; at < source.length; at += ENTRY_WORDS) next[((source[at] >>> shift) & (RADIX - 1)) + 1]++
    for (let digit = 0; digit < RADIX; digit++) next[digit + 1] += next[digit]
    for (let at = 0; at < source.length; at += ENTRY_WORDS) {
      const to = next[(source[at] >>> shift) & (RADIX - 1)]++ * ENTRY_WORDS
      for (let word = 0; word < ENTRY_WORDS; word++) target[to + word] = source[at + word]
    }
    const before = source
    source = target
    target = before
  }
  for (let at = ENTRY_WORDS; at < source.length; at += ENTRY_WORDS)
    for (let i = at; i > 0 && isBefore(source, i, i - ENTRY_WORDS); i -= ENTRY_WORDS) swap(source, i, i - ENTRY_WORDS)
  return source
}

function isBefore(entries: Uint32Array, a: number, b: number): boolean {
  return entries[a] < entries[b] || (entries[a] === entries[b] && entries[a + 1] < entries[b + 1])
}

function swap(entries: Uint32Array, a: number, b: number): void {
  const moved = entries.slice(a, a + ENTRY_WORDS)
  entries.copyWithin(a, b, b + ENTRY_WORDS)
  entries.set(moved, b)
}

function writeFilter(
  file: number,
  entries: Uint32Array,
  { layout, partition }: { readonly layout: SegmentLayout; readonly partition: number },
): void {
  const first = partition * layout.filterBlocksEach
  const blocks = new Uint8Array(layout.filterBlocksEach * FILTER_BLOCK_BYTES)
  for (let at = 0; at < entries.length; at += ENTRY_WORDS) {
    const block = slotOf(entries[at], layout, layout.filterBlocksEach) - first
    addToFilter(blocks, block * FILTER_BLOCK_BYTES, entries[at + 1])
  }
  writeAll(file, blocks, layout.filterStart + first * FILTER_BLOCK_BYTES)
}
