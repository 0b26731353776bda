import { onAbort, orAborted } from '../../async/abort.ts'
import { timerAfter } from '../common/concurrency.ts'
import { ClientError, networkError, quoted } from '../common/errors.ts'

/** One request under way: it ends with the caller's signal, and after too long a silence. */
export class Attempt {
  readonly what: string
  readonly #controller = new AbortController()
  readonly #caller: AbortSignal | undefined
  readonly #stallTimeoutMs: number
  readonly #unlink: () => void

  constructor(what: string, caller: AbortSignal | undefined, stallTimeoutMs: number) {
    this.what = what
    this.#caller = caller
    this.#stallTimeoutMs = stallTimeoutMs
    this.#unlink = caller === undefined ? () => undefined : onAbort(caller, () => this.#controller.abort(caller.reason))
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /**
   * Waits for one step of the network, at most for the stall timeout and `extraMs`, even if the step ignores the
   * signal. Any error ends the attempt.
   */
  async within<T>(step: () => Promise<T>, extraMs: number = 0): Promise<T> {
    const limitMs = this.#stallTimeoutMs + extraMs
    const stalled = new ClientError('timed_out', `${this.what} received nothing for ${Math.round(limitMs)} ms`, {
      isRetryable: true,
    })
    const timer = timerAfter(limitMs, () => this.#controller.abort(stalled))
    try {
      return await orAborted(step(), this.signal)
    } catch (error) {
      const { signal } = this
      const cause: unknown =
        this.#caller?.aborted === true
          ? this.#caller.reason
          : signal.aborted
            ? signal.reason
            : networkError(this.what, error)
      this.end()
      throw cause
    } finally {
      clearTimeout(timer)
    }
  }

  /** Frees the connection, if it is still in use. */
  end(): void {
    this.#unlink()
    if (!this.signal.aborted) this.#controller.abort(new ClientError('network_failed', `${this.what} was given up`))
  }
}

/** An answer whose body is still to come. It is read once, or cancelled. */
export class Answer {
  readonly status: number
  readonly headers: Headers
  readonly what: string
  /**
   * Held whole: Node cancels an unread body whose `Response` was garbage-collected, even if its body is still in use.
   */
  readonly #response: Response
  readonly #attempt: Attempt

  constructor(response: Response, attempt: Attempt) {
    this.status = response.status
    this.headers = response.headers
    this.what = attempt.what
    this.#response = response
    this.#attempt = attempt
  }

  /** The body as it arrives, without its `Content-Encoding`. Returning early frees the connection. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    const reader = this.#response.body?.getReader()
    try {
      while (reader !== undefined) {
        const { done, value } = await this.#attempt.within(() => reader.read())
        if (done) break
        yield value
      }
    } finally {
      this.cancel()
      reader?.cancel().catch(() => undefined)
    }
  }

  /** The whole body. Throws `invalid_answer` when it is longer, or not UTF-8. */
  async text(bytesMax: number): Promise<string> {
    const decoder = new TextDecoder('utf-8', { fatal: true })
    const decoded = (chunk?: Uint8Array): string => {
      try {
        return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
      } catch (cause) {
        throw new ClientError('invalid_answer', `${this.what} answered with invalid UTF-8`, { cause })
      }
    }
    let text = ''
    let bytes = 0
    for await (const chunk of this.chunks()) {
      bytes += chunk.length
      if (bytes > bytesMax)
        throw new ClientError('invalid_answer', `${this.what} answered with more than ${bytesMax} bytes`)
      text += decoded(chunk)
    }
    return text + decoded()
  }

  /** Whether this is the content type, regardless of its parameters. */
  hasType(type: string): boolean {
    return this.headers.get('Content-Type')?.toLowerCase().startsWith(type) === true
  }

  /**
   * Throws `invalid_answer` for another content type: a proxy between client and service may answer with its own pages,
   * and a success status.
   */
  checkType(type: string): void {
    if (this.hasType(type)) return
    this.cancel()
    const given = this.headers.get('Content-Type')
    throw new ClientError(
      'invalid_answer',
      `${this.what} answered with ${given === null ? 'no content type' : `the content type ${quoted(given)}`} where ${type} was asked for`,
    )
  }

  /** The number in a header; `undefined` if there is none. */
  count(header: string): number | undefined {
    const value = this.headers.get(header)
    return value !== null && /^\d{1,15}$/.test(value) ? Number(value) : undefined
  }

  /** Frees the connection. A body that ignores the signal is canceled too. */
  cancel(): void {
    this.#attempt.end()
    const { body } = this.#response
    if (body?.locked === false) body.cancel().catch(() => undefined)
  }
}
