import { pidsWithEnvironment } from './proc.ts'

/** Stands in the environment of a function's process, and of all that it starts. */
export const MARK_VARIABLE = 'STOWAGE_RUN_MARK'
const GONE: ReadonlySet<string | undefined> = new Set(['ESRCH', 'EPERM'])
/** A process that is being ended can start more meanwhile. */
const ROUNDS_MAX = 10

/**
 * A pid, or a group as its negative. A process that is gone is fine, and so is one that may not be signaled: it has
 * other rights, or is a zombie (macOS).
 */
export function killProcess(pid: number, signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!GONE.has((error as NodeJS.ErrnoException).code)) throw error
  }
}

/** Ends every process that has the mark in its environment, wherever it went, and resolves to how many those were. */
export async function killMarked(mark: string): Promise<number> {
  const killed = new Set<number>()
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const found = await pidsWithEnvironment(`${MARK_VARIABLE}=${mark}`)
    if (found.every((pid) => killed.has(pid))) break
    for (const pid of found) {
      killed.add(pid)
      killProcess(pid)
    }
  }
  return killed.size
}
