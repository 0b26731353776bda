import { automation, type AutomationExtension, type AutomationProject } from '../../../src/automation-server/index.ts'
import { asGuarded } from '../../../src/storage/guard.ts'
import { SimulatedBackend } from '../../../src/simulation/backend.ts'
import { codeOf, wordsOf } from '../../../src/simulation/expectations.ts'
import { type Fault, FaultInjector } from '../../../src/simulation/faults.ts'
import { Violation } from '../../../src/simulation/oracle.ts'
import { SimulatedProcess } from '../../../src/simulation/process.ts'
import { Random } from '../../../src/simulation/random.ts'
import { Scheduler } from '../../../src/simulation/scheduler.ts'
import { type ServerLife, SimulatedServer } from '../../../src/simulation/server.ts'
import { SimulatedStorage } from '../../../src/simulation/storage.ts'
import { EPOCH_MS, EpochCounter } from '../../../src/store/upkeep/epochs.ts'
import { Book } from './book.ts'
import { functionsOf, PROJECT_ID, RUN_MS_MAX } from './functions.ts'
import { GRACE_EPOCHS, Timeline } from './history.ts'

const LEASE_MS = 6_000
const PENDING_MS_MAX = EPOCH_MS
const SWEEP_INTERVAL_MS = 2_000
/** A run has ended by then, whatever happened to it before. */
export const ALL_ENDED_MS: number = PENDING_MS_MAX + 2 * (RUN_MS_MAX + LEASE_MS) + 60_000

/** Codes with which anything may fail while something goes wrong, or while a server is stopped. */
const DISTURBED: ReadonlySet<string | undefined> = new Set([
  'storage_unavailable',
  'storage_full',
  'closing',
  'overloaded',
])

/** Parameters of a run that do not say what clients do. */
export interface WorldPlan {
  readonly seed: number
  readonly servers: number
  readonly faults: readonly Fault[]
}

/** Everything of one run: the storage, the servers with automation, and what is known about them. */
export class AutomationWorld {
  readonly random: Random
  readonly scheduler: Scheduler
  readonly faults: FaultInjector
  readonly storage: SimulatedStorage
  readonly servers: readonly SimulatedServer[]
  readonly book: Book
  readonly clients: SimulatedProcess
  readonly #extensions = new WeakMap<SimulatedProcess, AutomationExtension>()
  readonly #lives = new WeakMap<SimulatedProcess, ServerLife>()
  /** Whether a server was ever stopped. */
  isRestarted = false
  violation: string | undefined

  constructor({ seed, servers, faults }: WorldPlan) {
    this.random = new Random(seed)
    this.scheduler = new Scheduler(this.random.fork('schedule'))
    this.faults = new FaultInjector(faults)
    this.storage = new SimulatedStorage(this.scheduler)
    this.clients = new SimulatedProcess('clients', this.scheduler, this.random.fork('clients'))
    this.book = new Book(new Timeline(() => this.scheduler.nowMs))
    this.servers = Array.from({ length: servers }, (_, at) => this.#server(`s${at}`))
  }

  /** The current life of a server, or a new one. */
  life(server: SimulatedServer): ServerLife {
    const life = server.life()
    this.#lives.set(life.environment, life)
    return life
  }

  /** Automation of the project, as a server offers it. */
  project({ environment }: ServerLife): AutomationProject {
    return known(this.#extensions, environment).project(PROJECT_ID)
  }

  broken(error: unknown): void {
    this.violation ??= error instanceof Violation ? error.message : wordsOf(error)
  }

  /** Whether anything went wrong so far, or was stopped. */
  get isDisturbed(): boolean {
    return this.isRestarted || this.faults.fired.size > 0
  }

  isDisturbance(error: unknown): boolean {
    const isClosing = error instanceof Error && error.message === 'the store is closing'
    return (DISTURBED.has(codeOf(error)) || isClosing) && this.isDisturbed
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.clients.setTimer(delayMs, resolve))
  }

  async stop(server: SimulatedServer, graceMs: number): Promise<void> {
    this.isRestarted = true
    await server.stop(graceMs)
  }

  /** So many epochs of the store pass. */
  async age(epochs: number): Promise<void> {
    const span = this.book.timeline.begin()
    this.book.timeline.aged(span, epochs)
    const process = new SimulatedProcess(`age ${span.start}`, this.scheduler, this.random.fork(`age ${span.start}`))
    const { scheduler, random, storage } = this
    const faults = new FaultInjector([])
    const backend = new SimulatedBackend({ scheduler, random, storage, process, faults, onCrash: () => undefined })
    const counter = new EpochCounter(asGuarded(backend).records, process)
    // Servers of the run count epochs too.
    for (let isDone = epochs === 0; !isDone;) isDone = await counter.advance(epochs)
    this.book.timeline.end(span)
  }

  #server(name: string): SimulatedServer {
    const { scheduler, faults, storage, random } = this
    return new SimulatedServer({
      name,
      scheduler,
      faults,
      random: random.fork(name),
      connect: (parts) => new SimulatedBackend({ ...parts, storage }),
      rootsOf: () => [],
      extensionsOf: (process) => [this.#automation(process)],
      onPowerLoss: () => this.servers.forEach((server) => server.crash()),
      onError: (error) => {
        // A server that stood still finds that another one has taken over.
        const isOvertaken = codeOf(error) === 'conflict' && this.faults.fired.size > 0
        if (!this.isDisturbance(error) && !isOvertaken) this.broken(error)
      },
    })
  }

  #automation(process: SimulatedProcess): AutomationExtension {
    const extension = automation({
      functions: functionsOf({
        process,
        random: this.random.fork(`functions ${process.name}`),
        book: this.book,
        lifeOf: (one) => known(this.#lives, one),
      }),
      leaseMs: LEASE_MS,
      pendingMsMax: PENDING_MS_MAX,
      runMsMax: RUN_MS_MAX,
      sweepIntervalMs: SWEEP_INTERVAL_MS,
      deletionGraceMs: GRACE_EPOCHS * EPOCH_MS,
      attemptsMax: 2,
    })
    this.#extensions.set(process, extension)
    return extension
  }
}

function known<T>(map: WeakMap<SimulatedProcess, T>, process: SimulatedProcess): T {
  const found = map.get(process)
  if (found === undefined) throw new Violation(`${process.name} was never started`)
  return found
}
