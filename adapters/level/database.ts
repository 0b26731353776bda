import { Level } from 'level'
import { restrictToOwner, makeFolder, OWNER_ONLY, syncFolder } from '../../src/data-folder/durable-files.ts'
import { RecordedLengths } from './recorded-lengths.ts'
import { SortedReader } from './sorted-reader.ts'
import { salvageDatabase } from './salvage.ts'
import { verifyDatabase } from './verify.ts'

/** LevelDB with bytes on both sides. */
export type LevelDatabase = Level<Uint8Array, Uint8Array>

/** A database with the reader that all share, and the note of how much it has acknowledged. */
export interface OpenDatabase {
  readonly database: LevelDatabase
  readonly reader: SortedReader
  readonly lengths: RecordedLengths
}

/** Methods that it has in Node, but its common type omits. */
type NodeLevel = LevelDatabase & { compactRange(start: Uint8Array, end: Uint8Array): Promise<void> }

/**
 * LevelDB maps its table files, so data that it reads stays in resident memory while the file is open: 64 files (the
 * smallest number that it accepts, 10 more are its own) of 1 MB each (the smallest size, too) are at most 64 MB, however
 * large the database grows; those that were not merged yet have 2 MB. They hold the records of 1,100,000 objects. Random
 * reads of more open files again and again: when 1,500,000 records had 140 MB, such reads took 1.5 times the processor
 * time that they took with files of 2 MB, of which 73 held everything; but these kept 68 MB resident, and smaller ones
 * 15 MB. A larger cache made nothing faster. A larger write buffer leaves less to merge in large projects, and stays in
 * memory until it is written. Ids hardly compress: without compression, tables are 4 in 100 larger, and can be verified.
 */
const RECORDS_TUNING = {
  maxOpenFiles: 74,
  maxFileSize: 1_048_576,
  writeBufferSize: 4_194_304,
  cacheSize: 4_194_304,
  compression: false,
}

/**
 * Blob chunks are compressed already and lie in the order of writing: files of one write buffer each, which never have
 * to be merged.
 */
const BLOBS_TUNING = { ...RECORDS_TUNING, maxFileSize: 2_097_152, writeBufferSize: 2_097_152, cacheSize: 1_048_576 }

/** Before the first and behind the last key that there is; none begins with it. */
const EVERY_KEY: readonly [Uint8Array, Uint8Array] = [Buffer.of(0), Buffer.of(0xff)]

export interface DatabaseOptions {
  readonly createIfMissing: boolean
  /** Opens a damaged database too, with everything that can be saved of it, and reports the steps. */
  readonly onSalvaged?: (what: string) => void
}

export async function openRecordsDatabase(path: string, options: DatabaseOptions): Promise<OpenDatabase> {
  return openDatabase(path, { ...RECORDS_TUNING, ...options })
}

export async function openBlobsDatabase(path: string, options: DatabaseOptions): Promise<OpenDatabase> {
  return openDatabase(path, { ...BLOBS_TUNING, ...options })
}

export async function closeDatabase({ database, lengths }: OpenDatabase): Promise<void> {
  await database.close()
  // An older note says less, and nothing wrong.
  await lengths.finish().catch(() => undefined)
}

async function openDatabase(
  path: string,
  { createIfMissing, onSalvaged, ...tuning }: DatabaseOptions & typeof RECORDS_TUNING,
): Promise<OpenDatabase> {
  const isThere = onSalvaged === undefined ? !createIfMissing : await salvageDatabase(path, onSalvaged)
  if (isThere) await verifyDatabase(path)
  await makeFolder(path, OWNER_ONLY)
  await restrictToOwner(path)
  const settings = { ...tuning, createIfMissing: !isThere, keyEncoding: 'buffer', valueEncoding: 'buffer' }
  const database = new Level<Uint8Array, Uint8Array>(path, settings) as NodeLevel
  // In the same turn as the constructor. Otherwise it would open itself, and the reason of a failure would be lost.
  await database.open()
  try {
    // An opening renames `CURRENT` and leaves it to chance when that becomes durable.
    await syncFolder(path)
    if (onSalvaged !== undefined) await database.compactRange(...EVERY_KEY)
    return { database, reader: new SortedReader(database), lengths: await RecordedLengths.start(path) }
  } catch (error) {
    await database.close()
    throw error
  }
}
