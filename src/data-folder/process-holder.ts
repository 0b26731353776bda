import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'

/** Zombies and dead processes. */
const ENDED: ReadonlySet<string> = new Set(['Z', 'X'])

/** A process that holds something, as it says in a file. */
export interface ProcessHolder {
  readonly pid: number
  readonly host: string
  /** ISO 8601, since when the process holds it. */
  readonly openedAt: string
  /** Distinguishes the process from a later one with the same pid; empty if the system offers no such value. */
  readonly incarnation: string
}

export async function thisProcess(): Promise<ProcessHolder> {
  return {
    pid: process.pid,
    host: hostname(),
    openedAt: new Date().toISOString(),
    incarnation: await incarnationOf(process.pid),
  }
}

/** `undefined` for a text that names no process. */
export function parsedHolder(text: string): ProcessHolder | undefined {
  try {
    const parsed: unknown = JSON.parse(text)
    return isHolder(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether the process of this machine still runs. If the system does not report the start time of a process (other than
 * Linux), a later process with the same pid is taken for it.
 */
export async function isRunning({ pid, incarnation }: ProcessHolder): Promise<boolean> {
  return isAlive(pid) && (incarnation === '' || incarnation === (await incarnationOf(pid)))
}

function isHolder(value: unknown): value is ProcessHolder {
  if (typeof value !== 'object' || value === null) return false
  const { pid, host, openedAt, incarnation: born } = value as Record<string, unknown>
  return (
    Number.isSafeInteger(pid) &&
    (pid as number) > 0 &&
    [host, openedAt, born].every((field) => typeof field === 'string')
  )
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Boot and start time of a process on Linux (proc(5): `starttime` is the 22nd field of stat, the 20th after the name).
 * Empty for one that has ended and that its parent has not noticed.
 */
export async function incarnationOf(pid: number): Promise<string> {
  try {
    const [boot, stat] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
    ])
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return ENDED.has(fields[0]) ? '' : `${boot.trim()}/${fields[19]}`
  } catch {
    return ''
  }
}
