import { linkedAbort, orAborted } from '../../async/abort.ts'

/** However many requests walk meanwhile, a walk of upkeep begins anew at most so many times. */
const RESTARTS_MAX = 2

type Walk<T> = (signal: AbortSignal) => Promise<T>

/** A walk that upkeep has begun. */
export interface UpkeepWalk<T> {
  readonly walking: Promise<T>
  /** To be called when a request waits for it as well: from then on it is one of requests. */
  readonly join: () => void
}

/**
 * Walks that requests wait for go before those of upkeep, which would take processor time and memory from them: a walk
 * of upkeep waits for them, and when another one begins, it ends and begins anew afterwards.
 */
export class WalkPrecedence {
  /** The ends of the walks that requests wait for. */
  readonly #ofRequests = new Set<Promise<void>>()
  /** Each ends a walk of upkeep. */
  readonly #preempts = new Set<() => void>()

  ofRequest<T>(walking: Promise<T>): Promise<T> {
    const forget = (): void => void this.#ofRequests.delete(ended)
    const ended = walking.then(forget, forget)
    this.#ofRequests.add(ended)
    for (const preempt of this.#preempts) preempt()
    return walking
  }

  ofUpkeep<T>(walk: Walk<T>, signal: AbortSignal): UpkeepWalk<T> {
    const joined = new AbortController()
    const walking = this.#inTurn(walk, signal, joined.signal)
    return {
      walking,
      join: () => {
        if (joined.signal.aborted) return
        joined.abort()
        void this.ofRequest(walking)
      },
    }
  }

  async #inTurn<T>(walk: Walk<T>, signal: AbortSignal, joined: AbortSignal): Promise<T> {
    for (let begun = 0; begun <= RESTARTS_MAX && !joined.aborted; begun++) {
      await this.#turn(signal, joined)
      const { controller, unlink } = linkedAbort(signal)
      const preempt = (): void => {
        if (begun < RESTARTS_MAX && !joined.aborted) controller.abort(new Error('a request walks first'))
      }
      this.#preempts.add(preempt)
      try {
        return await walk(controller.signal)
      } catch (error) {
        if (signal.aborted || !controller.signal.aborted) throw error
      } finally {
        this.#preempts.delete(preempt)
        unlink()
      }
    }
    return walk(signal)
  }

  /** Waits for the walks that requests wait for now, or until a request joins. */
  async #turn(signal: AbortSignal, joined: AbortSignal): Promise<void> {
    const { controller, unlink } = linkedAbort(signal, joined)
    await orAborted(Promise.all(this.#ofRequests), controller.signal).catch(() => undefined)
    unlink()
    signal.throwIfAborted()
  }
}
