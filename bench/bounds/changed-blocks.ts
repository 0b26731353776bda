import { closeSync, openSync, readSync } from 'node:fs'
import { constants, crc32, deflateRawSync } from 'node:zlib'
import { fitsBlock } from '../../src/blocks/ready-blocks.ts'
import { inflateBeginning } from '../../src/compression/inflate.ts'
import { DeltaEncoder } from '../../src/delta/encode.ts'
import { building, type ModelObject } from '../model/building.ts'
import { secondsSince } from './processor-time.ts'

/** As the blocks of an upload are compressed. */
const COMPRESSION_LEVEL = 2
/** As answers are compressed. */
const SEGMENT_BYTES = 131_072

export type Version = Parameters<typeof building>[0]

/** A block and how much of it must be inflated. */
export interface NeededBlock {
  readonly stored: Uint8Array
  readonly rawBytes: number
  readonly neededBytes: number
}

interface Block {
  readonly raw: Buffer
  readonly ids: readonly string[]
  /** Where each line ends. */
  readonly ends: readonly number[]
}

export interface ChangedText {
  /** Of the older one. */
  readonly id: string
  readonly older: Uint8Array
  readonly newer: Uint8Array
}

/** The objects of the first version that the second one lacks. */
export function replacedIds([older, newer]: readonly Version[]): readonly string[] {
  const kept = new Set(idsOf(newer))
  return idsOf(older).filter((id) => !kept.has(id))
}

/** The objects of the second version that the first one lacks. */
export function* replacingObjects([older, newer]: readonly Version[]): Generator<readonly ModelObject[]> {
  const held = new Set(idsOf(older))
  for (const batch of building(newer)) yield batch.filter(({ id }) => !held.has(id))
}

/** The blocks with replaced objects, once for each and as far as its line, and the blocks of the objects that replace them. */
export function changedBlocks([older, newer]: readonly Version[]): readonly NeededBlock[] {
  const needed: NeededBlock[] = []
  const replaced = new Set(replacedIds([older, newer]))
  for (const { raw, ids, ends } of blocksOf(linesOf(older))) {
    const wanted = ends.filter((_, i) => replaced.has(ids[i]))
    if (wanted.length === 0) continue
    const stored = deflated(raw)
    for (const neededBytes of wanted) needed.push({ stored, rawBytes: raw.length, neededBytes })
  }
  for (const { raw } of blocksOf(linesOf(newer, new Set(idsOf(older)))))
    needed.push({ stored: deflated(raw), rawBytes: raw.length, neededBytes: raw.length })
  return needed
}

/** The texts of the replaced objects, each with the one that replaces it: both versions have as many, in one order. */
export function changedTexts([older, newer]: readonly Version[]): readonly ChangedText[] {
  const [olderTexts, newerTexts] = [older, newer].map((version) => [...building(version)].flat())
  if (olderTexts.length !== newerTexts.length) throw new RangeError('a version has other objects than the one before')
  return olderTexts.flatMap(({ id, json }, i) =>
    id === newerTexts[i].id ? [] : [{ id, older: Buffer.from(json), newer: Buffer.from(newerTexts[i].json) }],
  )
}

/** The processor time of finding the deltas between texts in memory, and the deltas as the lines of an answer. */
export function comparing(texts: readonly ChangedText[]): { readonly seconds: number; readonly lines: Buffer } {
  const lines: string[] = []
  const before = process.cpuUsage()
  for (const { id, older, newer } of texts) {
    const encoder = new DeltaEncoder(id, older, newer)
    while (!encoder.advance(newer.length));
    const delta = encoder.take()
    lines.push(`${id}\t${delta ?? newer.toString()}\n`)
  }
  return { seconds: secondsSince(before), lines: Buffer.from(lines.join('')) }
}

/** The processor time of compressing an answer, as the server does. */
export function compressingSeconds(lines: Uint8Array): number {
  const before = process.cpuUsage()
  for (let start = 0; start < lines.length; start += SEGMENT_BYTES)
    deflateRawSync(lines.subarray(start, start + SEGMENT_BYTES), {
      level: constants.Z_BEST_SPEED,
      finishFlush: constants.Z_FULL_FLUSH,
    })
  return secondsSince(before)
}

/** The processor time of comparing blocks with their checksums. */
export function checkingSeconds(blocks: readonly NeededBlock[]): number {
  const before = process.cpuUsage()
  for (const { stored } of blocks) crc32(stored)
  return secondsSince(before)
}

/** The processor time of reading blocks, one after another, from a file in which they follow each other. */
export function readingSeconds(blocks: readonly NeededBlock[], file: string): number {
  const descriptor = openSync(file, 'r')
  const into = new Uint8Array(Math.max(...blocks.map(({ stored }) => stored.length)))
  const before = process.cpuUsage()
  let start = 0
  for (const { stored } of blocks) start += readSync(descriptor, into, 0, stored.length, start)
  const seconds = secondsSince(before)
  closeSync(descriptor)
  return seconds
}

/** The processor time of zlib alone. */
export function inflatingSeconds(blocks: readonly NeededBlock[]): number {
  const output = new Uint8Array(Math.max(...blocks.map(({ neededBytes }) => neededBytes)))
  const before = process.cpuUsage()
  for (const { stored, rawBytes, neededBytes } of blocks)
    inflateBeginning(output.subarray(0, neededBytes), stored, rawBytes)
  return secondsSince(before)
}

function idsOf(version: Version): string[] {
  return [...building(version)].flatMap((batch) => batch.map(({ id }) => id))
}

function* linesOf(version: Version, without: ReadonlySet<string> = new Set()): Generator<readonly [string, Buffer]> {
  for (const batch of building(version))
    for (const { id, json } of batch) if (!without.has(id)) yield [id, Buffer.from(`${id}\t${json}\n`)]
}

/** Lines in blocks of the size that uploads make. */
function* blocksOf(lines: Iterable<readonly [string, Buffer]>): Generator<Block> {
  let block: (readonly [string, Buffer])[] = []
  let bytes = 0
  for (const entry of lines) {
    const [, { length }] = entry
    if (block.length > 0 && !fitsBlock(bytes, length)) {
      yield whole(block)
      ;[block, bytes] = [[], 0]
    }
    block.push(entry)
    bytes += length
  }
  if (block.length > 0) yield whole(block)
}

function whole(lines: readonly (readonly [string, Buffer])[]): Block {
  let end = 0
  const ends = lines.map(([, { length }]) => (end += length))
  return { raw: Buffer.concat(lines.map(([, line]) => line)), ids: lines.map(([id]) => id), ends }
}

function deflated(raw: Uint8Array): Uint8Array {
  return deflateRawSync(raw, { level: COMPRESSION_LEVEL, finishFlush: constants.Z_FULL_FLUSH })
}
