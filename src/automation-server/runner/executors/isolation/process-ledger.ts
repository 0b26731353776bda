import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createExclusively, ensurePrivateFolder } from '../../../../data-folder/exclusive-file.ts'
import { TIMER_MS_MAX } from '../../../domain/options.ts'
import { killMarked, killProcess } from './kill.ts'
import { processHost, startTicksOf } from './proc.ts'

/** A function's process, and the server that started it, as a file beside the data. */
interface LedgerRecord {
  readonly host: string
  readonly serverPid: number
  readonly serverStartTicks: string
  readonly pid: number
  readonly startTicks: string
  /** The mark in the environment of the process and of all that it starts. */
  readonly mark: string
}

const RECORD = /^[0-9a-f]{32}\.json$/

/**
 * The processes of functions: each is recorded before any code of the function runs in it, and removed when none of its
 * processes is left. So the next server ends what a killed one left behind. Without /proc nothing is recorded.
 */
export class ProcessLedger {
  readonly #folder: string

  /** One for each user and machine by default. */
  constructor(folder: string = join(tmpdir(), `stowage-processes-${process.getuid?.() ?? 0}`)) {
    this.#folder = folder
  }

  /** Resolves when the record is durable. */
  async add(pid: number, mark: string): Promise<void> {
    const host = await processHost()
    const [serverStartTicks, startTicks] = await Promise.all([startTicksOf(process.pid), startTicksOf(pid)])
    if (host === undefined || serverStartTicks === undefined || startTicks === undefined) return
    const record: LedgerRecord = { host, serverPid: process.pid, serverStartTicks, pid, startTicks, mark }
    await ensurePrivateFolder(this.#folder)
    await createExclusively(this.#pathOf(mark), JSON.stringify(record))
  }

  async remove(mark: string): Promise<void> {
    await rm(this.#pathOf(mark), { force: true })
  }

  /**
   * Ends the leftovers of servers that are gone, and resolves to the number of their runs. A pid that belongs to
   * another process by now is left alone.
   */
  async endLeftovers(): Promise<number> {
    const names = await readdir(this.#folder).catch(() => [])
    const host = await processHost()
    let ended = 0
    for (const name of names.filter((one) => RECORD.test(one))) {
      const path = join(this.#folder, name)
      const record = await readRecord(path)
      if (record !== undefined && record.host === host) {
        if ((await startTicksOf(record.serverPid)) === record.serverStartTicks) continue
        if (await endRecorded(record)) ended += 1
      } else if (!(await isPast(path))) continue
      await rm(path, { force: true })
    }
    return ended
  }

  #pathOf(mark: string): string {
    return join(this.#folder, `${mark}.json`)
  }
}

/** Whether there was anything to end. */
async function endRecorded({ pid, startTicks, mark }: LedgerRecord): Promise<boolean> {
  const isThere = (await startTicksOf(pid)) === startTicks
  // It leads its group, so the number of the group is its own while it lives.
  if (isThere) killProcess(-pid)
  return (await killMarked(mark)) > 0 || isThere
}

async function readRecord(path: string): Promise<LedgerRecord | undefined> {
  try {
    const record: unknown = JSON.parse(await readFile(path, 'utf8'))
    const { pid, serverPid } = record as LedgerRecord
    return Number.isSafeInteger(pid) && pid > 1 && Number.isSafeInteger(serverPid)
      ? (record as LedgerRecord)
      : undefined
  } catch {
    return undefined
  }
}

/**
 * Processes of another machine, or of a time before this machine's last start, cannot be seen from here. After the
 * longest time of a run they have ended there, too.
 */
async function isPast(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found === undefined || Date.now() - found.mtimeMs > TIMER_MS_MAX
}
