import { onAbort } from '../../../async/abort.ts'
import { sleep } from '../../../async/sleep.ts'
import { type Environment, REAL_ENVIRONMENT, type Timer } from '../../../environment.ts'
import { type AutomationFunction, RunCanceled, RunFailed } from '../../author/function.ts'
import { InputsError } from '../../author/inputs/errors.ts'
import type { LogLevel } from '../../author/run-data.ts'
import { PendingCalls } from './pending-calls.ts'
import { withinRun } from './failures.ts'
import { startHeartbeat } from './heartbeat.ts'
import { Mark } from './marks.ts'
import { type FinalReport, Reporter } from './reporter.ts'
import { isRefusal, isRetryable } from './retry.ts'
import { RunContext, type RunContextParts } from './run-context.ts'
import type { RunOptions, RunOutcome } from './run-options.ts'
import { SecretRedactor } from './secret-redactor.ts'
import { timerMs } from './timer.ts'
import { cut, describeThrown, messageText, shown, shownWithout, TEXT_LIMITS } from './texts.ts'

/** A run under way. */
export interface StartedRun {
  /** Never rejects. */
  readonly outcome: Promise<RunOutcome>
  /**
   * Ends the run as an exception, for an error outside the function's own promise. The function has its grace period,
   * or the one given here.
   */
  fail(error: unknown, graceMs?: number): void
  /** As when `signal` aborts with this reason. The function then has its grace period, or as long as is given here. */
  stop(reason: Error, graceMs?: number): void
}

const LEASE_INTERVAL_MS = 10_000
const FLUSH_MS = 500
const DELIVER_MS = 300_000

/**
 * Runs a function once, from the parsing of its inputs to its final report. Whatever the function does, this resolves;
 * it never rejects.
 */
export function runFunction(automationFunction: AutomationFunction, options: RunOptions): Promise<RunOutcome> {
  return startRun(automationFunction, options).outcome
}

/** Starts a run that can be ended from outside. Throws nothing: failures are its outcome. */
export function startRun(automationFunction: AutomationFunction, options: RunOptions): StartedRun {
  const run = new Run(automationFunction, options)
  return {
    outcome: run.run(),
    fail: (error, graceMs) => run.fail(error, graceMs),
    stop: (reason, graceMs) => run.stop(reason, graceMs),
  }
}

/** The way in which the function ended. */
type Ending =
  | { readonly kind: 'returned' }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'stayed' }

class Run {
  readonly #function: AutomationFunction
  readonly #options: RunOptions
  readonly #environment: Environment
  readonly #redactor: SecretRedactor
  readonly #stop = new AbortController()
  readonly #ended = new AbortController()
  readonly #calls = new PendingCalls()
  readonly #mark = new Mark()
  readonly #reporter: Reporter
  readonly #context: RunContextParts
  #graceMs: number
  #failure: { readonly error: unknown } | undefined

  constructor(automationFunction: AutomationFunction, options: RunOptions) {
    const {
      backend,
      runData,
      inputs,
      secrets = [],
      environment = REAL_ENVIRONMENT,
      clock = environment,
      flushIntervalMs = FLUSH_MS,
      deliveryTimeoutMs = DELIVER_MS,
      retry = {},
      onLine,
    } = options
    this.#function = automationFunction
    this.#graceMs = automationFunction.graceMs
    this.#options = options
    this.#environment = environment
    this.#redactor = new SecretRedactor([...secrets, ...automationFunction.inputs.secretTexts(inputs)])
    const onRefused = (): void => this.#cancel('the server accepts no more reports of this run')
    this.#reporter = new Reporter({
      backend,
      environment,
      retry,
      flushIntervalMs: timerMs(flushIntervalMs),
      deliveryTimeoutMs: timerMs(deliveryTimeoutMs),
      onRefused,
    })
    this.#context = {
      backend,
      runData,
      clock,
      environment,
      retry,
      onLine,
      reporter: this.#reporter,
      calls: this.#calls,
      mark: this.#mark,
      redactor: this.#redactor,
      signal: this.#stop.signal,
      ended: this.#ended.signal,
    }
  }

  fail(error: unknown, graceMs: number = this.#graceMs): void {
    this.#failure ??= { error }
    this.#graceMs = graceMs
    this.#stop.abort(error)
  }

  stop(reason: Error, graceMs: number = this.#graceMs): void {
    if (this.#stop.signal.aborted) return
    this.#graceMs = graceMs
    this.#stop.abort(reason)
  }

  async run(): Promise<RunOutcome> {
    const { backend, signal, leaseIntervalMs = LEASE_INTERVAL_MS } = this.#options
    const unregister = signal === undefined ? undefined : onAbort(signal, () => this.#stop.abort(signal.reason))
    this.#reporter.start()
    const stopHeartbeat = startHeartbeat(backend, {
      environment: this.#environment,
      intervalMs: timerMs(leaseIntervalMs),
      onOver: (why) => this.#cancel(why),
    })
    try {
      const ending = await this.#untilEnd()
      await this.#drainCalls(ending)
      await this.#reporter.drain()
      return await this.#report(this.#conclude(ending))
    } finally {
      stopHeartbeat()
      unregister?.()
      this.#ended.abort(new RunCanceled('the run has ended'))
      this.#reporter.close()
    }
  }

  #cancel(why: string): void {
    this.#stop.abort(new RunCanceled(why))
  }

  /** The function's own end, or that of the grace period which begins when the run is to stop. */
  async #untilEnd(): Promise<Ending> {
    const settled = withinRun(
      (error) => this.fail(error),
      () => this.#callFunction(),
    )
    const over = new AbortController()
    try {
      return await Promise.race([settled, this.#graceEnded(over.signal)])
    } finally {
      over.abort()
    }
  }

  async #callFunction(): Promise<Ending> {
    try {
      const { body } = this.#function
      const values = await this.#inputs()
      this.#stop.signal.throwIfAborted()
      await body(new RunContext(this.#context, values as never), values as never)
      return { kind: 'returned' }
    } catch (error) {
      return { kind: 'threw', error }
    }
  }

  /** A schema of another library may throw other errors, too, and those may quote a value. */
  async #inputs(): Promise<unknown> {
    try {
      return await this.#function.inputs.parse(this.#options.inputs ?? {})
    } catch (error) {
      throw error instanceof InputsError
        ? error
        : new Error('the inputs could not be read: their schema threw an unexpected error')
    }
  }

  async #graceEnded(over: AbortSignal): Promise<Ending> {
    const { signal } = this.#stop
    await aborted(signal)
    await sleep(timerMs(this.#graceMs), this.#environment, { signal: over })
    return { kind: 'stayed' }
  }

  /** Calls that the function started are completed, unless the function itself was abandoned. */
  async #drainCalls(ending: Ending): Promise<void> {
    const { signal } = this.#stop
    let limit: Timer | undefined
    const endInTime = (): void => {
      const leftMs = ending.kind === 'stayed' ? 0 : timerMs(this.#graceMs)
      limit = this.#environment.setTimer(leftMs, () => this.#ended.abort(signal.reason)).unref()
    }
    const unregister = onAbort(signal, endInTime)
    await Promise.race([this.#calls.drain(), aborted(this.#ended.signal)])
    unregister()
    limit?.cancel()
    this.#calls.close()
  }

  async #report(final: FinalReport | RunOutcome): Promise<RunOutcome> {
    const message = messageText(this.#redactor.text(final.message))
    if (final.status === 'canceled') return { status: 'canceled', message, isDelivered: false }
    const report: FinalReport = {
      status: final.status,
      message,
      ...(final.result === undefined ? {} : { result: this.#redactor.json(final.result) }),
    }
    const error = await this.#reporter.finish(report)
    if (error === undefined || isRefusal(error)) return { ...report, isDelivered: error === undefined }
    return {
      status: 'exception',
      message: this.#redactor.text(
        `the final report (${final.status}) could not be delivered: ${describeThrown(error)}`,
      ),
      isDelivered: false,
    }
  }

  #conclude(ending: Ending): FinalReport | RunOutcome {
    const { reason } = this.#stop.signal
    if (reason instanceof RunCanceled) return { status: 'canceled', message: reason.message, isDelivered: false }
    const failure = this.#failure ?? this.#unheard()
    if (failure !== undefined) return this.#exception(failure.error)
    if (ending.kind === 'threw') return this.#thrown(ending.error)
    const given = this.#mark.given
    const stopped = this.#stop.signal.aborted ? `the run was stopped: ${describeThrown(reason)}` : undefined
    if (ending.kind === 'stayed')
      return { status: 'exception', message: `${stopped}; the function did not return within ${this.#graceMs} ms` }
    if (given !== undefined) return given
    if (stopped !== undefined) return { status: 'exception', message: stopped }
    return this.#withoutStatus()
  }

  #thrown(error: unknown): FinalReport {
    const given = this.#mark.given
    const { signal } = this.#stop
    const failed = wordsOfFailed(error)
    if (failed !== undefined) {
      if (given === undefined) return { status: 'failed', message: failed }
      if (given.status === 'failed') return given
      return this.#exception(
        new Error(`the run was already marked as ${given.status}, and then threw RunFailed: ${failed}`, {
          cause: error,
        }),
      )
    }
    if (signal.aborted) return { status: 'exception', message: `the run was stopped: ${describeThrown(signal.reason)}` }
    return this.#exception(error)
  }

  #withoutStatus(): FinalReport {
    const what =
      'the function returned without a mark: it has to call markRunSuccess, markRunFailed or markRunException once'
    return this.#function.defaultStatus === 'success' ? this.#warned(what) : { status: 'exception', message: what }
  }

  #warned(what: string): FinalReport {
    this.#line('warn', what)
    return { status: 'succeeded', message: 'the function returned without a mark' }
  }

  /** Failures of calls that nothing awaited, and reports that were refused for their contents. */
  #unheard(): { readonly error: unknown } | undefined {
    const { failure } = this.#reporter
    if (failure !== undefined && !isRefusal(failure) && !isRetryable(failure))
      return { error: new Error(`a report could not be delivered: ${describeThrown(failure)}`, { cause: failure }) }
    return this.#calls.unheededFailure()
  }

  #exception(error: unknown): FinalReport {
    this.#line('error', shownWithout(this.#redactor, error))
    return { status: 'exception', message: describeThrown(error) }
  }

  #line(level: LogLevel, text: string): void {
    const message = cut(this.#redactor.text(text), TEXT_LIMITS.lineMax)
    this.#reporter.line({ atMs: this.#context.clock.now(), level, message })
    this.#context.onLine?.(level, message)
  }
}

/**
 * The message of a `RunFailed`; `undefined` for anything else that can be thrown, even for a value that fails when it
 * is read.
 */
function wordsOfFailed(thrown: unknown): string | undefined {
  try {
    if (!(thrown instanceof RunFailed)) return undefined
    const message: unknown = thrown.message
    const words = typeof message === 'string' ? message : shown(message, Infinity)
    return words.trim() === '' ? 'the function failed without a word' : words
  } catch {
    return undefined
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve))
}
