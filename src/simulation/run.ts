import { AtRest } from './at-rest.ts'
import { choose } from './choosing.ts'
import type { Destination } from './client.ts'
import { codeOf, wordsOf } from './expectations.ts'
import type { FaultKind } from './faults.ts'
import { collect, compact, exportAll, pin, restore, unpin } from './keeper.ts'
import { Maintenance } from './maintenance.ts'
import type { Operation, ServedOperation } from './operations.ts'
import { Violation } from './oracle.ts'
import { runPhase } from './phase.ts'
import type { ServerLife, SimulatedServer } from './server.ts'
import { upload } from './uploading.ts'
import { type Plan, World } from './world.ts'

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

/** What an operation waits for, and when that was planned. */
interface Before {
  readonly ended: Promise<void>
  readonly atMs: number
}

/** When a client gives up, and how much later an operator kills a server that has not even answered that. */
const PATIENCE_MS = 60_000
const LAST_ANSWER_MS = 30_000
/** How long a stopping server may finish its work. */
const GRACE_MS_MAX = 2_000
/** A living server has applied by then what another one left. */
const MADE_UP_MS = 180_000
const CRASHED = new Error('the server crashed')
/** The server sleeps, and its client has gone. */
const GIVEN_UP = new Error('the client has gone')

/** Makes the run that the plan and its seed decide, to its end or to the first violation. */
export async function run(plan: Plan): Promise<RunResult> {
  const world = new World(plan)
  const violation = await new Run(world).toEnd()
  return {
    violation,
    steps: world.scheduler.count,
    calls: world.faults.calls,
    fired: [...world.faults.fired],
    digest: (world.scheduler.digest >>> 0).toString(16).padStart(8, '0'),
  }
}

/** The operations of a plan, and the look at what they left. */
class Run {
  readonly #world: World
  readonly #maintenance: Maintenance

  constructor(world: World) {
    this.#world = world
    this.#maintenance = new Maintenance(world)
  }

  async toEnd(): Promise<string | undefined> {
    try {
      await runPhase(this.#world, this.#inOrder())
      this.#world.faults.stop()
      await runPhase(this.#world, [this.#endLives()])
      await runPhase(this.#world, [new AtRest(this.#world).look()])
    } catch (error) {
      this.#world.broken(error)
    }
    await this.#world.closed().catch((error: unknown) => this.#world.broken(error))
    return this.#world.violation
  }

  /** Begins each operation in its time. Nothing passes an operation that lets time pass. */
  #inOrder(): Promise<void>[] {
    const work: Promise<void>[] = []
    let before: Before = { ended: Promise.resolve(), atMs: 0 }
    for (const operation of this.#world.plan.operations) {
      const { kind, atMs } = operation
      const passesTime = kind === 'age' && operation.isBeside !== true
      const ended = passesTime ? Promise.all(work).then(() => undefined) : before.ended
      work.push(this.#perform(operation, { ended, atMs: before.atMs }))
      if (passesTime) before = { ended: work[work.length - 1], atMs }
    }
    return work
  }

  async #perform(operation: Operation, before: Before): Promise<void> {
    const server = this.#world.servers[operation.server % this.#world.servers.length]
    await before.ended
    await this.#world.sleep(operation.atMs - before.atMs)
    if (operation.kind === 'age' && operation.isBeside === true) return this.#maintenance.ageBeside(operation.epochs)
    await this.#maintenance.over(() => server.up())
    if (operation.kind === 'restart') return this.#world.stop(server, this.#world.random.below(GRACE_MS_MAX))
    if (operation.kind === 'maintenance') return this.#maintenance.perform(operation)
    if (operation.kind === 'age') return this.#maintenance.age(operation.epochs, operation.waitMs ?? 0)
    return this.#maintenance.during(() => this.#serve(operation, server))
  }

  async #serve(operation: ServedOperation, server: SimulatedServer): Promise<void> {
    const life = server.life()
    const project = this.#world.project(operation.projectId)
    const span = project.oracle.begin()
    const patience = new AbortController()
    let giveUp = (): void => undefined
    const gone = new Promise<never>((_, reject) => (giveUp = () => reject(GIVEN_UP)))
    const patienceMs = operation.patienceMs ?? PATIENCE_MS
    const impatience = this.#world.clients.setTimer(patienceMs, () => {
      // A server that slept does not notice that its client has gone.
      if (operation.sleep === undefined)
        void life.environment.whenAwake(() => patience.abort(new Error('the client gave up')))
    })
    this.#disturb(operation, server, life)
    const killer = this.#world.clients.setTimer(patienceMs + LAST_ANSWER_MS, () => {
      if (life.environment.hasSlept) giveUp()
      else if (this.#world.faults.fired.has('hang')) life.kill()
      else this.#world.broken(new Violation(`${nameOf(operation)} is not answered`))
    })
    const isFine = (error: unknown): boolean =>
      error === CRASHED ||
      error === GIVEN_UP ||
      this.#world.isExpected(error, operation, project.oracle.isRemovedSince(span)) ||
      // What is still asked of a server that sleeps, nobody waits for.
      (life.environment.hasSlept && codeOf(error) === 'AbortError')
    const work = unlessCrashed(life, this.#act(operation, this.#world.destination(life, project, patience.signal)))
    work.catch((error: unknown) => {
      if (!isFine(error)) this.#world.broken(new Violation(`${nameOf(operation)}: ${wordsOf(error)}`))
    })
    await Promise.race([work, gone]).catch(() => undefined)
    impatience.cancel()
    killer.cancel()
  }

  /** The server dies or stands still in the middle of the operation, or one of its calls takes long, where that is planned. */
  #disturb({ crashAfterMs, sleep, hold }: ServedOperation, server: SimulatedServer, { environment }: ServerLife): void {
    const { clients, faults } = this.#world
    if (hold !== undefined) faults.hold({ ...hold, machine: server.name })
    if (crashAfterMs !== undefined)
      clients.setTimer(crashAfterMs, () => {
        if (!environment.isAlive || faults.isStopped) return
        faults.happened('crash')
        server.crash()
      })
    if (sleep === undefined) return
    if ('afterCall' in sleep) {
      faults.happened('sleep')
      environment.sleepAfter(sleep.afterCall, sleep.durationMs)
      return
    }
    clients.setTimer(sleep.afterMs, () => {
      if (!environment.isAlive || faults.isStopped) return
      faults.happened('sleep')
      environment.sleep(sleep.durationMs)
    })
  }

  #act(operation: ServedOperation, to: Destination): Promise<unknown> {
    if (operation.kind === 'upload') return upload(operation, to, this.#world.client)
    if (operation.kind === 'remove') return this.#remove(to)
    if (operation.kind === 'download') return this.#world.client.download(operation, to)
    if (operation.kind === 'pin') return pin(operation, to)
    if (operation.kind === 'unpin') return unpin(operation, to)
    if (operation.kind === 'export') return exportAll(to, operation.pageBytes, this.#world.clients)
    if (operation.kind === 'collect') return collect(operation, to)
    if (operation.kind === 'choose') return choose(operation, to)
    if (operation.kind === 'restore') return restore(to)
    if (operation.kind === 'compact') return compact(operation, to)
    if (operation.kind === 'usage') return to.life.context.usage(operation.projectId, to.signal)
    return this.#world.client.lookUp(operation, to)
  }

  async #remove({ project, oracle, life }: Destination): Promise<void> {
    const removal = oracle.beginRemoval()
    const end = (): void => {
      if (removal.end === Infinity) oracle.end(removal)
    }
    void life.over.then(end)
    try {
      await project.remove()
      if (removal.end === Infinity) removal.isAcknowledged = true
    } finally {
      end()
    }
  }

  /** Every server is started anew, or all but one die, and that one makes up for what they have left. */
  async #endLives(): Promise<void> {
    const { fired } = this.#world.faults
    const living = this.#world.servers.filter(({ isAwake }) => isAwake)
    const isLeft = living.length > 0 && !fired.has('hang') && !fired.has('flip') && this.#world.random.chance(0.5)
    const [left] = living
    // A service whose start failed stays so.
    if (isLeft && (await isReady(left.life()))) {
      for (const server of this.#world.servers) if (server !== left) server.crash()
      this.#world.hasLivedOn = true
      await this.#world.sleep(MADE_UP_MS)
      return
    }
    for (const server of this.#world.servers) {
      if (this.#world.random.chance(0.5)) server.crash()
      else await this.#world.stop(server, GRACE_MS_MAX)
      await server.up()
    }
  }
}

/** Settles as the work does, or rejects with `CRASHED` when the server dies before. */
function unlessCrashed<T>(life: ServerLife, work: Promise<T>): Promise<T> {
  const crashed = life.over.then((): never => {
    throw CRASHED
  })
  return Promise.race([work, crashed])
}

async function isReady({ service }: ServerLife): Promise<boolean> {
  return service.ready().then(
    () => true,
    () => false,
  )
}

function nameOf({ kind, index }: Operation): string {
  return `operation ${index} (${kind})`
}
