import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import { linkedAbort } from './abort.ts'

/** A host's own `authenticate` that never settles must not keep the service from closing. */
const LETTING_GO_MS_MAX = 5_000

/** One request, or one call in process, from its start until its last byte is out. */
export interface InFlightRequest {
  readonly signal: AbortSignal
  readonly abort: (reason: Error) => void
  end(): void
}

/** Everything that is under way, so that closing can wait for it and then cut it off. */
export class InFlightRequests {
  readonly #environment: Environment
  readonly #controllers = new Set<AbortController>()
  #closing = false
  #landed: (() => void) | undefined

  constructor(environment: Environment = REAL_ENVIRONMENT) {
    this.#environment = environment
  }

  get closing(): boolean {
    return this.#closing
  }

  get size(): number {
    return this.#controllers.size
  }

  /**
   * Also while closing: a request that receives 503 is in flight until that is sent. An abort of `parent` aborts the
   * request too.
   */
  begin(parent?: AbortSignal): InFlightRequest {
    const { controller, unlink } = linkedAbort(parent)
    this.#controllers.add(controller)
    return {
      signal: controller.signal,
      abort: (reason) => controller.abort(reason),
      end: () => {
        unlink()
        this.#controllers.delete(controller)
        if (this.#controllers.size === 0) this.#landed?.()
      },
    }
  }

  /** Throws `closing` once `close` was called. */
  checkOpen(): void {
    if (this.#closing) throw closingError()
  }

  /** Refuses new requests, waits `graceMs`, aborts the rest and gives them a moment to end. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    if (this.#controllers.size === 0) return
    await new Promise<void>((resolve) => {
      const abortTimer = this.#environment.setTimer(graceMs, () => this.#abortAll())
      const lastTimer = this.#environment.setTimer(graceMs + LETTING_GO_MS_MAX, () => this.#landed?.())
      this.#landed = () => {
        abortTimer.cancel()
        lastTimer.cancel()
        resolve()
      }
    })
  }

  #abortAll(): void {
    for (const controller of this.#controllers) controller.abort(closingError())
  }
}

function closingError(): StowageError {
  return new StowageError('closing', 'the service is closing; try again a little later')
}
