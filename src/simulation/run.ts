import { Readable } from 'node:stream'
import { StowageError } from '../errors.ts'
import type { StorageBackend } from '../storage/backend.ts'
import { asGuarded } from '../storage/guard.ts'
import { checkStore } from '../store/upkeep/check.ts'
import { EpochCounter } from '../store/upkeep/epochs.ts'
import { SimulatedBackend } from './backend.ts'
import { type Destination, SimulatedClient } from './client.ts'
import { type Fault, FaultInjector, type FaultKind } from './faults.ts'
import type { PlannedModel } from './models.ts'
import type { Operation, PlannedUpload } from './operations.ts'
import { ProjectOracle, type Upload, Violation } from './oracle.ts'
import { SimulatedProcess } from './process.ts'
import { Random } from './random.ts'
import { Scheduler } from './scheduler.ts'
import { type ServerLife, SimulatedServer } from './server.ts'
import { SimulatedStorage } from './storage.ts'

/** The parameters of one run. */
export interface Plan {
  readonly seed: number
  readonly servers: number
  readonly models: readonly PlannedModel[]
  readonly operations: readonly Operation[]
  readonly faults: readonly Fault[]
}

/** The outcome of a run. */
export interface RunResult {
  /** The violated guarantee; `undefined` if all held. */
  readonly violation: string | undefined
  /** Steps that the scheduler took. */
  readonly steps: number
  /** Calls to the storage. */
  readonly calls: number
  /** The planned faults. */
  readonly fired: readonly FaultKind[]
  /** Equal for two runs that went the same way. */
  readonly digest: string
}

/** When a client gives up, and when an operator kills a server that has not even answered that. */
const PATIENCE_MS = 60_000
const LAST_ANSWER_MS = 90_000
/** Blobs that nothing names are marked by then, and go when as many epochs have passed and a server has begun one. */
const AFTERWARDS = { markedMs: 80 * 60_000, epochs: 150, sweptMs: 13 * 60_000 }
/** The share of runs that go on for days afterwards. */
const LONG_RUNS = 0.25
/** How long a stopping server may finish its work. */
const GRACE_MS_MAX = 2_000
/** Background work has ended by then. */
const UPKEEP_MS = 60_000
/** What tells that projects were removed. */
const TRACES_BYTES_MAX = 2_000
const LAST_OBJECT = '[{"id":"last"}]'
const CRASHED = new Error('the server crashed')
/** An upload that is answered so has left nothing. */
const NOTHING_KEPT: ReadonlySet<string> = new Set(['project_removed', 'base_mismatch'])
/** Faults after which an operation may report an unusable storage. */
const DISTURBANCES: readonly FaultKind[] = [
  'error',
  'lostAnswer',
  'partial',
  'full',
  'hang',
  'slow',
  'powerLoss',
  'crash',
]

/** Makes the run that the plan and its seed decide, to its end or to the first violation. */
export async function run(plan: Plan): Promise<RunResult> {
  const world = new World(plan)
  const violation = await world.run()
  return {
    violation,
    steps: world.scheduler.count,
    calls: world.faults.calls,
    fired: [...world.faults.fired],
    digest: (world.scheduler.digest >>> 0).toString(16).padStart(8, '0'),
  }
}

class World {
  readonly scheduler: Scheduler
  readonly faults: FaultInjector
  readonly #plan: Plan
  readonly #random: Random
  readonly #storage: SimulatedStorage
  readonly #servers: readonly SimulatedServer[]
  readonly #client: SimulatedClient
  readonly #clients: SimulatedProcess
  readonly #moments = { moment: 0 }
  readonly #oracles = new Map<string, ProjectOracle>()
  #restarts = 0
  #violation: string | undefined

  constructor(plan: Plan) {
    const random = new Random(plan.seed)
    this.#plan = plan
    this.#random = random
    this.scheduler = new Scheduler(random.fork('schedule'))
    this.faults = new FaultInjector(plan.faults)
    this.#storage = new SimulatedStorage(this.scheduler)
    this.#clients = new SimulatedProcess('clients', this.scheduler, random.fork('clients'))
    this.#client = new SimulatedClient(this.#clients)
    this.#servers = Array.from({ length: plan.servers }, (_, at) => this.#server(`s${at}`))
    for (const { projectId } of plan.models) this.#oracles.set(projectId, new ProjectOracle(this.#moments))
  }

  async run(): Promise<string | undefined> {
    try {
      await this.#phase(this.#plan.operations.map((operation) => this.#perform(operation)))
      this.faults.stop()
      await this.#phase([this.#endLives()])
      const isLong = this.#random.chance(LONG_RUNS)
      if (isLong) await this.#phase([this.#passDays()])
      await this.#phase([this.#verify()])
      if (isLong && !this.faults.fired.has('flip')) await this.#phase([this.#removeAll()])
    } catch (error) {
      this.#broken(error)
    }
    return this.#violation
  }

  /** Makes steps until all of it is done, or something is broken. */
  async #phase(work: readonly Promise<void>[]): Promise<void> {
    let left = work.length
    for (const one of work) one.catch((error: unknown) => this.#broken(error)).finally(() => left--)
    const isOver = await this.scheduler.runUntil(() => left === 0 || this.#violation !== undefined)
    if (!isOver) throw new Violation(`nothing goes on any more, and ${left} operations have not ended`)
    if (this.#violation !== undefined) throw new Violation(this.#violation)
  }

  #server(name: string): SimulatedServer {
    return new SimulatedServer({
      name,
      storage: this.#storage,
      scheduler: this.scheduler,
      faults: this.faults,
      random: this.#random.fork(name),
      onPowerLoss: () => this.#servers.forEach((server) => server.crash()),
      onError: (error) => {
        if (!this.#isExpected(error)) this.#broken(error)
      },
    })
  }

  async #perform(operation: Operation): Promise<void> {
    const server = this.#servers[operation.server % this.#servers.length]
    await this.#sleep(operation.atMs)
    await server.up()
    if (operation.kind === 'restart') {
      this.#restarts++
      return server.stop(this.#random.below(GRACE_MS_MAX))
    }
    const life = server.life()
    const patience = new AbortController()
    const impatience = this.#clients.setTimer(PATIENCE_MS, () => patience.abort(new Error('the client gave up')))
    const killer = this.#clients.setTimer(LAST_ANSWER_MS, () => {
      if (this.faults.fired.has('hang')) life.kill()
      else this.#broken(new Violation(`${nameOf(operation)} is not answered`))
    })
    const oracle = this.#oracleOf(operation.projectId)
    const to = { life, oracle, project: life.service.project(operation.projectId), signal: patience.signal }
    const span = oracle.begin()
    try {
      await unlessCrashed(life, this.#act(operation, to))
    } catch (error) {
      const isExpected = this.#isExpected(error, { operation, isRemoved: oracle.isRemovedSince(span) })
      if (error !== CRASHED && !isExpected) throw new Violation(`${nameOf(operation)}: ${wordsOf(error)}`)
    } finally {
      impatience.cancel()
      killer.cancel()
    }
  }

  #act(operation: Exclude<Operation, { kind: 'restart' }>, to: Destination): Promise<void> {
    if (operation.kind === 'upload') return this.#upload(operation, to)
    if (operation.kind === 'remove') return this.#remove(to)
    if (operation.kind === 'download') return this.#client.download(operation, to)
    return this.#client.lookUp(operation, to)
  }

  async #upload(operation: PlannedUpload, to: Destination): Promise<void> {
    const { oracle, life } = to
    const sent: { upload?: Upload } = {}
    try {
      const begin = (texts: ReadonlyMap<string, string>): void => void (sent.upload = oracle.beginUpload(texts))
      await unlessCrashed(life, this.#client.upload(operation, to, begin))
      if (operation.isBroken) throw new Violation('a broken body was accepted')
      if (sent.upload !== undefined) sent.upload.outcome = 'acknowledged'
    } catch (error) {
      const isRefused = operation.isBroken || NOTHING_KEPT.has(codeOf(error) ?? '')
      if (isRefused && sent.upload !== undefined) sent.upload.outcome = 'refused'
      throw error
    } finally {
      if (sent.upload !== undefined) oracle.end(sent.upload)
    }
  }

  async #remove({ project, oracle, life }: Destination): Promise<void> {
    const removal = oracle.beginRemoval()
    try {
      await unlessCrashed(life, project.remove())
      removal.isAcknowledged = true
    } finally {
      oracle.end(removal)
    }
  }

  async #endLives(): Promise<void> {
    for (const server of this.#servers) {
      if (this.#random.chance(0.5)) server.crash()
      else await server.stop(GRACE_MS_MAX)
      await server.up()
    }
  }

  /** Everything is at rest: looks at all that there may be. */
  async #verify(): Promise<void> {
    const life = this.#servers[0].life()
    const { signal } = new AbortController()
    const isDamaged = this.faults.fired.has('flip')
    await life.service.ready().catch(() => undefined)
    await this.#sleep(UPKEEP_MS)
    for (const [projectId, oracle] of this.#oracles) {
      const project = life.service.project(projectId)
      const to = { life, oracle, project, signal }
      const place = { index: 0, atMs: 0, server: 0, projectId }
      const looks: (() => Promise<unknown>)[] = [
        () => this.#client.lookUp({ ...place, kind: 'list', ids: [...oracle.ids] }, to),
        async () => oracle.checkWhole(isDamaged ? new Set() : await project.has([...oracle.ids])),
      ]
      for (const { versions } of this.#plan.models.filter((model) => model.projectId === projectId))
        for (const { rootId } of versions)
          for (const form of ['records', 'gzip'] as const)
            looks.push(() =>
              this.#client.download({ ...place, kind: 'download', rootId, form, haveRootId: undefined }, to),
            )
      for (const look of looks)
        await look().catch((error: unknown) => {
          if (!(isDamaged && isNoticedDamage(error))) throw new Violation(`in the end: ${wordsOf(error)}`)
        })
    }
    await this.#servers[0].stop(GRACE_MS_MAX)
    if (!isDamaged) await this.#check()
  }

  /**
   * Removed projects free their space. Each gets an object first: blobs of a project without a record are kept, because
   * the record may have been lost, so those of a crash before the first commit are swept only once the project exists.
   */
  async #removeAll(): Promise<void> {
    const [server] = this.#servers
    for (const projectId of this.#oracles.keys()) {
      const project = server.life().service.project(projectId)
      await project.upload(Readable.from([Buffer.from(LAST_OBJECT)]), 'application/json')
      await project.remove()
    }
    await this.#passDays()
    const left = this.#storage.sizeBytes
    if (left > TRACES_BYTES_MAX) throw new Violation(`all projects are removed, and ${left} bytes are left`)
  }

  /** Days pass while one server is up; most of the epochs as if others counted them. Blobs go, and then their marks. */
  async #passDays(): Promise<void> {
    const { backend, environment } = this.#onlooker('time')
    const ready = this.#servers[0].life().service.ready()
    await Promise.all([ready.catch(() => undefined), this.#sleep(AFTERWARDS.markedMs)])
    for (let graces = 0; graces < 2; graces++) {
      await new EpochCounter(backend.records, environment).advance(AFTERWARDS.epochs)
      await this.#sleep(AFTERWARDS.sweptMs)
    }
  }

  /** The findings of `stowage check`. */
  async #check(): Promise<void> {
    const { backend, environment } = this.#onlooker('check')
    for await (const { severity, subject, message } of checkStore(backend, { environment }))
      if (severity === 'damage') throw new Violation(`check finds damage: ${subject}: ${message}`)
  }

  /** A process of its own, with a connection to the storage. */
  #onlooker(name: string): { readonly backend: StorageBackend; readonly environment: SimulatedProcess } {
    const process = new SimulatedProcess(name, this.scheduler, this.#random.fork(name))
    const { scheduler, faults } = this
    const parts = { storage: this.#storage, scheduler, faults, process, random: this.#random, onCrash: () => undefined }
    return { backend: asGuarded(new SimulatedBackend(parts)), environment: process }
  }

  #isExpected(error: unknown, context?: { readonly operation: Operation; readonly isRemoved: boolean }): boolean {
    const { fired } = this.faults
    const code = codeOf(error)
    if (fired.has('flip') && isNoticedDamage(error)) return true
    if (code === 'storage_unavailable' || code === 'storage_full')
      return this.#restarts > 0 || DISTURBANCES.some((kind) => fired.has(kind))
    if (code === 'closing') return this.#restarts > 0
    if (code === 'project_removed' || code === 'not_found' || code === 'base_mismatch')
      return context === undefined || context.isRemoved
    const hasGivenUp = error instanceof Error && (error.message === 'the client gave up' || error.name === 'AbortError')
    if (hasGivenUp) return fired.has('slow') || fired.has('hang')
    const { operation } = context ?? {}
    return operation?.kind === 'upload' && operation.isBroken && error instanceof StowageError
  }

  #oracleOf(projectId: string): ProjectOracle {
    const oracle = this.#oracles.get(projectId) ?? new ProjectOracle(this.#moments)
    this.#oracles.set(projectId, oracle)
    return oracle
  }

  #sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.#clients.setTimer(delayMs, resolve))
  }

  #broken(error: unknown): void {
    this.#violation ??= error instanceof Violation ? error.message : wordsOf(error)
  }
}

/** Settles as the work does, or rejects with `CRASHED` when the server dies before. */
function unlessCrashed<T>(life: ServerLife, work: Promise<T>): Promise<T> {
  const crashed = life.over.then((): never => {
    throw CRASHED
  })
  return Promise.race([work, crashed])
}

/** A client or the service noticed changed bytes. */
function isNoticedDamage(error: unknown): boolean {
  return codeOf(error) === 'corrupt_data' || (error instanceof Error && /^Z_|^ERR_ZLIB/.test(codeOf(error) ?? ''))
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
}

function nameOf({ kind, index }: Operation): string {
  return `operation ${index} (${kind})`
}

function wordsOf(error: unknown): string {
  if (error instanceof Violation) return error.message
  if (error instanceof StowageError) return `${error.code}: ${error.message}${causeOf(error)}`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function causeOf({ cause }: Error): string {
  return cause instanceof Error ? ` (${cause.message})` : ''
}
