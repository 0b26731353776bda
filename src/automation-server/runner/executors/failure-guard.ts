import { failCurrentRun } from '../../../automation/runtime/run/failures.ts'

const EVENTS = ['uncaughtException', 'unhandledRejection'] as const
type FailureEvent = (typeof EVENTS)[number]
type Listener = (error: unknown) => void
/** Marks the listeners of all guards of a process, whichever copy of this package they come from. */
const GUARD = Symbol.for('stowage.automation.failure-guard')

/**
 * Errors that functions in this process throw in timers, events and unawaited promises would end the process. This
 * guard lets each end its run instead. Errors from elsewhere are the host's: its own listeners see them, and without a
 * listener the process ends as it would without the guard.
 */
export class FailureGuard {
  readonly #listeners = new Map<FailureEvent, Listener>()

  /** Starts the guard. Functions may throw after their run has ended, so it watches until `close`. */
  watch(): void {
    if (this.#listeners.size > 0) return
    for (const event of EVENTS) {
      const listener = Object.assign((error: unknown) => this.#happened(event, error), { [GUARD]: true })
      this.#listeners.set(event, listener)
      process.on(event, listener)
    }
  }

  close(): void {
    for (const [event, listener] of this.#listeners) process.off(event, listener)
    this.#listeners.clear()
  }

  #happened(event: FailureEvent, error: unknown): void {
    if (failCurrentRun(error)) return
    const listeners = process.listeners(event as 'uncaughtException') as Listener[]
    const guards = listeners.filter((listener) => GUARD in listener)
    // Of several guards the first one speaks for all of them.
    if (guards.length < listeners.length || guards[0] !== this.#listeners.get(event)) return
    if (event === 'uncaughtException') for (const guard of guards) process.off(event, guard)
    process.nextTick(() => {
      // oxlint-disable-next-line typescript/only-throw-error -- rethrows the original value
      throw error
    })
  }
}
