import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** The unit of `/proc`, on every Linux that Node runs on. */
const CLOCK_TICKS_PER_SECOND = 100
const MEGABYTE = 1_000_000

/** Processor time since boot, in seconds. */
export interface MachineTime {
  readonly total: number
  readonly busy: number
  readonly steal: number
  /** That of this process and all that descend from it, those that ended included. */
  readonly own: number
}

export interface MachineUse {
  readonly stealShare: number
  readonly othersShare: number
}

/** What the machine did up to now; zeros where there is no `/proc`. */
export function machineTime(): MachineTime {
  const stat = readText('/proc/stat')
  if (stat === undefined) return { total: 0, busy: 0, steal: 0, own: 0 }
  const [user, nice, system, idle, iowait, irq, softirq, steal] = stat
    .slice(0, stat.indexOf('\n'))
    .split(/\s+/)
    .slice(1)
    .map((ticks) => Number(ticks) / CLOCK_TICKS_PER_SECOND)
  const busy = user + nice + system + irq + softirq
  return { total: busy + idle + iowait + steal, busy, steal, own: ownSeconds() }
}

/** The shares of the machine that others took between two looks. */
export function machineUse(before: MachineTime, after: MachineTime): MachineUse {
  const total = after.total - before.total
  if (total <= 0) return { stealShare: 0, othersShare: 0 }
  const others = after.busy - before.busy - (after.own - before.own)
  return { stealShare: (after.steal - before.steal) / total, othersShare: Math.max(0, others) / total }
}

/** The share of the machine that one tick of the clocks is, over a time: shorter measurements tell nothing. */
export function ticksShare(seconds: number): number {
  return 2 / CLOCK_TICKS_PER_SECOND / (seconds * availableParallelism())
}

/** Seconds of processor time of a process, in user code and in the kernel. */
export function processCpuSeconds(pid: number): number {
  const fields = statFields(String(pid))
  if (fields === undefined) throw new Error(`process ${pid} has ended`)
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND
}

/** Begins a new measurement of the peak memory. */
export function resetPeakMemory(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/** The most resident memory since the last reset, mapped files included. */
export function peakResidentMb(pid: number): number {
  return statusKilobytes(pid, 'VmHWM') / (MEGABYTE / 1_024)
}

export function residentMb(pid: number): number {
  return statusKilobytes(pid, 'VmRSS') / (MEGABYTE / 1_024)
}

function statusKilobytes(pid: number, name: string): number {
  const [, kibibytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readText(`/proc/${pid}/status`) ?? '') ?? []
  return Number(kibibytes)
}

function ownSeconds(): number {
  const parents = new Map<number, number>()
  const ticks = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statFields(name) : undefined
    if (fields === undefined) continue
    parents.set(Number(name), Number(fields[1]))
    ticks.set(
      Number(name),
      fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0),
    )
  }
  let own = 0
  for (const [pid, count] of ticks) if (descends(pid, parents)) own += count
  return own / CLOCK_TICKS_PER_SECOND
}

function descends(from: number, parents: ReadonlyMap<number, number>): boolean {
  for (let pid: number | undefined = from; pid !== undefined && pid > 1; pid = parents.get(pid))
    if (pid === process.pid) return true
  return false
}

/** The fields behind the name: the state, the parent, and so on. */
function statFields(pid: string): readonly string[] | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
