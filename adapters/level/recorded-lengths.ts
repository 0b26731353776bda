import { close, constants, open, statSync, write } from 'node:fs'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import { QuickReads } from '../common/quick-reads.ts'
import { scanLog } from './log-file.ts'

/*
 * Plain descriptors, as a host may drop its storage without closing it: since Node 25 a `FileHandle` that is collected
 * unclosed ends the process (DEP0137).
 */
const openFile = promisify(open)
const writeFile = promisify(write)
const closeFile = promisify(close)

/*
 * A note beside a LevelDB of how long its manifest and its logs were at least, when the last write was acknowledged. LevelDB takes a log that ends early,
 * or that is gone, for the whole truth. With the note, the next opening can tell a write that a crash cut short from acknowledged writes that are lost.
 *
 * The note is written in place and never synced: after a power failure it may be old or unreadable, but what it says was true.
 */

const LENGTHS_FILE = 'lengths'
const LOG_NAME = /^\d+\.log$/
const OWNER_READS_AND_WRITES = 0o600
/** The note is padded to whole multiples, so that a shorter one covers a longer one. */
const NOTE_BYTES = 512

/** Bytes by the name of the file. */
export type FileLengths = Readonly<Record<string, number>>

/** Keeps the note of an open database. */
export class RecordedLengths {
  readonly #path: string
  readonly #descriptor: number
  /** Every write to the database waits for its note. */
  readonly #quick = new QuickReads()
  #lengths: Record<string, number> = {}
  #log = ''

  private constructor(path: string, descriptor: number) {
    this.#path = path
    this.#descriptor = descriptor
  }

  /** Starts the note of a database that was opened a moment ago. Rejects with the system's error. */
  static async start(path: string): Promise<RecordedLengths> {
    const flags = constants.O_RDWR | constants.O_CREAT
    const note = new RecordedLengths(path, await openFile(join(path, LENGTHS_FILE), flags, OWNER_READS_AND_WRITES))
    try {
      await note.#lookAround(lengthOf)
      await note.#write()
      return note
    } catch (error) {
      await closeFile(note.#descriptor)
      throw error
    }
  }

  /**
   * Call it when a write is durable and before it is acknowledged, one call at a time. A failure to write the note is
   * ignored: an older note says less, and nothing wrong.
   */
  async advance(): Promise<void> {
    try {
      const log = join(this.#path, this.#log)
      const read = this.#quick.tryNow(() => ({ bytes: statSync(log, { throwIfNoEntry: false })?.size }))
      const { bytes } = read ?? { bytes: await lengthOf(log) }
      // The write is in another log: LevelDB has begun a new one.
      if (bytes === undefined || bytes === this.#lengths[this.#log]) await this.#lookAround(lengthOf)
      else this.#lengths[this.#log] = bytes
      await this.#write()
    } catch {
      return
    }
  }

  /**
   * To be called when the database is closed: its manifest grows no more. A write that failed may have left a part of
   * itself: it does not count.
   */
  async finish(): Promise<void> {
    try {
      await this.#lookAround(wholeLengthOf)
      await this.#write()
    } finally {
      await closeFile(this.#descriptor)
    }
  }

  async #lookAround(measure: (path: string) => Promise<number | undefined>): Promise<void> {
    const lengths: Record<string, number> = {}
    const manifest = await manifestName(this.#path)
    const logs = await logNames(this.#path, 0)
    for (const name of [...(manifest === undefined ? [] : [manifest]), ...logs]) {
      const bytes = await measure(join(this.#path, name))
      if (bytes !== undefined) lengths[name] = bytes
    }
    this.#lengths = lengths
    this.#log = logs.at(-1) ?? ''
  }

  async #write(): Promise<void> {
    const json = JSON.stringify(this.#lengths)
    const text = `${json}\n${crc32(json)}\n`
    const padded = text.padEnd(Math.ceil(text.length / NOTE_BYTES) * NOTE_BYTES)
    await writeFile(this.#descriptor, padded, 0, 'latin1')
  }
}

/** The contents of the note. A missing or damaged note says nothing. */
export async function readLengths(path: string): Promise<FileLengths> {
  const text = (await readIfExists(join(path, LENGTHS_FILE)))?.toString('latin1') ?? ''
  const [json, checksum] = text.split('\n')
  return checksum !== undefined && checksum === String(crc32(json)) ? (JSON.parse(json) as FileLengths) : {}
}

/** After a database was rebuilt: its files may have names that the note knows. */
export async function forgetLengths(path: string): Promise<void> {
  await rm(join(path, LENGTHS_FILE), { force: true })
}

/** The manifest that `CURRENT` names. */
export async function manifestName(path: string): Promise<string | undefined> {
  const current = await readIfExists(join(path, 'CURRENT'))
  return /^(MANIFEST-\d+)\n$/.exec(current?.toString('latin1') ?? '')?.[1]
}

/** Logs from a number on, the oldest first. */
export async function logNames(path: string, firstLog: number): Promise<string[]> {
  const names = (await readdir(path)).filter((name) => LOG_NAME.test(name) && Number.parseInt(name, 10) >= firstLog)
  return names.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
}

/** `undefined` if the file does not exist; every other error is thrown. */
export function readIfExists(path: string): Promise<Buffer | undefined> {
  return undefinedIfAbsent(readFile(path))
}

async function lengthOf(path: string): Promise<number | undefined> {
  return (await undefinedIfAbsent(stat(path)))?.size
}

async function undefinedIfAbsent<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function wholeLengthOf(path: string): Promise<number | undefined> {
  return scanLog(await readFile(path)).wholeBytes
}
