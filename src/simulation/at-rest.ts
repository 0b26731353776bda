import { Readable } from 'node:stream'
import { amountOf, closureOf, sameAmount, type Texts } from './amounts.ts'
import { chooseAtRest } from './at-rest-chosen.ts'
import { fillQuota } from './at-rest-quota.ts'
import { type Destination, recordsIn } from './client.ts'
import { codeOf, isNoticedDamage, wordsOf } from './expectations.ts'
import { collect, compact, exportAll, lookAtPins, pagesOf, restore } from './keeper.ts'
import { Maintenance } from './maintenance.ts'
import { Violation } from './oracle.ts'
import { EpochCounter } from '../store/upkeep/epochs.ts'
import type { ServerLife } from './server.ts'
import type { KnownProject, World } from './world.ts'
import { SimulatedStorage } from './storage.ts'

/** Blobs that nothing names are marked by then, and go when as many epochs have passed and a server has begun one. */
const AFTERWARDS = { markedMs: 80 * 60_000, epochs: 150, sweptMs: 13 * 60_000 }
/** The share of runs that go on for days afterwards. */
const LONG_RUNS = 0.2
const SWEEPS_MAX = 4
const LONG_RUNS_OF_MANY_REMOVALS = 0.7
/** The share of runs in which objects are chosen in the end. */
const CHOOSING_RUNS = 0.06
const CHOOSING_RUNS_OF_CHOICES = 0.6
/** Background work has ended by then. */
const UPKEEP_MS = 60_000
const GRACE_MS = 2_000
/** Bytes that tell of a project, and of each of its removals, when everything is gone. */
const TRACE_BYTES_MAX = 350
/** Bytes that a project may have besides its objects, such as pins, plans and marks. */
const BESIDES_BYTES_MAX = 3_000
const LAST_OBJECT = '[{"id":"last"}]'
const PAGE_BYTES = 300
/** Every object is old then, also for a server that was told of the epoch a while ago. */
const AGE_EPOCHS = 4
const LOOKED_MS = 130_000

/** Nothing is under way any more: looks at all that there may be. */
export class AtRest {
  readonly #world: World
  readonly #isDamaged: boolean
  /** Whether all that no root reaches is collected in the end. */
  readonly #collects: boolean
  /** Whether objects are chosen and collected in the end. */
  readonly #chooses: boolean

  /** What collections left of each project. */
  readonly #left = new Map<string, Texts>()

  constructor(world: World) {
    this.#world = world
    this.#isDamaged = world.faults.fired.has('flip')
    this.#collects = world.random.fork('collects').chance(0.4)
    const hasChoices = world.plan.operations.some(({ kind }) => kind === 'choose')
    this.#chooses = world.random.fork('chooses').chance(hasChoices ? CHOOSING_RUNS_OF_CHOICES : CHOOSING_RUNS)
  }

  get #removals(): number {
    return [...this.#world.projects.values()].reduce((sum, { oracle }) => sum + oracle.removals, 0)
  }

  async look(): Promise<void> {
    const isLong = this.#world.random.chance(this.#removals < 3 ? LONG_RUNS : LONG_RUNS_OF_MANY_REMOVALS)
    const server = this.#world.servers.find(({ isAwake }) => isAwake) ?? this.#world.servers[0]
    const life = server.life()
    const { signal } = new AbortController()
    await life.service.ready().catch(() => undefined)
    if (isLong) await this.#passDays()
    else await this.#world.sleep(UPKEEP_MS)
    for (const project of this.#world.projects.values()) {
      const to = this.#world.destination(life, project, signal)
      for (const look of this.#looksAt(project, to))
        await look().catch((error: unknown) => {
          if (!(this.#isDamaged && isNoticedDamage(error))) throw new Violation(`in the end: ${wordsOf(error)}`)
        })
    }
    this.#world.areQuotasLifted = true
    if (isLong && this.#collects && !this.#isDamaged) await this.#comeDown(life)
    await server.stop(GRACE_MS)
    if (this.#isDamaged) return
    await new Maintenance(this.#world).check()
    if (isLong) await this.#removeAll()
  }

  /** Most of the epochs pass as if other servers counted them. Blobs that nothing names go, and then their marks. */
  async #passDays(): Promise<void> {
    const { process, connection, end } = this.#world.process('time', () => undefined)
    await this.#world.pass(AFTERWARDS.markedMs * (this.#world.hasLivedOn ? 2 : 1))
    for (let graces = 0; graces < 2; graces++) {
      await new EpochCounter(connection.records, process).advance(AFTERWARDS.epochs).catch((error: unknown) => {
        if (!(this.#isDamaged && isNoticedDamage(error))) throw error
      })
      await this.#world.pass(AFTERWARDS.sweptMs)
    }
    end()
  }

  #looksAt({ projectId, oracle, book }: KnownProject, to: Destination): (() => Promise<unknown>)[] {
    const { client, clients, plan } = this.#world
    const place = { index: 0, atMs: 0, server: 0, projectId }
    const roots = plan.models.filter((model) => model.projectId === projectId).flatMap(({ versions }) => versions)
    return [
      () => client.lookUp({ ...place, kind: 'list', ids: oracle.ids }, to),
      async () => oracle.checkWhole(this.#isDamaged ? new Set() : await to.project.has(oracle.ids)),
      ...roots.flatMap(({ rootId }) =>
        (['records', 'gzip'] as const).map(
          (form) => () => client.download({ ...place, kind: 'download', rootId, form, haveRootId: undefined }, to),
        ),
      ),
      () => lookAtPins({ life: to.life, oracle, book, projectId }),
      ...(this.#isDamaged ? [] : [() => this.#count(to)]),
      ...(this.#isDamaged || !this.#chooses
        ? []
        : [
            () =>
              chooseAtRest(to, { random: this.#world.random, pageBytes: PAGE_BYTES, clients, age: () => this.#age() }),
          ]),
      ...(this.#isDamaged || to.quota === undefined ? [] : [() => fillQuota(to, client, clients)]),
      ...(this.#isDamaged || !this.#collects ? [] : [() => this.#collect(to)]),
    ]
  }

  /** What is counted is what is there, and a copy of the project is equal to it. */
  async #count(to: Destination): Promise<void> {
    const { projectId, oracle } = to
    // From here on everything is live.
    if (!oracle.collections.isEmpty) await restore(to)
    const all = await exportAll(to, PAGE_BYTES, this.#world.clients)
    const usage = await to.life.context.usage(projectId, to.signal)
    const pins = await lookAtPins(to)
    const unreferenced = new Map(all)
    for (const id of closureOf(all, pins)) unreferenced.delete(id)
    const held = amountOf(all)
    const outside = amountOf(unreferenced)
    const counted = { ...held, unreferencedObjects: outside.objects, unreferencedJsonBytes: outside.jsonBytes }
    to.quota?.checkHeld(held)
    for (const [name, value] of Object.entries(counted))
      if (usage[name as keyof typeof counted] !== value)
        throw new Violation(`${projectId} has ${value} ${name}, and usage says ${usage[name as keyof typeof counted]}`)
    if (this.#world.random.chance(0.3)) await this.#copy(to, all)
  }

  /** A dry run counts exactly what is condemned and freed then; what roots reach stays, and nothing else. */
  async #collect(to: Destination): Promise<void> {
    const all = await exportAll(to, PAGE_BYTES, this.#world.clients)
    const pins = await lookAtPins(to)
    const kept = pins.length === 0 ? new Set(all.keys()) : closureOf(all, pins)
    const gone = new Map([...all].filter(([id]) => !kept.has(id)))
    await this.#age()
    const expected = amountOf(gone)
    const settings = { graceEpochs: 1, undoEpochs: 1 }
    for (const step of ['condemned', 'freed'] as const) {
      if (step === 'freed') await this.#age()
      for (const isDryRun of [true, false]) {
        const report = await collect({ ...settings, isDryRun }, to)
        for (const figure of ['condemned', 'freed'] as const)
          sameAmount(
            `a collection (${isDryRun ? 'dry run' : 'real'}) says ${figure}`,
            report?.[figure],
            figure === step ? expected : { objects: 0, jsonBytes: 0 },
          )
      }
    }
    await compact({ all: true }, to)
    const left = await exportAll(to, PAGE_BYTES, this.#world.clients)
    for (const [id, text] of all)
      if (left.get(id) !== (kept.has(id) ? text : undefined))
        throw new Violation(`after the collection ${id} is ${left.has(id) ? 'there' : 'gone'}, or another`)
    this.#left.set(to.projectId, left)
    for (const rootId of all.keys()) if (rootId.includes('root')) await this.#downloadsOnly(rootId, left, to)
  }

  /** A download holds what the project holds, and nothing that was freed. */
  async #downloadsOnly(rootId: string, left: Texts, { project, signal }: Destination): Promise<void> {
    const texts = await recordsIn(project.graph(rootId, { signal })).catch((error: unknown) => {
      if (codeOf(error) !== 'not_found') throw error
      return new Map<string, string>()
    })
    for (const id of texts.keys())
      if (!left.has(id)) throw new Violation(`a download of ${rootId} holds ${id}, which a collection has freed`)
    if (left.has(rootId) !== texts.has(rootId)) throw new Violation(`a download of ${rootId} does not find it`)
  }

  /** What was freed leaves the storage: what is left takes not much more than it does in a storage of its own. */
  async #comeDown({ service }: ServerLife): Promise<void> {
    const storage = new SimulatedStorage(this.#world.scheduler)
    const other = this.#world.server('copy', storage)
    let besides = 0
    for (const { projectId, oracle } of this.#world.projects.values()) {
      // Blobs of a project without a record are kept.
      const texts = [...(this.#left.get(projectId)?.values() ?? []), LAST_OBJECT.slice(1, -1)]
      await service.project(projectId).upload(Readable.from([Buffer.from(LAST_OBJECT)]), 'application/json')
      await other
        .life()
        .service.project(projectId)
        .upload(Readable.from([Buffer.from(`[${texts.join()}]`)]), 'application/json')
      besides += BESIDES_BYTES_MAX + TRACE_BYTES_MAX * oracle.removals
    }
    for (let merges = 0; merges < 2; merges++) {
      await this.#passDays()
      for (const projectId of this.#world.projects.keys()) await service.project(projectId).compact({ all: true })
    }
    await this.#passDays()
    const [bytes, least] = [await this.#world.sizeBytes(), await this.#world.sizeBytes(storage)]
    await other.stop(GRACE_MS)
    if (bytes > 2 * least + besides)
      throw new Violation(`${bytes} bytes are stored, though all that is left takes ${least} in a storage of its own`)
  }

  async #age(): Promise<void> {
    await this.#world.age(AGE_EPOCHS)
    await this.#world.sleep(LOOKED_MS)
  }

  /** The export of one server, sent to another one, is the export of that one. */
  async #copy(to: Destination, all: Texts): Promise<void> {
    const other = this.#world.server('other', new SimulatedStorage(this.#world.scheduler))
    const life = other.life()
    const project = life.service.project(to.projectId)
    const pages: Map<string, string>[] = []
    for await (const page of pagesOf(to, PAGE_BYTES, this.#world.clients)) {
      pages.push(page)
      const body = `[${[...page.values()].join()}]`
      if (page.size > 0) await project.upload(Readable.from([Buffer.from(body)]), 'application/json')
    }
    const copied: Map<string, string>[] = []
    for await (const page of pagesOf({ ...to, life }, PAGE_BYTES, this.#world.clients)) copied.push(page)
    const words = (some: readonly Map<string, string>[]): string =>
      JSON.stringify(some.filter(({ size }) => size > 0).map((page) => [...page]))
    if (words(copied) !== words(pages)) throw new Violation(`the copy of ${all.size} objects exports other pages`)
    await other.stop(GRACE_MS)
  }

  /**
   * Removed projects free their space. Each gets an object first: blobs of a project without a record are kept, because
   * the record may have been lost, so those of a crash before the first commit are swept only once the project exists.
   */
  async #removeAll(): Promise<void> {
    const [server] = this.#world.servers
    for (const projectId of this.#world.projects.keys()) {
      const project = server.life().service.project(projectId)
      await project.upload(Readable.from([Buffer.from(LAST_OBJECT)]), 'application/json')
      await project.remove()
    }
    let traces = TRACE_BYTES_MAX
    for (const { oracle } of this.#world.projects.values()) traces += TRACE_BYTES_MAX * (oracle.removals + 1)
    let left = Infinity
    // A blob that was written behind its own sweep goes once its old mark has gone.
    for (let times = 0; times < SWEEPS_MAX && left > traces; times++) {
      await this.#passDays()
      left = await this.#world.sizeBytes()
    }
    await server.stop(GRACE_MS)
    if (left > traces) throw new Violation(`all projects are removed, and ${left} bytes are left`)
    await new Maintenance(this.#world).check({ areSwept: true })
  }
}
