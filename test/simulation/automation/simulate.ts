import { type Fault, FAULT_KINDS, type FaultKind, planFaults } from '../../../src/simulation/faults.ts'
import { Violation } from '../../../src/simulation/oracle.ts'
import { Random } from '../../../src/simulation/random.ts'
import { runPhase } from '../../../src/simulation/phase.ts'
import type { RunResult } from '../../../src/simulation/run.ts'
import type { SimulatedServer } from '../../../src/simulation/server.ts'
import { codeOf, wordsOf } from '../../../src/simulation/expectations.ts'
import { Acts, type ServedAct } from './acts.ts'
import { lookAtEnd } from './final-look.ts'
import type { AutomationOperation } from './operations.ts'
import { planAutomation } from './plan.ts'
import { AutomationWorld } from './world.ts'

/** Which run, and which parts of it. */
export interface AutomationSimulationOptions {
  readonly seed: number
  readonly servers?: number
  /** Places of the operations and faults that are left in. All by default. */
  readonly operations?: readonly number[]
  readonly faults?: readonly number[]
}

/** The outcome of one run, and its parameters. */
export interface AutomationSimulation extends RunResult {
  readonly seed: number
  readonly servers: number
  readonly operations: readonly number[]
  readonly faults: readonly number[]
  /** Runs of automation that clients know. */
  readonly runs: number
}

/** About how many calls to the storage an operation makes, with the runs that it leads to. */
const CALLS_PER_OPERATION = 60
/** Records of automation are not proof against a flipped bit: a damaged one is reported, and its run stands still. */
const KINDS: readonly FaultKind[] = FAULT_KINDS.filter((kind) => kind !== 'flip')
const PATIENCE_MS = 60_000
const WAIT_MS = 20_000
const GRACE_MS_MAX = 5_000
const CRASHED = new Error('the server crashed')
const GIVEN_UP = new Error('the client gave up')

/** Makes the run of a seed, to its end or to the first violation. The same options make the same run. */
export async function simulateAutomation(options: AutomationSimulationOptions): Promise<AutomationSimulation> {
  const random = new Random(options.seed)
  const drawn = random.fork('servers').pick([1, 2, 2, 3])
  const { operations: planned, isUndisturbed } = planAutomation(random.fork('operations'), drawn)
  const kinds = isUndisturbed ? [] : KINDS
  const plannedFaults = planFaults(random.fork('faults'), kinds, planned.length * CALLS_PER_OPERATION)
  const operations = options.operations ?? planned.map(({ index }) => index)
  const faults = options.faults ?? plannedFaults.map((_, at) => at)
  const servers = options.servers ?? drawn
  const world = new AutomationWorld({
    seed: options.seed,
    servers,
    faults: faults.flatMap((at): Fault[] => plannedFaults.slice(at, at + 1)),
  })
  const forget = watchListeners()
  const violation = await new AutomationRun(world).toEnd(
    operations.flatMap((at): AutomationOperation[] => planned.slice(at, at + 1)),
  )
  forget()
  return {
    violation,
    steps: world.scheduler.count,
    calls: world.faults.calls,
    fired: [...world.faults.fired],
    digest: (world.scheduler.digest >>> 0).toString(16).padStart(8, '0'),
    runs: world.book.runIds.length,
    seed: options.seed,
    servers,
    operations,
    faults,
  }
}

/** Processes that were killed leave the guards of their functions behind. */
function watchListeners(): () => void {
  const events = ['uncaughtException', 'unhandledRejection'] as const
  const before = events.map((event) => new Set<unknown>(process.listeners(event as 'uncaughtException')))
  const listenersMax = process.getMaxListeners()
  process.setMaxListeners(0)
  return () => {
    for (const [at, event] of events.entries())
      for (const listener of process.listeners(event as 'uncaughtException'))
        if (!before[at].has(listener)) process.off(event, listener)
    process.setMaxListeners(listenersMax)
  }
}

/** The operations of a plan, and the look at what they left. */
class AutomationRun {
  readonly #world: AutomationWorld
  readonly #acts: Acts

  constructor(world: AutomationWorld) {
    this.#world = world
    this.#acts = new Acts(world)
  }

  async toEnd(operations: readonly AutomationOperation[]): Promise<string | undefined> {
    try {
      await runPhase(
        this.#world,
        operations.map((operation) => this.#perform(operation)),
      )
      if (!this.#world.isDisturbed) await runPhase(this.#world, [this.#lookUndisturbed()])
      this.#world.faults.stop()
      await runPhase(this.#world, [this.#restartAll()])
      await runPhase(this.#world, [lookAtEnd(this.#world, this.#acts)])
      await runPhase(
        this.#world,
        this.#world.servers.map((server) => this.#world.stop(server, GRACE_MS_MAX)),
      )
    } catch (error) {
      this.#world.broken(error)
    }
    return this.#world.violation
  }

  async #perform(operation: AutomationOperation): Promise<void> {
    const world = this.#world
    const server = world.servers[operation.server % world.servers.length]
    await world.sleep(operation.atMs)
    await server.up()
    if (operation.kind === 'wait') return world.sleep(WAIT_MS)
    if (operation.kind === 'age') return world.age(operation.epochs)
    if (operation.kind === 'restart') return world.stop(server, world.random.below(GRACE_MS_MAX))
    if (operation.kind === 'crash') {
      world.faults.happened('crash')
      return server.crash()
    }
    if (operation.kind === 'sleep') {
      world.faults.happened('sleep')
      return world.life(server).environment.sleep(operation.durationMs)
    }
    if ('hold' in operation && operation.hold !== undefined)
      world.faults.hold({ ...operation.hold, machine: server.name })
    return this.#ask(operation, `operation ${operation.index}`, server)
  }

  /** One answer, unless the server dies or the client gives up before. */
  async #ask(act: ServedAct, name: string, server: SimulatedServer): Promise<void> {
    const world = this.#world
    const life = world.life(server)
    let giveUp = (): void => undefined
    const gone = new Promise<never>((_, reject) => (giveUp = () => reject(GIVEN_UP)))
    const patience = world.clients.setTimer(PATIENCE_MS, () => giveUp())
    const crashed = life.over.then((): never => {
      throw CRASHED
    })
    const work = this.#acts.perform(act, life)
    await Promise.race([work, crashed, gone]).catch((error: unknown) => {
      const isGone = error === CRASHED || (error === GIVEN_UP && world.faults.fired.size > 0)
      if (isGone || world.isDisturbance(error)) return
      const code = codeOf(error)
      world.broken(new Violation(`${name} (${act.kind}): ${code === undefined ? '' : `${code} `}${wordsOf(error)}`))
    })
    work.catch(() => undefined)
    crashed.catch(() => undefined)
    gone.catch(() => undefined)
    patience.cancel()
  }

  /** Nothing went wrong: by now runs are under way, and none of them may count as lost. */
  async #lookUndisturbed(): Promise<void> {
    await this.#world.sleep(WAIT_MS)
    // The first fault of all may meet this look.
    await this.#ask({ kind: 'list' }, 'the last look', this.#world.servers[0])
  }

  /** Every server is started anew: what a process held in memory is gone. */
  async #restartAll(): Promise<void> {
    const world = this.#world
    world.isRestarted = true
    for (const server of world.servers) {
      if (world.random.chance(0.5)) server.crash()
      else await world.stop(server, GRACE_MS_MAX)
      await server.up()
    }
  }
}
