import { readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { DataFolderError } from '../src/storage/data-folder.ts'
import { type ScannedLog, scanLog } from './level-log-file.ts'
import { liveFiles, type LiveFiles } from './level-manifest.ts'
import { whyDamagedTable } from './level-table-file.ts'

/*
 * LevelDB as Node binds it compares no checksum of what it reads: a flipped bit in a table ends the whole process or hides records, one in a log makes
 * it forget what follows. So every file is read before LevelDB sees it, at each opening, one after the other: tables have 2 MB, some up to 8. That takes
 * 1.5 to 4 s for each GB.
 *
 * What a crash cuts short at the end of a log was never acknowledged and is no damage. To tell one from the other, closing in peace leaves a note of
 * how long manifest and logs were.
 */

const CLOSED_NOTE = 'closed'

export interface DamagedFile {
  readonly name: string
  readonly why: string
}

type ClosedLengths = Readonly<Record<string, number>>

/** Throws `DataFolderError` if a file that counts is damaged. Nothing may have the database open. */
export async function verifyDatabase(path: string): Promise<void> {
  for await (const { name, why } of damagedFiles(path)) {
    const file = join(basename(path), name)
    throw new DataFolderError(
      'FOLDER_DAMAGED',
      `${file} in the data folder ${dirname(path)} is damaged: ${why}; "stowage reindex" saves what can be saved`,
    )
  }
}

/** The files that count and are damaged. When it is the manifest, nobody knows which of the others count. */
export async function* damagedFiles(path: string): AsyncGenerator<DamagedFile> {
  const closed = await readClosedNote(path)
  const manifest = await manifestName(path)
  if (manifest === undefined) {
    yield { name: 'CURRENT', why: 'it names no manifest' }
    return
  }
  const bytes = await readIfThere(join(path, manifest))
  if (bytes === undefined) {
    yield { name: 'CURRENT', why: `there is no ${manifest}` }
    return
  }
  const scanned = scanLog(bytes)
  const live = whyDamaged(scanned, closed[manifest]) ?? parsedManifest(scanned)
  if (typeof live === 'string') {
    yield { name: manifest, why: live }
    return
  }
  yield* damagedLogs(path, live, closed)
  const names = new Set(await readdir(path))
  for (const [number, { bytes }] of live.tables) {
    const name = ['ldb', 'sst'].map((ending) => fileName(number, ending)).find((candidate) => names.has(candidate))
    const why = name === undefined ? 'it is missing' : whyDamagedTable(await readFile(join(path, name)), bytes)
    if (why !== undefined) yield { name: name ?? fileName(number, 'ldb'), why }
  }
}

/** After the database was closed: how long its manifest and logs are, as far as they are whole. */
export async function writeClosedNote(path: string): Promise<void> {
  const lengths: Record<string, number> = {}
  const manifest = await manifestName(path)
  for (const name of [...(manifest === undefined ? [] : [manifest]), ...(await logNames(path, 0))]) {
    lengths[name] = scanLog(await readFile(join(path, name))).wholeBytes
  }
  const json = JSON.stringify(lengths)
  await writeFile(join(path, CLOSED_NOTE), `${json}\n${crc32(json)}\n`)
}

/** One that is missing or damaged itself says nothing. */
async function readClosedNote(path: string): Promise<ClosedLengths> {
  const text = await readFile(join(path, CLOSED_NOTE), 'utf8').catch(() => '')
  const [json, checksum] = text.split('\n')
  return checksum !== undefined && checksum === String(crc32(json)) ? (JSON.parse(json) as ClosedLengths) : {}
}

async function manifestName(path: string): Promise<string | undefined> {
  const current = await readFile(join(path, 'CURRENT'), 'latin1').catch(() => '')
  return /^(MANIFEST-\d+)\n$/.exec(current)?.[1]
}

/** Logs from a number on, the oldest first. */
async function logNames(path: string, firstLog: number): Promise<string[]> {
  const names = (await readdir(path)).filter((name) => /^\d+\.log$/.test(name) && Number.parseInt(name, 10) >= firstLog)
  return names.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
}

async function* damagedLogs(path: string, { firstLog }: LiveFiles, closed: ClosedLengths): AsyncGenerator<DamagedFile> {
  let newerIsUsed = false
  const found: DamagedFile[] = []
  for (const name of (await logNames(path, firstLog)).toReversed()) {
    const bytes = await readFile(join(path, name))
    // A log is followed by another one only once everything in it is synced.
    const closedBytes = newerIsUsed ? Infinity : closed[name]
    const why = bytes.length === 0 && newerIsUsed ? undefined : whyDamaged(scanLog(bytes), closedBytes)
    if (why !== undefined) found.push({ name, why })
    newerIsUsed ||= bytes.length > 0
  }
  yield* found.toReversed()
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** What was cut short at the end, behind what is known to have been whole, is no damage. */
function whyDamaged({ isDamaged, goesOn, wholeBytes }: ScannedLog, closedBytes: number = 0): string | undefined {
  if (isDamaged && (goesOn || closedBytes === Infinity))
    return `the record at byte ${wholeBytes} does not match its CRC-32C, and is not the last one`
  if (closedBytes !== Infinity && wholeBytes < closedBytes)
    return `only ${wholeBytes} of the ${closedBytes} bytes that it had when it was closed are whole`
  return undefined
}

function parsedManifest({ records }: ScannedLog): LiveFiles | string {
  try {
    return liveFiles(records)
  } catch (error) {
    return (error as Error).message
  }
}

function fileName(number: number, ending: string): string {
  return `${String(number).padStart(6, '0')}.${ending}`
}
