/** A pause of the process or of its machine takes up one part of a timeout at most. */
const PARTS = 4

/**
 * Calls `late` when the time has passed and the event loop has then looked once more for input: a process that was held
 * up itself must not blame its clients. If the whole machine was held up, what clients sent meanwhile is not there yet.
 * So the time passes in parts, each with a timer that begins when the one before has ended.
 */
export class Timeout {
  readonly #partMs: number
  readonly #late: () => void
  #partsLeft = 0
  #timer: NodeJS.Timeout | undefined
  #lastLook: NodeJS.Immediate | undefined

  constructor(timeoutMs: number, late: () => void) {
    this.#partMs = timeoutMs / PARTS
    this.#late = late
  }

  /** The time begins, or begins again. */
  start(): void {
    clearImmediate(this.#lastLook)
    this.#partsLeft = PARTS
    if (this.#timer === undefined) this.#timer = setTimeout(() => this.#endPart(), this.#partMs)
    else this.#timer.refresh()
  }

  cancel(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    clearImmediate(this.#lastLook)
  }

  #endPart(): void {
    this.#partsLeft--
    if (this.#partsLeft > 0) this.#timer?.refresh()
    else this.#lastLook = setImmediate(this.#late)
  }
}

/**
 * Waits for an event, for an abort (if there is a signal), or for `timeoutMs` to pass without it. `subscribe` receives
 * the function to call at the event and returns a function that unsubscribes. Rejects with the signal's reason, or with
 * the result of `late`.
 */
export function waitFor(
  subscribe: (happened: (error?: Error) => void) => () => void,
  limits: { readonly signal?: AbortSignal; readonly timeoutMs: number; readonly late: () => Error },
): Promise<void> {
  const { signal, timeoutMs, late } = limits
  return new Promise<void>((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error)
      return
    }
    const settle = (error?: Error): void => {
      timeout.cancel()
      signal?.removeEventListener('abort', onAbort)
      unsubscribe()
      if (error === undefined) resolve()
      else reject(error)
    }
    const onAbort = (): void => settle(signal?.reason as Error)
    const timeout = new Timeout(timeoutMs, () => settle(late()))
    timeout.start()
    signal?.addEventListener('abort', onAbort)
    const unsubscribe = subscribe(settle)
  })
}
