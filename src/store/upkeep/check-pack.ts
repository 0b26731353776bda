import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Environment } from '../../environment.ts'
import { BLOB_READ_BYTES_MAX, type BlobStore } from '../../storage/backend.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { damageBy, type Finding } from './finding.ts'
import type { Pack } from '../records/pack-catalog.ts'
import {
  decodeHeader,
  decodeTrailer,
  HEADER_BYTES_MAX,
  tableEntry,
  TRAILER_BYTES,
  type PackTables,
} from '../pack/pack-format.ts'
import { inflateBlock } from '../pack/delta-block.ts'
import { readSource } from '../pack/read-source.ts'
import { decodeTables } from '../pack/stored-tables.ts'

const TAB = 0x09
const LINE_FEED = 0x0a

/** One in `every` blocks is read and inflated; 1 reads all. */
export interface BlockSample {
  readonly every: number
  readonly environment: Environment
}

/** Header, trailer, digest and tables of a pack. Throws `corrupt_data`. */
export async function readWholeTables(
  blobs: BlobStore,
  { record, source, projectId }: Pack,
  environment: Environment,
): Promise<PackTables> {
  const { packBytes, tablesStart, packId } = record
  const header = decodeHeader(await readSource(blobs, source, 0, Math.min(packBytes, HEADER_BYTES_MAX)))
  if (header.packId !== packId || header.projectId !== projectId)
    throw corrupt('the header names another pack or project')
  const bytes = await readSource(blobs, source, tablesStart, packBytes)
  const trailer = decodeTrailer(bytes.subarray(bytes.length - TRAILER_BYTES))
  if (trailer.sectionsStart !== tablesStart)
    throw corrupt('the trailer and the record disagree on the start of the tables')
  const sections = bytes.subarray(0, bytes.length - TRAILER_BYTES)
  if (!createHash('sha256').update(sections).digest().equals(trailer.sectionsSha256))
    throw corrupt('the sections do not match their SHA-256')
  const tables = await decodeTables(bytes, environment)
  await checkLayout(blobs, source, header.headerBytes, tables, tablesStart)
  return tables
}

/** Blocks lie side by side from the header on, and only zeros between the last one and the tables. */
async function checkLayout(
  blobs: BlobStore,
  source: Pack['source'],
  start: number,
  tables: PackTables,
  tablesStart: number,
): Promise<void> {
  const { offsets, storedBytes, objectEnds } = tables.directory
  let at = start
  for (let block = 0; block < tables.blocks; block++) {
    if (offsets[block] !== at) throw corrupt(`block ${block} does not start where the one before it ends`)
    at += storedBytes[block]
  }
  if (tables.blocks > 0 && objectEnds[tables.blocks - 1] !== tables.objects)
    throw corrupt('the blocks hold another number of objects than the tables')
  const padding = at === tablesStart ? new Uint8Array() : await readSource(blobs, source, at, tablesStart)
  if (padding.length > 3 || padding.some((byte) => byte !== 0))
    throw corrupt('there are stray bytes between blocks and tables')
}

/** Reads blocks as they are stored, inflates them, and holds every line against the tables. */
export async function* checkBlocks(
  blobs: BlobStore,
  pack: Pack,
  tables: PackTables,
  { every, environment }: BlockSample,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const { directory } = tables
  for (let first = 0; first < tables.blocks;) {
    let end = first + 1
    while (
      end < tables.blocks &&
      directory.offsets[end] + directory.storedBytes[end] - directory.offsets[first] <= BLOB_READ_BYTES_MAX
    )
      end++
    const start = directory.offsets[first]
    const bytes = await readSource(
      blobs,
      pack.source,
      start,
      directory.offsets[end - 1] + directory.storedBytes[end - 1],
      { signal },
    )
    for (let block = first; block < end; block++) {
      if (block % every !== 0) continue
      const from = directory.offsets[block] - start
      try {
        const stored = bytes.subarray(from, from + directory.storedBytes[block])
        const read = (at: number, to: number): Promise<Uint8Array> => readSource(blobs, pack.source, at, to, { signal })
        const raw = await inflateBlock(checked(stored, tables, block), directory.rawBytes[block], { read, environment })
        checkLines(raw, tables, block)
      } catch (error) {
        yield damageBy(error, pack.projectId, `pack ${pack.record.packId}`, (message) => `block ${block}: ${message}`)
      }
    }
    first = end
  }
}

function checked(stored: Uint8Array, { directory }: PackTables, block: number): Uint8Array {
  if (crc32(stored) !== directory.storedCrc32[block]) throw corrupt('the stored bytes do not match their CRC-32')
  return stored
}

function checkLines(raw: Uint8Array, tables: PackTables, block: number): void {
  const { directory } = tables
  if (crc32(raw) !== directory.rawCrc32[block]) throw corrupt('the inflated bytes do not match their CRC-32')
  let at = 0
  for (
    let ordinal = block === 0 ? 0 : directory.objectEnds[block - 1];
    ordinal < directory.objectEnds[block];
    ordinal++
  ) {
    const line = raw.subarray(at, at + tables.lineBytes[ordinal])
    const id = tableEntry(tables.ids, ordinal)
    const isId = line[id.length] === TAB && Buffer.compare(line.subarray(0, id.length), id) === 0
    if (!isId || line.at(-1) !== LINE_FEED) throw corrupt(`object ${ordinal} is not where the tables say`)
    if (crc32(line.subarray(id.length + 1, -1)) !== tables.textCrc32[ordinal])
      throw corrupt(`the text of object ${ordinal} does not match its CRC-32`)
    at += line.length
  }
  if (at !== raw.length) throw corrupt('the block is longer than its lines')
}
