import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const NANOSECONDS = 1e9
const MICROSECONDS = 1e6

/** Seconds of processor time. */
export interface ThreadSeconds {
  readonly main: number
  readonly others: number
}

/** The time that each kind of thread of a process takes while `work` runs. Linux only. */
export async function secondsDuring(pid: number, work: () => Promise<unknown>): Promise<ThreadSeconds> {
  const before = threadSeconds(pid)
  await work()
  const after = threadSeconds(pid)
  return { main: after.main - before.main, others: after.others - before.others }
}

/** Seconds that this process took since `before`. */
export function secondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / MICROSECONDS
}

/** The time of `gzip` with this option over a file: the second line of the shell's `times`, which is that of its children. */
export function gzipSeconds(option: string, file: string): number {
  const printed = execFileSync('sh', ['-c', 'gzip "$1" "$0" > /dev/null; times', file, option], { encoding: 'utf8' })
  let seconds = 0
  for (const [, minutes, rest] of (printed.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g))
    seconds += Number(minutes) * 60 + Number(rest)
  return seconds
}

/** Neither can work be done faster than the main thread does its part, nor than all threads do theirs on all cores. */
export function shortestSeconds({ main, others }: ThreadSeconds, cores: number): number {
  return Math.max(main, (main + others) / cores)
}

function threadSeconds(pid: number): ThreadSeconds {
  let main = 0
  let others = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
    if (Number(thread) === pid) main += Number(nanoseconds) / NANOSECONDS
    else others += Number(nanoseconds) / NANOSECONDS
  }
  return { main, others }
}
