import { crc32OfAscii } from '../delta/crc32.ts'
import { REAL_ENVIRONMENT } from '../environment.ts'
import type { Random } from './random.ts'

/** Something that will happen, unless it is cancelled. */
export interface Scheduled {
  /** It no longer happens. */
  cancel(): void
}

interface Step {
  readonly atMs: number
  readonly label: string
  readonly act: () => void | Promise<void>
  isCancelled: boolean
}

/**
 * How often a look at the clock finds that time has passed, and how much at most: work takes time, so that long work
 * yields.
 */
const CLOCK_ADVANCES = 0.02
const CLOCK_ADVANCE_MS_MAX = 12
/**
 * Turns that are asked for together: the event loop takes them one after the other, and runs all microtasks and ticks
 * between two of them, in a tenth of the time that it takes to go round for each.
 */
const TURNS_AT_ONCE = 128

/**
 * Virtual time, and everything that waits for it. It alone decides the next event: a random one of the due steps; if
 * none is due, time jumps to the next step. Between two steps everything that a step released runs until it waits
 * again.
 */
export class Scheduler {
  readonly #random: Random
  readonly #stepsMax: number
  readonly #steps: Step[] = []
  #nowMs = 0
  #count = 0
  #digest = 0

  /** A run of more than `stepsMax` steps is taken for one that never ends. */
  constructor(random: Random, { stepsMax = 400_000 }: { readonly stepsMax?: number } = {}) {
    this.#random = random
    this.#stepsMax = stepsMax
  }

  /** The virtual time, in milliseconds. */
  get nowMs(): number {
    return this.#nowMs
  }

  /** How many steps were made. */
  get count(): number {
    return this.#count
  }

  /** Changes with every step and its time: two runs with the same digest went the same way. */
  get digest(): number {
    return this.#digest
  }

  /** Milliseconds of virtual time, which passes now and then while somebody looks. */
  look(): number {
    if (this.#random.chance(CLOCK_ADVANCES)) this.#nowMs += this.#random.below(CLOCK_ADVANCE_MS_MAX * 4) / 4
    return this.#nowMs
  }

  /**
   * So much time passes at once, as if all machines stood still: what was due meanwhile is due together then. Does nothing
   * if something is due within `quietMs`, because it is under way.
   */
  leap(durationMs: number, quietMs: number): void {
    if (this.#steps.every(({ atMs, isCancelled }) => isCancelled || atMs > this.#nowMs + quietMs))
      this.#nowMs += durationMs
  }

  /** `label` names the step, for the digest. Where `act` returns a promise, no other step is made before it settles. */
  schedule(delayMs: number, label: string, act: () => void | Promise<void>): Scheduled {
    const step: Step = { atMs: this.#nowMs + Math.max(0, delayMs), label, act, isCancelled: false }
    this.#steps.push(step)
    return { cancel: () => (step.isCancelled = true) }
  }

  /**
   * Makes steps until `isDone`. False where nothing was left to happen before that. Throws when it takes too many
   * steps.
   */
  async runUntil(isDone: () => boolean): Promise<boolean> {
    let turns: Promise<void>[] = []
    for (let turn = 0; ; turn++) {
      if (turn === turns.length) {
        turns = Array.from({ length: TURNS_AT_ONCE }, () => REAL_ENVIRONMENT.nextTurn())
        turn = 0
      }
      // By then all microtasks and ticks have run.
      await turns[turn]
      if (isDone()) return true
      const step = this.#next()
      if (step === undefined) return false
      if (++this.#count > this.#stepsMax) throw new Error(`the run has not ended after ${this.#stepsMax} steps`)
      this.#digest = crc32OfAscii(` ${this.#nowMs}`, crc32OfAscii(step.label, this.#digest))
      const isMade = step.act()
      if (isMade === undefined) continue
      await isMade
      // Those that were asked for before have passed meanwhile.
      turn = TURNS_AT_ONCE - 1
    }
  }

  #next(): Step | undefined {
    let firstMs = Infinity
    for (let at = this.#steps.length - 1; at >= 0; at--) {
      if (this.#steps[at].isCancelled) this.#steps.splice(at, 1)
      else firstMs = Math.min(firstMs, this.#steps[at].atMs)
    }
    if (this.#steps.length === 0) return undefined
    if (firstMs > this.#nowMs) this.#nowMs = firstMs
    const due = this.#steps.filter(({ atMs }) => atMs <= this.#nowMs)
    const step = due.length === 1 ? due[0] : this.#random.pick(due)
    this.#steps.splice(this.#steps.indexOf(step), 1)
    return step
  }
}
