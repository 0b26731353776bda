import { randomBytes, randomInt } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { TEMPORARY_SUFFIX, writeFileDurably } from './durable-files.ts'
import { isRunning, parsedHolder, type ProcessHolder, thisProcess } from './process-holder.ts'

/** A place that this process alone uses until it gives it back. */
export interface ExclusivePlace {
  release(): Promise<void>
}

/** Somebody else uses the place. */
export interface OccupiedPlace {
  /** `undefined` if the file does not tell. */
  readonly holder: ProcessHolder | undefined
  /** The file that says so. */
  readonly file: string
}

/** Two that begin at the same moment see each other, and both give way for so long. */
const TRIES_MAX = 3
const PAUSE_MS = { from: 50, to: 300 } as const

/**
 * Takes a place of files, such as a file that grows or a folder, for one holder. Each puts a file of its own beside the
 * place (`<place>.lock-<pid>-<random>`) and then looks for those of others. The name is never used again, so the file
 * of a process that was killed can be removed without a race. No links: the place may be on a medium that has none.
 */
export async function takePlace(path: string): Promise<ExclusivePlace | OccupiedPlace> {
  const [folder, own] = [dirname(path), `${basename(path)}.lock-${process.pid}-${randomBytes(4).toString('hex')}`]
  const release = (): Promise<void> => rm(join(folder, own), { force: true })
  for (let tries = 1; ; tries++) {
    await writeFileDurably(folder, own, `${JSON.stringify(await thisProcess())}\n`, { replace: true })
    const other = await firstOther(path, own)
    if (other === undefined) return { release }
    await release()
    if (tries === TRIES_MAX) return other
    await delay(randomInt(PAUSE_MS.from, PAUSE_MS.to))
  }
}

/** Removes the files of processes that are gone. */
async function firstOther(path: string, own: string): Promise<OccupiedPlace | undefined> {
  const [folder, prefix] = [dirname(path), `${basename(path)}.lock-`]
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix) || name === own) continue
    const file = join(folder, name)
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) continue
    const holder = parsedHolder(text)
    const isGone = holder !== undefined && holder.host === hostname() && !(await isRunning(holder))
    if (isGone) await rm(file, { force: true })
    // Whether a process of another machine runs, nobody here knows. One that still writes its file will see ours.
    else if (!name.endsWith(TEMPORARY_SUFFIX)) return { holder, file }
  }
  return undefined
}
