import { orAborted } from '../../async/abort.ts'
import { SecretRedactor } from '../../automation/runtime/run/secret-redactor.ts'
import { outsideRun } from '../../automation/runtime/run/failures.ts'
import { describeThrown } from '../../automation/runtime/run/texts.ts'
import type { Timer } from '../../environment.ts'
import type { ServiceContext } from '../../service/extension.ts'
import { StowageError } from '../../errors.ts'
import type { Domain } from '../domain/domain.ts'
import { mayStart, type RunRecord, runView } from '../domain/run-record.ts'
import { embeddedRunBackend } from './embedded-backend.ts'
import type { RunHandle, RunStart, StopReason } from '../domain/executor.ts'
import { isGone, RunWatch } from './run-watch.ts'
import type { RunSightings } from './run-sightings.ts'
import type { ActiveRuns, ActiveRun } from '../domain/active-runs.ts'

export interface QueueOptions {
  readonly domain: Domain
  readonly active: ActiveRuns
  readonly sightings: RunSightings
  readonly fetch: ServiceContext<never>['fetch']
  readonly logger: ServiceContext<never>['logger']
  /** The address of the service for functions that run elsewhere. */
  readonly serverUrl: () => string | Promise<string>
  /** Runs at a time. */
  readonly concurrency: number
  /** How often a run is started if its runner is lost before it reports anything. */
  readonly attemptsMax: number
}

/**
 * The share of the closing time that running functions get. After it they are abandoned, and the outcome is recorded.
 */
const CLOSING_SHARE = 0.8
const NOTED_MS = 1_000
const MESSAGE_CHARACTERS_MAX = 2_000

interface Running {
  readonly projectId: string
  readonly done: Promise<void>
  stop(reason: StopReason, graceMs?: number): void
}

interface Taken {
  readonly projectId: string
  readonly run: RunRecord
  readonly url: string
}

/**
 * Starts pending runs, a bounded number at a time, and follows each to its end. All its state is in the storage, so
 * another process, or a restart, continues the work.
 */
export class RunQueue {
  readonly #options: QueueOptions
  readonly #running = new Map<string, Running>()
  #taking: Promise<void> | undefined
  #isWoken = false
  readonly #closing = new AbortController()
  readonly #leaving = new AbortController()

  constructor(options: QueueOptions) {
    this.#options = options
  }

  /** There may be something to do. Never throws. */
  wake(): void {
    if (this.#isClosed) return
    this.#isWoken = true
    this.#taking ??= this.#take().finally(() => {
      this.#taking = undefined
      if (this.#isWoken && !this.#isClosed) this.wake()
    })
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  /** Whether this queue currently runs it. */
  holds(runId: string): boolean {
    return this.#running.has(runId)
  }

  /** Waits until nothing is starting and nothing runs. */
  async idle(): Promise<void> {
    while (this.#taking !== undefined || this.#running.size > 0) {
      await this.#taking
      await Promise.all([...this.#running.values()].map(({ done }) => done))
    }
  }

  /** Asks the runs of a removed project to stop. */
  stopProject(projectId: string): void {
    for (const running of this.#running.values()) if (running.projectId === projectId) running.stop('lost')
  }

  /**
   * Starts nothing more and asks running functions to stop; those that have not ended within `graceMs` are abandoned.
   */
  async close(graceMs: number): Promise<void> {
    this.#closing.abort(new StowageError('closing', 'the service is closing'))
    await this.#taking
    for (const running of this.#running.values()) running.stop('closing', graceMs * CLOSING_SHARE)
    await this.#settled(graceMs)
    this.#leaving.abort(this.#closing.signal.reason)
    await this.#settled(NOTED_MS)
  }

  /** Resolves when nothing runs, and in that time at the latest. */
  async #settled(withinMs: number): Promise<void> {
    const { environment } = this.#options.domain.options
    let timer: Timer | undefined
    const late = new Promise<void>((resolve) => {
      timer = environment.setTimer(withinMs, resolve)
    })
    await Promise.race([Promise.all([...this.#running.values()].map(({ done }) => done)), late])
    timer?.cancel()
  }

  async #take(): Promise<void> {
    const { active, concurrency, logger, serverUrl } = this.#options
    this.#isWoken = false
    if (this.#running.size >= concurrency) return
    try {
      const url = await orAborted(Promise.resolve(serverUrl()), this.#closing.signal)
      for await (const found of active.all()) {
        if (this.#isClosed || this.#running.size >= concurrency) return
        if (!this.#running.has(found.run.id) && this.#isFree(found.run)) await this.#takeUp(found, url)
      }
    } catch (error) {
      if (!this.#isClosed) logger?.error({ err: error }, 'pending runs could not be started; the server will retry')
    }
  }

  /** Pending, without a living runner, not too old, and of a function that this process has. */
  #isFree(run: RunRecord): boolean {
    const { domain, attemptsMax, sightings } = this.#options
    const { leaseBeat, functionId } = run
    if (!mayStart(run, attemptsMax)) return false
    const isLeft = sightings.overdue(run) === (leaseBeat === null ? undefined : 'lease')
    return isLeft && domain.options.functions.find(functionId) !== undefined
  }

  async #takeUp({ projectId, run: { id } }: ActiveRun, url: string): Promise<void> {
    const { domain } = this.#options
    let isMine = false
    const run = await domain.changes.change(projectId, id, (run) => {
      isMine = this.#isFree(run)
      const functionVersion = domain.options.functions.get(run.functionId).view.version
      return isMine
        ? {
            run: {
              attempt: run.attempt + 1,
              sequence: 0,
              functionVersion,
              leaseBeat: (run.leaseBeat ?? 0) + 1,
              startedAt: domain.store.nowText(),
            },
          }
        : undefined
    })
    if (isMine) outsideRun(() => this.#begin(projectId, run, url))
  }

  #begin(projectId: string, run: RunRecord, url: string): void {
    const stopping = new Stopping()
    const done = this.#see({ projectId, run, url }, stopping)
      .catch((error: unknown) => {
        if (isGone(error)) return
        this.#options.logger?.error({ err: error }, 'a run could not be seen to its end; its lease runs out')
      })
      .finally(() => {
        this.#running.delete(run.id)
        this.wake()
      })
    this.#running.set(run.id, { projectId, done, stop: (reason, graceMs) => stopping.stop(reason, graceMs) })
  }

  /** From its start until it has a final status and all its processes have ended. */
  async #see({ projectId, run, url }: Taken, stopping: Stopping): Promise<void> {
    const { domain } = this.#options
    let message = 'the function ended without reporting a status'
    let secretTexts: readonly string[] = []
    try {
      const start = await this.#startOf(projectId, run, url)
      secretTexts = start.secretTexts
      message = (await this.#untilEnd(start, run, stopping)) ?? message
    } catch (error) {
      message = error instanceof Error && typeof error.message === 'string' ? error.message : describeThrown(error)
    }
    if (stopping.reason === 'closing') message = 'the service closed before the function had ended'
    await domain.reports.end(projectId, run, 'exception', clean(new SecretRedactor(secretTexts).text(message)))
  }

  async #untilEnd(start: RunStart, run: RunRecord, stopping: Stopping): Promise<string | void> {
    const { domain } = this.#options
    const handle = domain.options.functions.get(run.functionId).executor.start(start)
    const watch = new RunWatch({ domain, projectId: start.projectId, run, handle })
    stopping.follow(handle)
    try {
      return await orAborted(handle.ended, this.#leaving.signal)
    } finally {
      watch.end()
      stopping.follow(undefined)
    }
  }

  async #startOf(projectId: string, run: RunRecord, url: string): Promise<RunStart> {
    const { domain, fetch } = this.#options
    const { environment } = domain.options
    const { scope } = await domain.changes.found(projectId, run.id)
    const kept = await domain.runs.inputs(scope, run.id)
    const functionInputs = domain.options.secrets.open(kept, { projectId, automationId: run.automationId })
    const deadlineMs = domain.store.clock.now() + domain.options.times.runMsMax
    const token = await domain.tokens.issue({ projectId, runId: run.id, attempt: run.attempt }, deadlineMs)
    const { id, automationId, modelId, versionId } = run
    return {
      projectId,
      run: runView(run),
      deadlineMs,
      environment,
      addLogs: (lines) => domain.reports.addLogs(projectId, id, lines),
      secretTexts: [
        token,
        ...Object.keys(kept.sealed)
          .map((name) => functionInputs[name])
          .filter((text) => typeof text === 'string'),
      ],
      runFile: {
        speckleToken: token,
        functionInputs,
        automationRunData: {
          projectId,
          speckleServerUrl: url,
          automationId,
          automationRunId: id,
          functionRunId: id,
          triggers: [{ triggerType: 'versionCreation', payload: { modelId, versionId } }],
        },
      },
      backend: embeddedRunBackend(domain, { projectId, run, token, url, fetch }),
    }
  }
}

/** Asks a run to stop, also one that is just about to begin. */
class Stopping {
  #handle: RunHandle | undefined
  #asked: { readonly reason: StopReason; readonly graceMs: number | undefined } | undefined

  get reason(): StopReason | undefined {
    return this.#asked?.reason
  }

  stop(reason: StopReason, graceMs?: number): void {
    this.#asked = { reason, graceMs }
    this.#handle?.cancel(reason, graceMs)
  }

  follow(handle: RunHandle | undefined): void {
    this.#handle = handle
    if (this.#asked !== undefined) handle?.cancel(this.#asked.reason, this.#asked.graceMs)
  }
}

function clean(message: string): string {
  return message.slice(0, MESSAGE_CHARACTERS_MAX).replace(/(?![\n\t])\p{Cc}|\p{Surrogate}/gu, ' ')
}
