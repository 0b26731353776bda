import { orAborted } from './abort.ts'

interface Running<T> {
  readonly result: Promise<T>
  readonly controller: AbortController
  waiting: number
}

/**
 * One run for all callers that ask for the same thing at the same time; it is aborted when the last waiting caller has
 * left.
 */
export class SingleFlight<T> {
  readonly #running = new Map<string, Running<T>>()

  async run(key: string, signal: AbortSignal, task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    const running = this.#running.get(key) ?? this.#start(key, task)
    running.waiting++
    try {
      return await orAborted(running.result, signal)
    } finally {
      running.waiting--
      if (running.waiting === 0) {
        if (this.#running.get(key) === running) this.#running.delete(key)
        running.controller.abort(new Error('nothing waits for it any more'))
      }
    }
  }

  #start(key: string, task: (signal: AbortSignal) => Promise<T>): Running<T> {
    const controller = new AbortController()
    const running: Running<T> = { result: task(controller.signal), controller, waiting: 0 }
    // Before any caller learns of the result: one that asks again after a failure must not meet the same one.
    const forget = (): void => {
      if (this.#running.get(key) === running) this.#running.delete(key)
    }
    running.result.then(forget, forget)
    this.#running.set(key, running)
    return running
  }
}
