import type { Random } from './random.ts'

/**
 * What can go wrong, each at one call to the storage:
 *
 * - `crash`: the process that called is killed, before the call takes effect or after; of every write that it has under way any part takes effect.
 * - `powerLoss`: all processes are.
 * - `error`: the call fails and changes nothing.
 * - `lostAnswer`: the call takes effect, and fails all the same.
 * - `partial`: of a call that writes many things, each for itself, some take effect, and the call fails.
 * - `hang`: the call is never answered, whether or not it takes effect.
 * - `slow`: the call takes seconds.
 * - `full`: this write and some that follow fail since the disk is full.
 * - `sleep`: the process that called stands still, for seconds or for hours, while others go on.
 * - `flip`: one bit of what is stored changes.
 */
export const FAULT_KINDS = [
  'crash',
  'powerLoss',
  'error',
  'lostAnswer',
  'partial',
  'hang',
  'slow',
  'full',
  'sleep',
  'flip',
] as const
/** The name of something that can go wrong. */
export type FaultKind = (typeof FAULT_KINDS)[number]

/** Of no interest at calls that read. */
const OF_WRITES: ReadonlySet<FaultKind | undefined> = new Set<FaultKind | undefined>(['lostAnswer', 'partial'])

/** Something that goes wrong at one call. */
export interface Fault {
  /** What happens. */
  readonly kind: FaultKind
  /** Counted over all calls of all processes. */
  readonly atCall: number
}

/** A call that takes long, among the calls of the processes of one machine. */
export interface HeldCall {
  /** The name of the machine: its processes are named after it. */
  readonly machine: string
  /** How the call is named: its method, and the kind of what it is about, such as `getMany k` or `read pack`. */
  readonly call: string
  /** Which of the calls of that name: the first is 1. */
  readonly nth: number
  /** How long it takes, in virtual time. */
  readonly durationMs: number
}

/** Faults for a run of about `calls` calls: none in some runs, many in others. */
export function planFaults(random: Random, kinds: readonly FaultKind[], calls: number): Fault[] {
  if (kinds.length === 0 || random.chance(0.2)) return []
  // Few kinds at a time: a run that is full of all of them gets nowhere.
  const some = random.shuffled(kinds).slice(0, random.between(1, 3))
  const count = random.between(1, random.chance(0.3) ? 12 : 4)
  const faults = Array.from({ length: count }, () => ({ kind: random.pick(some), atCall: random.below(calls) }))
  return faults.sort((a, b) => a.atCall - b.atCall)
}

/** Decides which fault each call meets. */
export class FaultInjector {
  readonly #faults: Fault[]
  readonly #fired = new Set<FaultKind>()
  readonly #waiting: FaultKind[] = []
  readonly #held = new Map<HeldCall, number>()
  #calls = 0
  #fullUntilCall = 0
  #isStopped = false

  constructor(faults: readonly Fault[]) {
    this.#faults = [...faults]
  }

  /** Calls so far. */
  get calls(): number {
    return this.#calls
  }

  /** The faults so far. */
  get fired(): ReadonlySet<FaultKind> {
    return this.#fired
  }

  /** Whether nothing goes wrong at the moment. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Whether the disk is full at the moment. */
  get isDiskFull(): boolean {
    return !this.#isStopped && this.#calls < this.#fullUntilCall
  }

  /** Something happened that no call caused. */
  happened(kind: FaultKind): void {
    this.#fired.add(kind)
  }

  /** The call that comes after so many others fails too. */
  plan(kind: FaultKind, afterCalls: number): void {
    this.#faults.push({ kind, atCall: this.#calls + afterCalls })
  }

  /** From now on the calls of a machine are counted, until the one comes that takes long. */
  hold(held: HeldCall): void {
    this.#held.set(held, held.nth)
  }

  /** How long this call of a process takes because it is held back: 0 for most. */
  heldMs(process: string, call: string): number {
    for (const [held, left] of this.#held) {
      if (held.call !== call || !process.startsWith(`${held.machine}.`)) continue
      if (left > 1) this.#held.set(held, left - 1)
      else {
        this.#held.delete(held)
        // Whoever waits for it may give up.
        this.#fired.add('hang')
        return held.durationMs
      }
    }
    return 0
  }

  /** Nothing goes wrong from now on. */
  stop(): void {
    this.#isStopped = true
    this.#held.clear()
  }

  /** Nothing goes wrong while this work is done. */
  async without<T>(work: () => Promise<T>): Promise<T> {
    const wasStopped = this.#isStopped
    this.#isStopped = true
    try {
      return await work()
    } finally {
      this.#isStopped = wasStopped
    }
  }

  /** The fault of the next call. Some faults wait for a call that writes. */
  next(random: Random, isWrite: boolean): FaultKind | undefined {
    const call = this.#calls++
    if (this.#isStopped) return undefined
    const planned = this.#faults.find(({ atCall }) => atCall === call)?.kind
    if (planned !== undefined && !isWrite && OF_WRITES.has(planned)) this.#waiting.push(planned)
    const kind = isWrite ? (planned ?? this.#waiting.shift()) : OF_WRITES.has(planned) ? undefined : planned
    if (kind === undefined) return undefined
    this.#fired.add(kind)
    if (kind === 'full') this.#fullUntilCall = call + 1 + random.between(1, 30)
    return kind
  }
}
