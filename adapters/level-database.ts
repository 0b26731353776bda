import { Level } from 'level'
import { syncFolder } from '../src/storage/durable-files.ts'

/** LevelDB with bytes on both sides. */
export type LevelDatabase = Level<Uint8Array, Uint8Array>

/**
 * LevelDB maps its table files, so what it reads stays in resident memory as long as the file is open: 64 files (the smallest number that it takes, 10 more are
 * its own) of 2 MB each are 128 MB at most, however large the database grows. At 1,000,000 records the whole is 45 MB. Fewer or smaller files made random
 * reads of 3,000,000 records two to four times slower; a larger write buffer or cache made nothing faster.
 */
const RECORDS_TUNING = { maxOpenFiles: 74, maxFileSize: 2_097_152, writeBufferSize: 2_097_152, cacheSize: 4_194_304 }

/** Blob chunks are compressed already and lie in the order of writing: files of one write buffer each, which never have to be merged. */
const BLOBS_TUNING = { ...RECORDS_TUNING, compression: false, cacheSize: 1_048_576 }

export interface DatabaseOptions {
  readonly createIfMissing: boolean
}

export async function openRecordsDatabase(path: string, options: DatabaseOptions): Promise<LevelDatabase> {
  return openDatabase(path, { ...RECORDS_TUNING, ...options })
}

export async function openBlobsDatabase(path: string, options: DatabaseOptions): Promise<LevelDatabase> {
  return openDatabase(path, { ...BLOBS_TUNING, ...options })
}

async function openDatabase(path: string, options: DatabaseOptions & typeof RECORDS_TUNING): Promise<LevelDatabase> {
  const database = new Level<Uint8Array, Uint8Array>(path, { ...options, keyEncoding: 'buffer', valueEncoding: 'buffer' })
  // In the same turn as the constructor, or it would open itself and nobody would hear why it failed.
  await database.open()
  try {
    // An opening renames `CURRENT` and leaves it to chance when that becomes durable.
    await syncFolder(path)
  } catch (error) {
    await database.close()
    throw error
  }
  return database
}
