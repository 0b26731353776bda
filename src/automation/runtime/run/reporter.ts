import type { Environment, Timer } from '../../../environment.ts'
import type { RunBackend } from '../run-backend.ts'
import type { FinalRunStatus, JsonObject, LogLine, Annotation, RunReport } from '../../author/run-data.ts'
import { ReportBuffer, type ReportParts } from './report-buffer.ts'
import { orAborted } from '../../../async/abort.ts'
import { isRefusal, type RunRetryOptions, withRetries } from './retry.ts'

export interface FinalReport {
  readonly status: FinalRunStatus
  readonly message: string
  readonly result?: JsonObject
}

export interface ReporterOptions {
  readonly environment: Environment
  readonly backend: RunBackend
  readonly retry: RunRetryOptions
  /** How long a report waits for more to be sent with it. */
  readonly flushIntervalMs: number
  /** How long the rest is retried after the run has ended. */
  readonly deliveryTimeoutMs: number
  /** Nobody listens any more: the run is over on the other side. */
  readonly onRefused: (error: unknown) => void
}

/**
 * Delivers the reports of a run one after the other, with retries for as long as the run lasts. A report keeps its
 * number until it is accepted, so a report that arrived without an answer changes nothing when it is sent again.
 */
export class Reporter {
  readonly #options: ReporterOptions
  readonly #buffer = new ReportBuffer()
  readonly #givenUp = new AbortController()
  #sequence = 1
  #timer: Timer | undefined
  #giveUpTimer: Timer | undefined
  #pumping: Promise<void> | undefined
  #failure: unknown
  #isClosed = false
  #finished: Promise<unknown> | undefined

  constructor(options: ReporterOptions) {
    this.#options = options
  }

  /** Why something was not taken that a repetition cannot help. */
  get failure(): unknown {
    return this.#failure
  }

  start(): void {
    this.#buffer.setRunning()
    this.#schedule()
  }

  result(result: Annotation): void {
    if (this.#isClosed) return
    this.#buffer.addAnnotation(result)
    this.#schedule()
  }

  line(line: LogLine): void {
    if (this.#isClosed) return
    this.#buffer.addLine(line)
    this.#schedule()
  }

  progress(progress: NonNullable<RunReport['progress']>): void {
    if (this.#isClosed) return
    this.#buffer.setProgress(progress)
    this.#schedule()
  }

  /** Resolves when enough is delivered to accept more. */
  async ready(): Promise<void> {
    while (this.#buffer.isHeldBack && !this.#givenUp.signal.aborted) await this.#flush()
  }

  /** Delivers the reports so far. Resolves in bounded time, whatever happens. */
  async drain(): Promise<void> {
    const { environment, deliveryTimeoutMs } = this.#options
    this.#giveUpTimer ??= environment.setTimer(deliveryTimeoutMs, () =>
      this.#givenUp.abort(new Error(`the delivery was given up after ${deliveryTimeoutMs} ms`)),
    )
    while (!this.#buffer.isEmpty && !this.#givenUp.signal.aborted) await this.#flush()
  }

  /**
   * Delivers the final report, once, and nothing after it. Resolves to why it could not be delivered, `undefined` when
   * it was.
   */
  finish(final: FinalReport): Promise<unknown> {
    this.#finished ??= this.#finish(final)
    return this.#finished
  }

  /** Ends everything; undelivered reports are lost. */
  close(): void {
    this.#timer?.cancel()
    this.#giveUpTimer?.cancel()
    this.#isClosed = true
    this.#givenUp.abort()
  }

  async #finish(final: FinalReport): Promise<unknown> {
    try {
      await this.drain()
      this.#isClosed = true
      await this.#pumping
      // A run whose other reports were given up must not end as if they had arrived.
      this.#givenUp.signal.throwIfAborted()
      await this.#send(final)
      return undefined
    } catch (error) {
      return this.#givenUp.signal.aborted ? (this.#failure ?? error) : error
    } finally {
      this.close()
    }
  }

  #schedule(): void {
    if (this.#pumping !== undefined || this.#isClosed) return
    if (this.#buffer.isFull) void this.#flush()
    else {
      const { environment, flushIntervalMs } = this.#options
      this.#timer ??= environment.setTimer(flushIntervalMs, () => void this.#flush()).unref()
    }
  }

  /** One delivery at a time: the numbers of reports follow each other. */
  #flush(): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#pumping ??= this.#pump().finally(() => {
      this.#pumping = undefined
      if (!this.#buffer.isEmpty) this.#schedule()
    })
    return this.#pumping
  }

  async #pump(): Promise<void> {
    while (!this.#buffer.isEmpty && !this.#givenUp.signal.aborted) {
      try {
        await this.#send(this.#buffer.take())
      } catch (error) {
        if (error !== this.#givenUp.signal.reason) this.#failure ??= error
        if (isRefusal(error)) this.#options.onRefused(error)
      }
    }
  }

  async #send(parts: ReportParts): Promise<void> {
    const { backend, environment, retry } = this.#options
    const { signal } = this.#givenUp
    const report: RunReport = { sequence: this.#sequence, ...parts }
    const attempt = (): Promise<unknown> => orAborted(backend.report(report, { signal }), signal)
    await withRetries(attempt, signal, { ...retry, attemptsMax: Infinity }, environment)
    this.#sequence += 1
  }
}
