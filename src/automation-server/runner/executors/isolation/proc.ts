import { readdir, readFile, readlink } from 'node:fs/promises'

const KB = 1_024
const PID = /^\d+$/
/** proc_pid_stat(5): fields are counted from 1, and the first two come before the last parenthesis. */
const START_FIELD = 22
const FIELDS_BEFORE = 3

/**
 * When a process started, in ticks since the machine did. Together with the pid, this names one process for as long as
 * the machine is up. `undefined` for a process that has ended, and if the system has no /proc.
 */
export async function startTicksOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return stat === '' || /[ZX]/.test(state) ? undefined : fields[START_FIELD - FIELDS_BEFORE - 1]
}

/** proc_pid_status(5). */
export async function residentBytesOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * KB
}

/** The processes themselves and everything below them, each before its children. */
export async function withDescendants(pids: Iterable<number>): Promise<ReadonlySet<number>> {
  const found = new Set(pids)
  for (const pid of found) for (const child of await childrenOf(pid)) found.add(child)
  return found
}

/** proc_tid_children(5): each thread has those that it started. */
export async function childrenOf(pid: number): Promise<readonly number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')),
  )
  return lists.flatMap((list) =>
    list
      .split(' ')
      .map(Number)
      .filter((child) => child > 0),
  )
}

/**
 * Processes of this user that have the mark in their environment, except those in `known`, which afterwards holds all
 * existing processes. A process keeps its environment when it leaves its group, its session and its parent.
 */
export async function pidsWithEnvironment(setting: string, known: Set<number> = new Set()): Promise<readonly number[]> {
  const names = await readdir('/proc').catch(() => [])
  const pids = names.filter((name) => PID.test(name)).map(Number)
  const there = new Set(pids)
  for (const pid of known) if (!there.has(pid)) known.delete(pid)
  const found: number[] = []
  for (const pid of pids.filter((one) => !known.has(one))) {
    known.add(pid)
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (`\0${environment}`.includes(`\0${setting}\0`)) found.push(pid)
  }
  return found
}

/**
 * Names the machine since its start, and the pid namespace of this process; `undefined` if the system does not tell.
 */
export async function processHost(): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
    return `${boot.trim()} ${await readlink('/proc/self/ns/pid')}`
  } catch {
    return undefined
  }
}
