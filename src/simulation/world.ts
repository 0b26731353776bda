import { asGuarded } from '../storage/guard.ts'
import type { ProjectQuota } from '../object/graph-store.ts'
import { EPOCH_MS, EpochCounter } from '../store/upkeep/epochs.ts'
import { SimulatedBackend } from './backend.ts'
import type { ConnectionParts } from './calls.ts'
import { type Destination, SimulatedClient } from './client.ts'
import { isExpected, wordsOf } from './expectations.ts'
import { type Fault, FaultInjector } from './faults.ts'
import type { PlannedModel } from './models.ts'
import type { Operation, ServedOperation } from './operations.ts'
import { type OracleClock, ProjectOracle, Violation } from './oracle.ts'
import type { Span } from './span.ts'
import { SimulatedProcess } from './process.ts'
import { QuotaBook } from './quota-book.ts'
import { Random } from './random.ts'
import { RootBook } from './root-book.ts'
import { type OpenBackend, ScheduledBackend, SharedBackend } from './scheduled-backend.ts'
import { Scheduler } from './scheduler.ts'
import { type Connection, type ServerLife, SimulatedServer } from './server.ts'
import { SimulatedStorage } from './storage.ts'

/** A server has looked around by then. */
const LOOKED_AROUND_MS = 70_000
/** A call to the storage takes less. */
const QUIET_MS = 1_000

/** The parameters of one run. */
export interface Plan {
  readonly seed: number
  readonly servers: number
  readonly models: readonly PlannedModel[]
  readonly operations: readonly Operation[]
  readonly faults: readonly Fault[]
  /** What projects may hold. */
  readonly quotas: ReadonlyMap<string, ProjectQuota>
  /** Somebody's own storage; a simulated one by default. */
  readonly openBackend: OpenBackend | undefined
}

/** A project as the clients see it. */
export interface KnownProject {
  readonly projectId: string
  readonly oracle: ProjectOracle
  readonly book: RootBook
  readonly quota: QuotaBook | undefined
}

/** Everything of one run: the storage, the servers, the clients, and what is known about them. */
export class World {
  readonly scheduler: Scheduler
  readonly faults: FaultInjector
  readonly plan: Plan
  readonly random: Random
  readonly client: SimulatedClient
  readonly clients: SimulatedProcess
  readonly servers: readonly SimulatedServer[]
  readonly projects: Map<string, KnownProject> = new Map()
  readonly #storage: SimulatedStorage
  readonly #shared: SharedBackend | undefined
  /** Epochs that passed at once. */
  readonly #ages: { readonly span: Span; readonly epochs: number }[] = []
  readonly #clock: OracleClock
  /** Whether the records were ever written anew. */
  isReindexed = false
  /** Whether a server of the run serves on in the end, which has listed the storage a while ago. */
  hasLivedOn = false
  /** The operator has lifted the quotas. */
  areQuotasLifted = false
  #restarts = 0
  #violation: string | undefined

  constructor(plan: Plan) {
    const random = new Random(plan.seed)
    this.plan = plan
    this.random = random
    this.scheduler = new Scheduler(random.fork('schedule'))
    this.faults = new FaultInjector(plan.faults)
    this.#storage = new SimulatedStorage(this.scheduler)
    this.#shared = plan.openBackend === undefined ? undefined : new SharedBackend(plan.openBackend)
    this.clients = new SimulatedProcess('clients', this.scheduler, random.fork('clients'))
    this.client = new SimulatedClient(this.clients)
    this.servers = Array.from({ length: plan.servers }, (_, at) => this.server(`s${at}`))
    this.#clock = { moment: 0, nowMs: () => this.scheduler.nowMs, epochsMax: (from, to) => this.#epochsMax(from, to) }
    for (const { projectId } of plan.models) this.project(projectId)
  }

  /** The first thing that was broken. */
  get violation(): string | undefined {
    return this.#violation
  }

  /** A machine that uses this run's storage, or another one. */
  server(name: string, storage?: SimulatedStorage): SimulatedServer {
    return new SimulatedServer({
      name,
      scheduler: this.scheduler,
      faults: this.faults,
      random: this.random.fork(name),
      connect: (parts, over) => this.#connect(parts, over, storage),
      rootsOf: () => [],
      quotaOf: this.plan.quotas.size === 0 || storage !== undefined ? undefined : (id) => this.#quotaOf(id),
      onPowerLoss: () => this.servers.forEach((server) => server.crash()),
      onError: (error) => {
        if (!this.isExpected(error, undefined, true)) this.broken(error)
      },
    })
  }

  /** A process beside the servers, with a guarded connection to the storage. */
  process(
    name: string,
    onCrash: () => void,
    storage?: SimulatedStorage,
  ): { process: SimulatedProcess; connection: Connection; end: () => void } {
    const process = new SimulatedProcess(name, this.scheduler, this.random.fork(name))
    const { scheduler, faults, random } = this
    let end = (): void => undefined
    const over = new Promise<void>((resolve) => (end = resolve))
    const raw = this.#connect({ scheduler, faults, process, random, onCrash }, over, storage)
    const { records, blobs } = asGuarded(raw)
    return { process, connection: { records, blobs, close: () => raw.close(), sever: () => raw.sever() }, end }
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.clients.setTimer(delayMs, resolve))
  }

  /** Time passes while nobody asks for anything: the servers look around now and then, and not each minute of it. */
  async pass(durationMs: number): Promise<void> {
    const endMs = this.scheduler.nowMs + durationMs
    for (let leftMs = durationMs; leftMs > 0; leftMs = endMs - this.scheduler.nowMs) {
      await this.sleep(Math.min(leftMs, LOOKED_AROUND_MS))
      const restMs = endMs - this.scheduler.nowMs - LOOKED_AROUND_MS
      if (restMs > 0) this.scheduler.leap(Math.min(restMs, EPOCH_MS), QUIET_MS)
    }
  }

  broken(error: unknown): void {
    this.#violation ??= error instanceof Violation ? error.message : wordsOf(error)
  }

  isExpected(error: unknown, operation: ServedOperation | undefined, isRemoved: boolean): boolean {
    return isExpected(error, {
      fired: this.faults.fired,
      isRestarted: this.#restarts > 0,
      isReindexed: this.isReindexed,
      isCollected: [...this.projects.values()].some(({ oracle }) => !oracle.collections.isEmpty),
      isRemoved,
      ...(operation === undefined ? {} : { operation }),
    })
  }

  /** Stops a server, as an operator does. */
  async stop(server: SimulatedServer, graceMs: number): Promise<void> {
    this.#restarts++
    await server.stop(graceMs)
  }

  /** So many epochs of the store pass. */
  async age(epochs: number): Promise<void> {
    const span = { start: this.#clock.moment++, end: Infinity, startMs: this.scheduler.nowMs, endMs: Infinity }
    this.#ages.push({ span, epochs })
    const { process, connection, end } = this.process(`age ${this.scheduler.count}`, () => undefined)
    const counter = new EpochCounter(connection.records, process)
    // Servers of the run count epochs too.
    for (let isDone = epochs === 0; !isDone;)
      isDone = await counter.advance(epochs).catch((error: unknown) => {
        if (!this.isExpected(error, undefined, true)) throw error
        return true
      })
    span.end = this.#clock.moment++
    end()
  }

  /** Bytes of everything that is stored here, or in another storage. */
  async sizeBytes(storage?: SimulatedStorage): Promise<number> {
    const { connection, end } = this.process('size', () => undefined, storage)
    let bytes = 0
    for await (const entries of connection.records.range({ gte: new Uint8Array(1), lt: Uint8Array.of(0xff) }))
      for (const { key, value } of entries) bytes += key.length + value.length
    for await (const blobs of connection.blobs.list('')) for (const { sizeBytes } of blobs) bytes += sizeBytes
    end()
    return bytes
  }

  /** Whether a crash cut this blob short while it was put: nobody was told that it is there. */
  isTorn(blobName: string): boolean {
    return this.#storage.isTorn(blobName)
  }

  project(projectId: string): KnownProject {
    const known = this.projects.get(projectId)
    if (known !== undefined) return known
    const oracle: ProjectOracle = new ProjectOracle(this.#clock, (span) => book.certain(span))
    const book = new RootBook(oracle)
    const quota = this.plan.quotas.get(projectId)
    const isExact = (): boolean => !this.isReindexed && !this.faults.fired.has('flip')
    const project = { projectId, oracle, book, quota: quota && new QuotaBook(quota, oracle, isExact) }
    this.projects.set(projectId, project)
    return project
  }

  destination(life: ServerLife, known: KnownProject, signal: AbortSignal): Destination {
    return { ...known, life, project: life.service.project(known.projectId), signal }
  }

  /** Resolves when somebody's own storage is closed. */
  async closed(): Promise<void> {
    await this.#shared?.closed()
  }

  #quotaOf(projectId: string): ProjectQuota | undefined {
    return this.areQuotasLifted ? undefined : this.plan.quotas.get(projectId)
  }

  #epochsMax(from: Span, to: Span): number {
    const passed = this.#ages.filter(({ span }) => span.end > from.start && span.start < to.end)
    const endMs = Math.min(to.endMs, this.scheduler.nowMs)
    const natural = Math.floor((endMs - from.startMs) / EPOCH_MS) + 1
    return passed.reduce((sum, { epochs }) => sum + epochs, natural)
  }

  #connect(parts: ConnectionParts, over: Promise<void>, storage = this.#storage): Connection {
    if (this.#shared === undefined || storage !== this.#storage) return new SimulatedBackend({ ...parts, storage })
    const shared = this.#shared
    shared.enter()
    void over.then(() => shared.leave())
    return new ScheduledBackend(parts, shared)
  }
}
