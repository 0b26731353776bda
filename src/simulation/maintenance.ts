import { checkStore } from '../store/upkeep/check.ts'
import { reindexStore } from '../store/upkeep/reindex.ts'
import type { PlannedMaintenance } from './operations.ts'
import { Violation } from './oracle.ts'
import type { World } from './world.ts'

/** How often an operator lets a reindex be interrupted. */
const ATTEMPTS_DISTURBED = 3
/** A reindex of a thousand objects takes minutes of virtual time. */
const ATTEMPT_MS_MAX = 7_200_000
const GRACE_MS_MAX = 2_000
/** Writes that were abandoned are over by then. */
const QUIET_MS = 100
/** Background work of servers is over by then, and each has looked at the epoch. */
const SETTLED_MS = 130_000

const TOMBSTONE = /\/tombstone-/

/** What operators do to a storage that no server uses. */
export class Maintenance {
  readonly #world: World
  #under: Promise<void> | undefined
  #working = 0
  #idle: (() => void) | undefined
  #count = 0

  constructor(world: World) {
    this.#world = world
  }

  /** Resolves when no maintenance is under way, after `wait` has resolved too. */
  async over(wait: () => Promise<void>): Promise<void> {
    do {
      await this.#under
      await wait()
    } while (this.#under !== undefined)
  }

  /** Counts the work as under way. */
  async during(work: () => Promise<void>): Promise<void> {
    this.#working++
    try {
      await work()
    } finally {
      if (--this.#working === 0) this.#idle?.()
    }
  }

  /** Waits until everything that was begun has ended, and lets so many epochs of the store pass, and then time. */
  age(epochs: number, waitMs: number): Promise<void> {
    return this.#alone(() => this.#age(epochs, waitMs))
  }

  /** So many epochs of the store pass, while others go on. */
  ageBeside(epochs: number): Promise<void> {
    return this.#world.faults.without(() => this.#world.age(epochs))
  }

  /** Stops all servers, and does it. Other operations wait meanwhile. */
  perform(planned: PlannedMaintenance): Promise<void> {
    return this.#alone(() => this.#perform(planned))
  }

  async #alone(work: () => Promise<void>): Promise<void> {
    const before = this.#under
    const under = (async (): Promise<void> => {
      await before
      await work()
    })()
    this.#under = under
    try {
      await under
    } finally {
      if (this.#under === under) this.#under = undefined
    }
  }

  async #age(epochs: number, waitMs: number): Promise<void> {
    if (this.#working > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    if (epochs > 0) {
      await this.#world.sleep(SETTLED_MS)
      await this.#world.faults.without(() => this.#world.age(epochs))
      await this.#world.sleep(SETTLED_MS)
    }
    await this.#world.pass(waitMs)
  }

  async #perform({ task, fullAfterCalls }: Pick<PlannedMaintenance, 'task' | 'fullAfterCalls'>): Promise<void> {
    const { servers, faults, projects } = this.#world
    for (const server of servers) await this.#world.stop(server, this.#world.random.below(GRACE_MS_MAX))
    await this.#world.sleep(QUIET_MS)
    if (faults.fired.has('flip')) return
    if (task === 'check') return this.check()
    this.#world.isReindexed = true
    for (const { oracle } of projects.values()) oracle.reindexed()
    if (fullAfterCalls !== undefined) faults.plan('full', fullAfterCalls)
    for (let attempt = 0; attempt < ATTEMPTS_DISTURBED; attempt++) if (await this.#reindex()) return
    if (!(await faults.without(() => this.#reindex()))) throw new Violation('a reindex without faults did not end')
  }

  /**
   * The findings of `stowage check`. `areSwept`: a sweep came to every removed project since the last crash, and has
   * written tombstones anew that were cut short.
   */
  async check({ areSwept = false }: { readonly areSwept?: boolean } = {}): Promise<void> {
    await this.#world.faults.without(async () => {
      const { process, connection, end } = this.#world.process(`check ${this.#count++}`, () => undefined)
      for await (const { severity, subject, message } of checkStore(connection, { environment: process }))
        if (severity === 'damage' || (areSwept && TOMBSTONE.test(subject)))
          throw new Violation(`check finds damage: ${subject}: ${message}`)
      end()
    })
  }

  /**
   * A reindex cannot know whether a pack without a record was acknowledged: one that is cut short may be a loss. A
   * tombstone that is cut short shows that itself.
   */
  #foundByReindex(subject: string, damage: string): void {
    const blobName = subject.replace(/^blob /, '')
    if (!TOMBSTONE.test(blobName) && this.#world.isTorn(blobName)) return
    if (!this.#world.faults.fired.has('flip')) throw new Violation(`reindex finds damage: ${damage}`)
    for (const { oracle } of this.#world.projects.values()) oracle.lost()
  }

  /** False if it was interrupted. Throws `Violation` if it finds that something is lost. */
  async #reindex(): Promise<boolean> {
    let interrupt = (): void => undefined
    const interrupted = new Promise<false>((resolve) => (interrupt = () => resolve(false)))
    const { process, connection, end } = this.#world.process(`reindex ${this.#count++}`, () => interrupt())
    const tooLong = this.#world.clients.setTimer(ATTEMPT_MS_MAX, interrupt)
    const work = async (): Promise<boolean> => {
      for await (const { severity, subject, message } of reindexStore(connection, { environment: process }))
        if (severity === 'damage') this.#foundByReindex(subject, `${subject}: ${message}`)
      return true
    }
    const isDone = await Promise.race([work(), interrupted]).catch((error: unknown) => {
      if (error instanceof Violation || !this.#world.isExpected(error, undefined, true)) throw error
      return false
    })
    tooLong.cancel()
    process.kill()
    connection.sever()
    end()
    await this.#world.sleep(QUIET_MS)
    return isDone
  }
}
