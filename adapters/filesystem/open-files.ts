import { readFileSync } from 'node:fs'

/** Kept where the limit of the process is not known. */
const KEPT_MIN = 256
/** A project of a million objects can have 2,500 packs until they are merged. */
const KEPT_MAX = 4_096
/** Most of what the system allows is for connections. */
const KEPT_SHARE = 1 / 8
const SOFT_LIMIT = /^Max open files\s+(\d+)/m

/**
 * How many files a process keeps open to read them again. `limits` is the table of `/proc/self/limits` on Linux, which
 * Node has raised to the hard limit when it started; without one that it can read, it keeps few.
 */
export function filesKeptOpen(limits: string | undefined = limitsOfProcess()): number {
  const [, softLimit] = SOFT_LIMIT.exec(limits ?? '') ?? []
  if (softLimit === undefined) return KEPT_MIN
  return Math.max(KEPT_MIN, Math.min(KEPT_MAX, Math.floor(Number(softLimit) * KEPT_SHARE)))
}

function limitsOfProcess(): string | undefined {
  try {
    return readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return undefined
  }
}
