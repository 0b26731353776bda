import type { Environment } from '../environment.ts'

/** How long all of them together may keep one turn of the event loop busy, beside the step that is under way then. */
const SHARE_MS = 4

/**
 * The share of one turn of the event loop that everything may take that computes for long. If each of 22 uploads went
 * on in every turn, for as long as one of them may, a turn would take a fifth of a second, and a small request, which
 * needs a few dozen turns, several seconds. So they queue, first come, first served, and what finds the share used up
 * goes on in a later turn.
 */
class WorkTurns {
  readonly #environment: Environment
  readonly #waiting: (() => void)[] = []
  #isServing = false

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** Resolves in a later turn of the event loop that has time for it. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      if (!this.#isServing) void this.#serve()
    })
  }

  async #serve(): Promise<void> {
    this.#isServing = true
    while (this.#waiting.length > 0) {
      await this.#environment.nextTurn()
      const beganMs = this.#environment.monotonicMs()
      do {
        this.#waiting.shift()?.()
        // A tick comes only when all immediate work of the one before is done.
        await new Promise<void>((resolve) => process.nextTick(resolve))
      } while (this.#waiting.length > 0 && this.#environment.monotonicMs() - beganMs < SHARE_MS)
    }
    this.#isServing = false
  }
}

/** Those of one environment share one event loop. */
const turnsOf = new WeakMap<Environment, WorkTurns>()

export function nextWorkTurn(environment: Environment): Promise<void> {
  let turns = turnsOf.get(environment)
  if (turns === undefined) turnsOf.set(environment, (turns = new WorkTurns(environment)))
  return turns.next()
}
