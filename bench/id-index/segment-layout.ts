import { closeSync, readSync, writeSync } from 'node:fs'
import { hashBytes } from '../../src/object/id-hash.ts'

/*
 * A segment is one immutable blob: entries of 16 bytes in the order of their fingerprints, a filter, and a fence that says where in the entries each
 * range of fingerprints begins. A fingerprint is a keyed hash of the id, so fingerprints are spread evenly, and clients cannot choose them.
 */

/** The fingerprint (64 bits), the pack and the ordinal. */
export const ENTRY_BYTES = 16
export const ENTRY_WORDS: number = ENTRY_BYTES / 4
export const FILTER_BLOCK_BYTES = 64
const FILTER_BLOCK_BITS = 8 * FILTER_BLOCK_BYTES
const FILTER_BITS_PER_ENTRY = 10
const FILTER_BITS_SET = 6
/** One read finds an entry: it has 4 KB. */
const BUCKET_ENTRIES = 256
/** Of the entries that are sorted at a time. */
export const PARTITION_BYTES = 8_388_608
const KEY = { low: 0x1d3c5b79, high: 0x2f6e8ca1 }
const WORD = 4_294_967_296

/** Ranges of the fingerprints, all of one width. The ranges of a finer division lie within those of the coarser one. */
export interface SegmentLayout {
  readonly entries: number
  readonly partitions: number
  readonly bucketsEach: number
  readonly filterBlocksEach: number
  readonly filterStart: number
  readonly fenceStart: number
  readonly sizeBytes: number
}

export function layoutOf(entries: number, partitionBytes: number): SegmentLayout {
  const partitions = Math.max(1, Math.ceil((entries * ENTRY_BYTES) / partitionBytes))
  const each = entries / partitions
  const bucketsEach = Math.max(1, Math.ceil(each / BUCKET_ENTRIES))
  const filterBlocksEach = Math.max(1, Math.ceil((each * FILTER_BITS_PER_ENTRY) / FILTER_BLOCK_BITS))
  const filterStart = Math.ceil((entries * ENTRY_BYTES) / FILTER_BLOCK_BYTES) * FILTER_BLOCK_BYTES
  const fenceStart = filterStart + partitions * filterBlocksEach * FILTER_BLOCK_BYTES
  const sizeBytes = fenceStart + (partitions * bucketsEach + 1) * 4
  return { entries, partitions, bucketsEach, filterBlocksEach, filterStart, fenceStart, sizeBytes }
}

export function upperHash(ids: Uint8Array, start: number, end: number): number {
  return hashBytes(ids, start, end, KEY)
}

export function lowerHash(ids: Uint8Array, start: number, end: number): number {
  return hashBytes(ids, start, end, KEY, true)
}

export function partitionOf(upper: number, { partitions }: SegmentLayout): number {
  return Math.floor((upper * partitions) / WORD)
}

/** The slot of a fingerprint where each partition has `slotsEach`. Every product is exact. */
export function slotOf(upper: number, { partitions }: SegmentLayout, slotsEach: number): number {
  const scaled = upper * partitions
  const partition = Math.floor(scaled / WORD)
  return partition * slotsEach + Math.floor(((scaled - partition * WORD) * slotsEach) / WORD)
}

export function addToFilter(block: Uint8Array, start: number, lower: number): void {
  const step = (lower >>> 9) | 1
  for (let i = 0, bit = lower; i < FILTER_BITS_SET; i++, bit += step)
    block[start + ((bit & 511) >> 3)] |= 1 << (bit & 7)
}

export function mayHold(block: Uint8Array, start: number, lower: number): boolean {
  const step = (lower >>> 9) | 1
  for (let i = 0, bit = lower; i < FILTER_BITS_SET; i++, bit += step)
    if ((block[start + ((bit & 511) >> 3)] & (1 << (bit & 7))) === 0) return false
  return true
}

export function writeAll(file: number, bytes: Uint8Array, position: number | null): void {
  for (let done = 0; done < bytes.length;)
    done += writeSync(file, bytes, done, bytes.length - done, position === null ? null : position + done)
}

export function readAll(file: number, target: Uint8Array, position: number): void {
  for (let done = 0; done < target.length;) {
    const count = readSync(file, target, done, target.length - done, position + done)
    if (count === 0) throw new Error(`the segment ends at byte ${position + done}`)
    done += count
  }
}

export function closeAll(files: Iterable<number>): void {
  for (const file of files) closeSync(file)
}

export function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength)
}
