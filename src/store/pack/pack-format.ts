import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { HEX_ID_BYTES, PACKED_ID_BYTES, unpackHexId } from '../../object/hex-id.ts'
import { ByteReader, ByteWriter, corrupt } from '../bytes/byte-codec.ts'

/**
 * The pack: what one upload stores, in the order
 *
 *     header | blocks | sections | trailer
 *
 * A block holds whole lines `<id> TAB <json> LF` as one raw DEFLATE fragment (RFC 1951) that is not final, ends on a byte boundary and refers to
 * nothing before it, so that any run of blocks can be copied into a gzip stream; in merged packs, a block may also be a delta (`delta-block.ts`),
 * which is never copied. Objects are numbered in the order of their lines (ordinals).
 * All numbers are little-endian; sections are padded to four bytes, so that their tables can be read in place.
 */
export const FORMAT_VERSION = 2
/** The sections are compressed, as one DEFLATE fragment. */
export const DEFLATED_SECTIONS = 1
/** The ids are packed, 16 bytes for 32 hex digits, without their ends. */
export const PACKED_IDS = 2
/** Bits that a reader must know to read a pack; a pack that sets another is refused. */
const KNOWN_FEATURES = DEFLATED_SECTIONS | PACKED_IDS
const HEADER_MAGIC = Buffer.from('STOWPACK', 'latin1')
const TRAILER_MAGIC = Buffer.from('STOWTAIL', 'latin1')
export const SECTION_HEADER_BYTES = 16
export const TRAILER_BYTES = 80
export const CODEC_RAW_DEFLATE = 0
/** A line as edits to another one. The number 1 is reserved. */
export const CODEC_DELTA = 2

export const SECTIONS = ['directory', 'lines', 'ids', 'references', 'claims', 'externals'] as const
export type SectionName = (typeof SECTIONS)[number]

export interface PackHeader {
  readonly projectId: string
  readonly generation: number
  readonly packId: string
  readonly timeMs: number
}

export function encodeHeader(header: PackHeader): Uint8Array {
  const writer = new ByteWriter()
    .bytes(HEADER_MAGIC)
    .u16(FORMAT_VERSION)
    .u32(0)
    .bytes(Buffer.from(header.packId, 'hex'))
  writer.u48(header.timeMs).u32(header.generation).text(header.projectId)
  return writer.u32(crc32(writer.finish())).finish()
}

/** The longest header: a project id has 128 bytes at most. */
export const HEADER_BYTES_MAX = 256

/** Reads the header at the start of `bytes`, which may be longer. Throws `corrupt_data`. */
export function decodeHeader(bytes: Uint8Array): PackHeader & { readonly headerBytes: number } {
  const reader = new ByteReader(bytes, 'a pack header')
  if (!reader.bytes(8).equals(HEADER_MAGIC)) throw corrupt('a pack does not start with its magic bytes')
  checkVersion(reader.u16(), reader.u32())
  const packId = reader.bytes(16).toString('hex')
  const timeMs = reader.u48()
  const generation = reader.u32()
  const projectId = reader.text()
  const headerBytes = bytes.length - reader.remaining + 4
  if (reader.u32() !== crc32(bytes.subarray(0, headerBytes - 4)))
    throw corrupt('a pack header does not match its CRC-32')
  return { projectId, generation, packId, timeMs, headerBytes }
}

/** One entry for each block. `objectEnds` counts objects up to and with the block. */
export interface BlockDirectory {
  readonly codecs: Uint32Array
  readonly offsets: Uint32Array
  readonly storedBytes: Uint32Array
  readonly rawBytes: Uint32Array
  readonly objectEnds: Uint32Array
  readonly idBytes: Uint32Array
  readonly rawCrc32: Uint32Array
  readonly storedCrc32: Uint32Array
}

export const DIRECTORY_COLUMNS = [
  'codecs',
  'offsets',
  'storedBytes',
  'rawBytes',
  'objectEnds',
  'idBytes',
  'rawCrc32',
  'storedCrc32',
] as const

/** Byte strings one after the other: string i ends at `ends[i]`. */
export interface ByteTable {
  readonly ends: Uint32Array
  readonly bytes: Uint8Array
  /** The same ids in 16 bytes each, if they are stored so. Then `ends` and `bytes` are made when they are first read. */
  readonly packed?: Uint8Array | undefined
}

/**
 * Compressed sparse rows: row i holds the targets up to `ends[i]`. A target below the pack's object count is an
 * ordinal, else an external id.
 */
export interface Rows {
  readonly ends: Uint32Array
  readonly targets: Uint32Array
}

export interface PackTables {
  readonly objects: number
  readonly blocks: number
  readonly directory: BlockDirectory
  readonly lineBytes: Uint32Array
  readonly textCrc32: Uint32Array
  readonly ids: ByteTable
  readonly references: Rows
  readonly claims: Rows
  readonly externals: ByteTable
}

/** `packedIds` takes the place of the ids and their ends. */
export function encodeSections(tables: PackTables, packedIds?: Uint8Array): Uint8Array[] {
  const { directory } = tables
  const parts: Record<SectionName, readonly (Uint8Array | Uint32Array)[]> = {
    directory: DIRECTORY_COLUMNS.map((column) => directory[column]),
    lines: [tables.lineBytes, tables.textCrc32],
    ids: packedIds === undefined ? [tables.ids.ends, tables.ids.bytes] : [packedIds],
    references: [tables.references.ends, tables.references.targets],
    claims: [tables.claims.ends, tables.claims.targets],
    externals: [tables.externals.ends, tables.externals.bytes],
  }
  const counts: Record<SectionName, number> = {
    directory: tables.blocks,
    lines: tables.objects,
    ids: tables.objects,
    references: tables.objects,
    claims: tables.objects,
    externals: tables.externals.ends.length,
  }
  return SECTIONS.flatMap((name, kind) => encodeSection(kind, counts[name], parts[name]))
}

/** The sections as they are stored, and the trailer behind them. */
export function withTrailer(
  { objects, blocks }: PackTables,
  sections: readonly Uint8Array[],
  { sectionsStart, features, inflatedBytes }: Pick<PackTrailer, 'sectionsStart' | 'features' | 'inflatedBytes'>,
): Uint8Array[] {
  const digest = createHash('sha256')
  let sectionsBytes = 0
  for (const chunk of sections) {
    digest.update(chunk)
    sectionsBytes += chunk.length
  }
  const trailer = new ByteWriter(TRAILER_BYTES).u48(sectionsStart).u48(sectionsBytes).u32(objects).u32(blocks)
  trailer.bytes(digest.digest()).u16(FORMAT_VERSION).u32(features).u32(inflatedBytes).bytes(Buffer.alloc(6))
  trailer.u32(crc32(trailer.finish())).bytes(TRAILER_MAGIC)
  return [...sections, trailer.finish()]
}

function encodeSection(kind: number, count: number, parts: readonly (Uint8Array | Uint32Array)[]): Uint8Array[] {
  const payload = parts.map((part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength))
  const length = payload.reduce((sum, part) => sum + part.length, 0)
  const padding = new Uint8Array(-length & 3)
  let crc = 0
  // zlib answers 0, not `crc`, for a part without memory behind it.
  for (const part of payload) if (part.length > 0) crc = crc32(part, crc)
  const header = new ByteWriter(SECTION_HEADER_BYTES).u32(kind).u32(length).u32(count).u32(crc).finish()
  return [header, ...payload, padding].filter((chunk) => chunk.length > 0)
}

export interface PackTrailer {
  readonly sectionsStart: number
  readonly sectionsBytes: number
  readonly objects: number
  readonly blocks: number
  readonly sectionsSha256: Buffer
  readonly features: number
  /** The bytes of the sections before they were compressed; 0 if they were not. */
  readonly inflatedBytes: number
}

/** Reads the last `TRAILER_BYTES` of a pack. Throws `corrupt_data`. */
export function decodeTrailer(bytes: Uint8Array): PackTrailer {
  const reader = new ByteReader(bytes, 'a pack trailer')
  const sectionsStart = reader.u48()
  const sectionsBytes = reader.u48()
  const objects = reader.u32()
  const blocks = reader.u32()
  const sectionsSha256 = reader.bytes(32)
  const version = reader.u16()
  const features = reader.u32()
  const inflatedBytes = reader.u32()
  reader.bytes(6)
  const stored = reader.u32()
  if (!reader.bytes(8).equals(TRAILER_MAGIC))
    throw corrupt('a pack does not end with its magic bytes; it may be cut short')
  if (stored !== crc32(bytes.subarray(0, TRAILER_BYTES - 12))) throw corrupt('a pack trailer does not match its CRC-32')
  checkVersion(version, features)
  return { sectionsStart, sectionsBytes, objects, blocks, sectionsSha256, features, inflatedBytes }
}

/** The sections as they are stored, and the trailer, which must be all of `bytes`. Throws `corrupt_data`. */
export function divideTables(bytes: Uint8Array): { readonly sections: Uint8Array; readonly trailer: PackTrailer } {
  if (bytes.length < TRAILER_BYTES) throw corrupt('the tables of a pack are cut short')
  const trailer = decodeTrailer(bytes.subarray(bytes.length - TRAILER_BYTES))
  if (trailer.sectionsBytes !== bytes.length - TRAILER_BYTES)
    throw corrupt('the tables of a pack and its trailer disagree on their length')
  return { sections: bytes.subarray(0, trailer.sectionsBytes), trailer }
}

/** A view, or a copy where the ids are packed: it takes no more memory, and the others stay packed. */
export function tableEntry(table: ByteTable, index: number): Uint8Array {
  if (table.packed === undefined) return table.bytes.subarray(startOf(table, index), table.ends[index])
  const digits = new Uint8Array(HEX_ID_BYTES)
  unpackHexId(table.packed, index * PACKED_ID_BYTES, digits, 0)
  return digits
}

export function entryBytes(table: ByteTable, index: number): number {
  return table.packed === undefined ? table.ends[index] - startOf(table, index) : HEX_ID_BYTES
}

function startOf({ ends }: ByteTable, index: number): number {
  return index === 0 ? 0 : ends[index - 1]
}

/** The bytes of an object's text: its line is the id, a tab, the text and a line end. */
export function textBytesOf({ lineBytes, ids }: PackTables, ordinal: number): number {
  return lineBytes[ordinal] - entryBytes(ids, ordinal) - 2
}

/** The id of a target of `references` or `claims`. */
export function targetId(tables: PackTables, target: number): Uint8Array {
  return target < tables.objects
    ? tableEntry(tables.ids, target)
    : tableEntry(tables.externals, target - tables.objects)
}

function checkVersion(version: number, features: number): void {
  if (version !== FORMAT_VERSION)
    throw corrupt(`a pack has format version ${version}; this release reads version ${FORMAT_VERSION}`)
  if ((features & ~KNOWN_FEATURES) !== 0)
    throw corrupt(`a pack needs features 0x${features.toString(16)} that this release does not know`)
}
