import { readdirSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'

/** By how much the other threads of the process are nicer than its main thread. */
const NICENESS = 10

/**
 * Lets the main thread, which parses and answers, run before the threads that compress, read, write, compile and collect
 * for it. Otherwise Linux interrupts the main thread when it gives them work, even while another core is idle: it starts
 * them on the core of whoever wakes them. Threads that these start inherit it; child processes of the main thread do
 * not.
 *
 * Only Linux has a niceness for each thread (setpriority(2)). Elsewhere, and where /proc is not there, nothing changes.
 */
export function preferMainThread(): void {
  for (const threadId of otherThreadIds()) {
    try {
      setPriority(threadId, Math.min(constants.priority.PRIORITY_LOW, getPriority(threadId) + NICENESS))
    } catch {
      // The thread has ended, or the system forbids it. The server works without.
    }
  }
}

function otherThreadIds(): number[] {
  if (process.platform !== 'linux') return []
  try {
    return readdirSync('/proc/self/task')
      .map(Number)
      .filter((threadId) => threadId !== process.pid)
  } catch {
    return []
  }
}
