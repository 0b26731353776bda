import { StowageError } from '../errors.ts'
import type { GraphRoot } from '../object/roots.ts'
import type { ServiceContext, ServiceExtension } from '../service/extension.ts'
import { type AutomationProject, automationProject } from './automation-project.ts'
import { BackgroundLoop } from '../async/background-loop.ts'
import { ActiveRuns } from './domain/active-runs.ts'
import { Domain } from './domain/domain.ts'
import { FunctionRegistry } from './domain/functions.ts'
import { SecretBox, type SecretKey, type SecretKeySource } from './domain/secrets.ts'
import { type FunctionRegistration, withExecutor } from './runner/executors/definitions.ts'
import { FailureGuard } from './runner/executors/failure-guard.ts'
import {
  CommandRunner,
  type IsolationOptions,
  type IsolationStatus,
} from './runner/executors/isolation/command-runner.ts'
import { automationResources } from './http/resources.ts'
import { AUTOMATION_AREA } from './schemas/openapi/area.ts'
import {
  type AutomationLimits,
  checkedTimes,
  DEFAULT_RUN_TIMES,
  positive,
  resolveAutomationLimits,
  type RunTimes,
  TIMER_MS_MAX,
} from './domain/options.ts'
import { RunQueue } from './runner/queue.ts'
import { RunSightings } from './runner/run-sightings.ts'
import { withRunTokens } from './domain/run-access.ts'
import { applyRetention } from './upkeep/apply-retention.ts'
import { endLostRuns } from './upkeep/end-lost-runs.ts'
import { purgeDeleted } from './upkeep/purge-deleted.ts'
import { SecretResealer } from './upkeep/reseal-secrets.ts'
import { endsOf, expireRuns } from './upkeep/expire-runs.ts'
import { expireCauses, orphanAge, sweepGarbage, sweepOrphans } from './upkeep/sweep-storage.ts'
import type { FunctionInfo } from './schemas/types.ts'

/** Options of `automation`. All have defaults. */
export interface AutomationOptions extends Partial<RunTimes>, IsolationOptions {
  /** The functions that automations may use. */
  readonly functions?: readonly FunctionRegistration[]
  /**
   * The keys that seal secret inputs: the first key seals, all of them open. Without one, automations with secrets are
   * refused. A source is read when the storage is opened and every `sweepIntervalMs` after that; secrets under older
   * keys are sealed again with the first one.
   */
  readonly secretKeys?: readonly SecretKey[] | SecretKeySource
  /** Limits that replace those of `DEFAULT_AUTOMATION_LIMITS`. */
  readonly limits?: Partial<AutomationLimits>
  /** Runs at a time. 2 by default. */
  readonly concurrency?: number
  /**
   * How often a run is started if its runner is lost before it reports anything. 1 by default: a lost run times out.
   */
  readonly attemptsMax?: number
  /**
   * The address of the service for functions in other processes, with its prefix. Commands need it. No run starts
   * before it resolves.
   */
  readonly serverUrl?: string | (() => string | Promise<string>)
}

/** Automation functions on a service: pass it among its `extensions`. */
export interface AutomationExtension<H = unknown> extends ServiceExtension<H> {
  /**
   * Throws `TypeError` for a definition that cannot be or an id that is taken, and `InputsError` for inputs that no
   * form can show.
   */
  register(registered: FunctionRegistration): FunctionInfo
  /** The functions that are registered, in the order of their ids. */
  functions(): readonly FunctionInfo[]
  /** The operations of HTTP for one project, in process and without access control. Throws `invalid_id`. */
  project(projectId: string): AutomationProject
  /** How commands are kept apart from the server. Determined once. */
  isolation(): Promise<IsolationStatus>
  /** Resolves when no run is pending and none runs here. */
  idle(): Promise<void>
}

const CONCURRENCY = 2
/** How often blobs and old runs are swept, after the opening. */
const STORAGE_SWEEP_INTERVAL_MS = 86_400_000
const ATTEMPTS_MAX = 1
/** The address of the service for clients in this process. Nothing is ever sent there. */
const IN_PROCESS_ORIGIN = 'http://stowage.internal'

/** Throws `TypeError` and `RangeError` for options that cannot be. */
export function automation<H = unknown>(options: AutomationOptions = {}): AutomationExtension<H> {
  return new Automation<H>(options)
}

interface Attached<H> {
  readonly context: ServiceContext<H>
  readonly domain: Domain
  readonly queue: RunQueue
  readonly active: ActiveRuns
  readonly sightings: RunSightings
  readonly sweeps: BackgroundLoop
}

class Automation<H> implements AutomationExtension<H> {
  readonly area: AutomationExtension<H>['area'] = AUTOMATION_AREA
  readonly #options: AutomationOptions
  readonly #functions = new FunctionRegistry()
  readonly #secrets = new SecretBox([])
  readonly #resealer: SecretResealer
  readonly #limits: AutomationLimits
  readonly #times: RunTimes
  readonly #attemptsMax: number
  readonly #guard = new FailureGuard()
  readonly #runner: CommandRunner
  readonly #closing = new AbortController()
  #attached: Attached<H> | undefined
  #storageSweptAtMs = Number.NEGATIVE_INFINITY

  constructor(options: AutomationOptions) {
    const times: RunTimes = { ...DEFAULT_RUN_TIMES, ...options }
    this.#options = options
    this.#runner = new CommandRunner(options)
    this.#resealer = new SecretResealer(this.#secrets, options.secretKeys ?? [])
    this.#limits = resolveAutomationLimits(options.limits)
    this.#times = checkedTimes(times)
    positive('concurrency', options.concurrency ?? CONCURRENCY)
    this.#attemptsMax = positive('attemptsMax', options.attemptsMax ?? ATTEMPTS_MAX)
    for (const registered of options.functions ?? []) this.#register(registered)
  }

  attach(context: ServiceContext<H>): ReturnType<ServiceExtension<H>['attach']> {
    const { backend, prefix, epochs } = context
    if (backend === undefined || epochs === undefined)
      throw new TypeError(
        "automation keeps its records on a storage backend; a service over a host's own object store has none",
      )
    if (this.#attached !== undefined)
      throw new TypeError('this automation already belongs to a service; create one for each service')
    const domain = new Domain({
      ...context,
      backend,
      epochs,
      functions: this.#functions,
      secrets: this.#secrets,
      limits: this.#limits,
      times: this.#times,
      onPending: () => this.#attached?.queue.wake(),
    })
    const active = new ActiveRuns(domain.store, (error) =>
      context.logger?.error({ err: error }, 'a run cannot be read'),
    )
    const sightings = new RunSightings({ environment: context.environment, epochs, times: this.#times })
    const { serverUrl = `${IN_PROCESS_ORIGIN}${prefix}`, concurrency = CONCURRENCY } = this.#options
    const queue = new RunQueue({
      domain,
      active,
      sightings,
      concurrency,
      fetch: context.fetch,
      logger: context.logger,
      attemptsMax: this.#attemptsMax,
      serverUrl: typeof serverUrl === 'function' ? serverUrl : () => serverUrl,
    })
    const sweeps = new BackgroundLoop(() => this.#sweep(), this.#times.sweepIntervalMs, context.environment)
    this.#attached = { context, domain, queue, active, sightings, sweeps }
    return automationResources<H>({ domain, context, limits: this.#limits })
  }

  access(
    inner: Parameters<NonNullable<ServiceExtension<H>['access']>>[0],
  ): ReturnType<NonNullable<ServiceExtension<H>['access']>> {
    return withRunTokens(inner, () => this.#parts.domain)
  }

  /** Finds runs that were lost while no server was running, and repeats this every `sweepIntervalMs`. */
  async open(): Promise<void> {
    // What the processes of functions left is on the disk of the machine, of which a simulated process knows nothing.
    if (this.#parts.context.environment.usesThreadPool) await this.#runner.open()
    await this.#resealer.takeKeys()
    this.#parts.queue.wake()
    this.#parts.domain.remoteChanges.start()
    this.#parts.sweeps.soon()
  }

  async removeProject(projectId: string): Promise<void> {
    await this.#parts.domain.store.removeProject(projectId)
    this.#parts.queue.stopProject(projectId)
    this.#parts.sweeps.soon()
  }

  /** The versions of all models, also deleted ones: they can be restored. */
  async *roots(projectId: string): AsyncGenerator<readonly GraphRoot[]> {
    yield* this.#parts.domain.versions.roots(projectId)
  }

  async *projects(): AsyncGenerator<readonly string[]> {
    yield* this.#parts.domain.store.projects()
  }

  async holds(projectId: string): Promise<boolean> {
    return (await this.#parts.domain.store.scope(projectId)) !== undefined
  }

  async close({ graceMs }: { readonly graceMs: number }): Promise<void> {
    this.#closing.abort(new StowageError('closing', 'the service is closing'))
    this.#parts.domain.signals.close()
    await this.#parts.domain.remoteChanges.stop()
    await this.#parts.queue.close(graceMs)
    await this.#parts.sweeps.stop()
    this.#guard.close()
  }

  register(registered: FunctionRegistration): FunctionInfo {
    const view = this.#register(registered)
    this.#attached?.queue.wake()
    return view
  }

  functions(): readonly FunctionInfo[] {
    return this.#functions.list()
  }

  project(projectId: string): AutomationProject {
    const { domain, context } = this.#parts
    return automationProject({ domain, ready: context.ready }, projectId)
  }

  isolation(): Promise<IsolationStatus> {
    return this.#runner.view()
  }

  idle(): Promise<void> {
    return this.#parts.queue.idle()
  }

  #register(registered: FunctionRegistration): FunctionInfo {
    if ('command' in registered && this.#options.serverUrl === undefined)
      throw new TypeError(
        'a command reports over the network: pass serverUrl, the address of the service, to automation()',
      )
    return this.#functions.register(withExecutor(registered, { guard: this.#guard, runner: this.#runner }))
  }

  get #parts(): Attached<H> {
    if (this.#attached === undefined)
      throw new TypeError('this automation has no service yet; pass it to createObjectService in extensions')
    return this.#attached
  }

  /**
   * By one server of all. Removed projects are swept each time, since a mark names them; the rest requires much reading.
   */
  async #sweepStorage(domain: Domain, signal: AbortSignal): Promise<void> {
    const { janitor, environment, epochs } = this.#parts.context
    const fence = janitor?.fence
    if (fence === undefined || epochs === undefined) return
    const { options } = domain
    const store = domain.store.fencedBy(fence)
    const nowMs = store.clock.now()
    const isDue = environment.monotonicMs() - this.#storageSweptAtMs >= STORAGE_SWEEP_INTERVAL_MS
    if (isDue) await expireRuns(store, endsOf(this.#times, nowMs), signal)
    if (isDue) await applyRetention(domain, signal)
    if (isDue) await expireCauses(store, nowMs - this.#times.runRetentionMs - TIMER_MS_MAX, signal)
    await sweepGarbage(store, signal)
    await purgeDeleted(
      { store, emit: options.emit, epochs: options.epochs, graceMs: this.#times.deletionGraceMs },
      signal,
    )
    if (!isDue) return
    const { number } = await epochs.current()
    await sweepOrphans(store, orphanAge({ number, epochMs: epochs.epochMs }, this.#times.runMsMax), signal)
    this.#storageSweptAtMs = environment.monotonicMs()
  }

  async #sweep(): Promise<void> {
    const { domain, active, sightings, queue, context } = this.#parts
    const { signal } = this.#closing
    const steps = [
      () => domain.triggers.run(signal),
      () =>
        endLostRuns(
          {
            domain,
            active,
            sightings,
            attemptsMax: this.#attemptsMax,
            concurrency: this.#options.concurrency ?? CONCURRENCY,
            isHeldHere: (runId) => queue.holds(runId),
          },
          signal,
        ),
      async () => queue.wake(),
      () => this.#resealer.run(domain.store, signal),
      () => this.#sweepStorage(domain, signal),
    ]
    for (const step of steps) {
      await step().catch((error: unknown) => {
        if (!signal.aborted)
          context.logger?.error({ err: error }, 'a sweep of automation was cut off; it is tried again')
      })
    }
  }
}
