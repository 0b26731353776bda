import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { DataFolderError } from '../../src/data-folder/data-folder-error.ts'
import { type FileLengths, logNames, manifestName, readIfExists, readLengths } from './recorded-lengths.ts'
import { type ScannedLog, scanLog } from './log-file.ts'
import { liveFiles, type LiveFiles } from './manifest.ts'
import { tableDamage } from './table-file.ts'

/*
 * LevelDB as Node binds it compares no checksum of what it reads: a flipped bit in a table ends the whole process or hides records, one in a log makes
 * it forget what follows, a log that is gone or a manifest that ends early makes it forget without a word. So every file is read before LevelDB sees it,
 * at each opening, one after the other: tables have 1 or 2 MB, some up to 8. That takes 1.5 to 4 s for each GB.
 *
 * What a crash cuts short at the end of a log was never acknowledged and is no damage. The note of lengths (lengths.ts) tells one from the other.
 */

export interface DamagedFile {
  readonly name: string
  /** As in "it is missing". */
  readonly what: string
}

/** Throws `DataFolderError` if a file that counts is damaged. Nothing may have the database open. */
export async function verifyDatabase(path: string): Promise<void> {
  for await (const { name, what } of damagedFiles(path)) {
    const file = join(basename(path), name)
    throw new DataFolderError(
      'FOLDER_DAMAGED',
      `in the data folder ${dirname(path)}, ${file} ${what}; nothing was changed; restore the folder from a backup, or ` +
        'make a copy of it and run "stowage reindex", which saves the rest and reports the losses',
    )
  }
}

/** The files that count and are damaged. If it is the manifest, it is unknown which of the others count. */
export async function* damagedFiles(path: string): AsyncGenerator<DamagedFile> {
  const lengths = await readLengths(path)
  const manifest = await manifestName(path)
  if (manifest === undefined) {
    const isThere = (await readIfExists(join(path, 'CURRENT'))) !== undefined
    yield { name: 'CURRENT', what: isThere ? 'is damaged: it names no manifest' : 'is missing' }
    return
  }
  const bytes = await readIfExists(join(path, manifest))
  if (bytes === undefined) {
    const others = (await readdir(path)).some((name) => name.startsWith('MANIFEST-'))
    yield others
      ? { name: 'CURRENT', what: `is damaged: it names ${manifest}, which is not there` }
      : { name: manifest, what: 'is missing' }
    return
  }
  const live = parsedManifest(scanLog(bytes), lengths[manifest])
  if (typeof live === 'string') {
    yield { name: manifest, what: `is damaged: ${live}` }
    return
  }
  yield* missingLogs(path, live, lengths)
  yield* damagedLogs(path, live, lengths)
  const names = new Set(await readdir(path))
  for (const [number, { bytes }] of live.tables) {
    const name = ['ldb', 'sst'].map((ending) => fileName(number, ending)).find((candidate) => names.has(candidate))
    const why = name === undefined ? undefined : tableDamage(await readFile(join(path, name)), bytes)
    if (name === undefined)
      yield { name: fileName(number, 'ldb'), what: `is missing, and with it ${bytes} bytes of records` }
    else if (why !== undefined) yield { name, what: `is damaged: ${why}` }
  }
}

/**
 * The log that the manifest names is made before it is named, and removed only when the manifest names a later one. So
 * without it, the log was removed, or the manifest has lost its end. Of later logs, only the note knows.
 */
async function* missingLogs(path: string, { firstLog }: LiveFiles, lengths: FileLengths): AsyncGenerator<DamagedFile> {
  const held = new Set(await logNames(path, firstLog))
  const named = firstLog > 0 ? [fileName(firstLog, 'log')] : []
  const noted = Object.keys(lengths).filter((name) => name.endsWith('.log') && Number.parseInt(name, 10) >= firstLog)
  for (const name of new Set([...named, ...noted])) {
    if (held.has(name) || lengths[name] === 0) continue
    const lost = lengths[name] === undefined ? 'the last records' : `the ${lengths[name]} bytes of records`
    yield { name, what: `is missing, and with it ${lost} that were written to it` }
  }
}

async function* damagedLogs(path: string, { firstLog }: LiveFiles, lengths: FileLengths): AsyncGenerator<DamagedFile> {
  let newerIsUsed = false
  const found: DamagedFile[] = []
  for (const name of (await logNames(path, firstLog)).toReversed()) {
    const bytes = await readFile(join(path, name))
    const scanned = scanLog(bytes)
    // A log is followed by another one only once everything in it is synced.
    const isFollowed = newerIsUsed && bytes.length > 0
    const why = whyDamaged(isFollowed ? { ...scanned, goesOn: scanned.isDamaged } : scanned, lengths[name])
    if (why !== undefined) found.push({ name, what: `is damaged: ${why}` })
    newerIsUsed ||= bytes.length > 0
  }
  yield* found.toReversed()
}

/** A cut at the end, behind the part that is known to have been whole, is not damage. */
function whyDamaged({ goesOn, wholeBytes }: ScannedLog, notedBytes: number = 0): string | undefined {
  if (goesOn) return `the record at byte ${wholeBytes} does not match its CRC-32C, and is not the last one`
  if (wholeBytes >= notedBytes) return undefined
  return `only ${wholeBytes} of the ${notedBytes} bytes that were acknowledged are whole`
}

function parsedManifest(scanned: ScannedLog, notedBytes: number | undefined): LiveFiles | string {
  const why = whyDamaged(scanned, notedBytes)
  if (why !== undefined) return why
  try {
    const live = liveFiles(scanned.records)
    return live.isComplete ? live : `it ends after ${scanned.wholeBytes} bytes, before it has named a log`
  } catch (error) {
    return (error as Error).message
  }
}

function fileName(number: number, ending: string): string {
  return `${String(number).padStart(6, '0')}.${ending}`
}
