import type { Page, Run, RunDetails } from '../../../src/automation-server/index.ts'
import { codeOf } from '../../../src/simulation/expectations.ts'
import { Violation } from '../../../src/simulation/oracle.ts'
import type { ServerLife } from '../../../src/simulation/server.ts'
import { EPOCH_MS } from '../../../src/store/upkeep/epochs.ts'
import { isFinal, type KnownModel, type KnownVersion } from './book.ts'
import { PROJECT_ID, upload } from './functions.ts'
import type { Span } from './history.ts'
import type { Act } from './operations.ts'
import type { AutomationWorld } from './world.ts'

type ActOf<K extends Act['kind']> = Extract<Act, { readonly kind: K }>
/** An act that asks a server. */
export type ServedAct = Exclude<Act, { readonly kind: 'restart' | 'crash' | 'wait' | 'age' | 'sleep' }>

/** What clients ask of the servers, and what the book makes of the answers. */
export class Acts {
  readonly #world: AutomationWorld
  /** Whether anything may have been collected. */
  #hasCollected = false
  /** Roots whose uploads were acknowledged. */
  readonly #heldRoots = new Set<string>()
  #count = 0

  constructor(world: AutomationWorld) {
    this.#world = world
  }

  perform(act: ServedAct, life: ServerLife): Promise<unknown> {
    if (act.kind === 'model') return this.#model(life)
    if (act.kind === 'automation') return this.#automation(act, life)
    if (act.kind === 'upload') return this.#upload(act, life)
    if (act.kind === 'version') return this.#version(act, life)
    if (act.kind === 'start') return this.#start(act, life)
    if (act.kind === 'cancel') return this.#cancel(act, life)
    if (act.kind === 'delete' || act.kind === 'restore') return this.#change(act, life)
    if (act.kind === 'collect') return this.#collect(act, life)
    if (act.kind === 'compact') return this.#upkeep(() => life.service.project(PROJECT_ID).compact({ all: true }))
    if (act.kind === 'read') return this.#read(act, life)
    return this.list(life)
  }

  /** Looks at everything that the server lists. */
  async list(life: ServerLife): Promise<void> {
    const { book } = this.#world
    const { models, versions, runs } = this.#world.project(life)
    const span = book.timeline.begin()
    const listed = await all((cursor) => models.list(cursor))
    book.timeline.end(span)
    book.sawModels(listed, span)
    for (const model of book.models) {
      const span = book.timeline.begin()
      const found = await all((cursor) => versions.list(model.id, cursor)).catch((error: unknown) => {
        if (codeOf(error) !== 'not_found') throw error
        return undefined
      })
      book.timeline.end(span)
      if (found !== undefined) book.sawVersions(model, found, span)
      else if (model.created.end < span.start && !model.fate.mayBePurged(span))
        throw new Violation(`the model ${model.id} is gone`)
    }
    const began = book.timeline.begin()
    const found = await all((cursor) => runs.list(cursor))
    book.timeline.end(began)
    for (const run of found) this.#saw(run, began)
  }

  /** Everything below the root of a version, if it must be there. */
  async download(version: KnownVersion, life: ServerLife): Promise<void> {
    const { book } = this.#world
    const span = book.timeline.begin()
    const ids = new Set<string>()
    try {
      const graph = life.service.project(PROJECT_ID).graph(version.content.rootId)
      for await (const records of graph) for (const { id } of records) ids.add(id)
    } catch (error) {
      if (codeOf(error) !== 'not_found') throw error
    }
    book.timeline.end(span)
    if (!book.mustBeHeld(version, span)) return
    for (const { id } of version.content.objects)
      if (!ids.has(id)) throw new Violation(`the version ${version.id} lacks the object ${id}`)
  }

  async #model(life: ServerLife): Promise<void> {
    const { book } = this.#world
    const span = book.timeline.begin()
    const { id } = await this.#world.project(life).models.create({ name: `model ${this.#count++}` })
    book.timeline.end(span)
    book.addModel(id, span)
  }

  async #automation({ draw, functionId }: ActOf<'automation'>, life: ServerLife): Promise<void> {
    const { book } = this.#world
    const model = drawn(book.models, draw)
    if (model === undefined) return
    const span = book.timeline.begin()
    const wanted = { name: `automation ${this.#count++}`, functionId, modelId: model.id, inputs: {} }
    const work = this.#world.project(life).automations.create({ ...wanted, trigger: 'version' })
    const made = await work.catch((error: unknown) => {
      book.timeline.end(span)
      if (!isAbsence(error) || model.fate.isLive(span)) throw error
      return undefined
    })
    if (made === undefined) return
    book.timeline.end(span)
    book.automations.push({ id: made.id, model, created: span })
  }

  async #upload({ content }: Pick<ActOf<'upload'>, 'content'>, life: ServerLife): Promise<void> {
    await upload(life, content)
    this.#heldRoots.add(content.rootId)
  }

  async #version({ draw, content, isThere = false }: ActOf<'version'>, life: ServerLife): Promise<void> {
    const { book } = this.#world
    const model = drawn(book.models, draw)
    if (!isThere) await this.#upload({ content }, life)
    if (model === undefined) return
    const mayBeAbsent = !this.#heldRoots.has(content.rootId)
    const span = book.timeline.begin()
    try {
      const wanted = { rootObjectId: content.rootId, message: 'a version' }
      const { id } = await this.#world.project(life).versions.create(model.id, wanted)
      book.timeline.end(span)
      book.addVersion(id, model, content, span)
    } catch (error) {
      book.timeline.end(span)
      const isExcused = codeOf(error) === 'objects_missing' && (mayBeAbsent || this.#hasCollected)
      if (!isExcused && (!isAbsence(error) || model.fate.isLive(span))) throw error
    }
  }

  async #start({ draw }: ActOf<'start'>, life: ServerLife): Promise<void> {
    const { book } = this.#world
    const automation = drawn(book.automations, draw)
    if (automation === undefined) return
    const { model, id } = automation
    const span = book.timeline.begin()
    try {
      const run = await this.#world.project(life).runs.start(id)
      book.timeline.end(span)
      book.sawRun(run, span)
    } catch (error) {
      book.timeline.end(span)
      const hasVersion = book
        .versionsOf(model)
        .some(({ created, fate }) => created.end < span.start && fate.isLive(span))
      const isExcused =
        !model.fate.isLive(span) || !hasVersion || !book.versionsOf(model).every(({ fate }) => fate.isUntouched(span))
      if (!isAbsence(error) || !isExcused) throw error
    }
  }

  async #cancel({ draw }: ActOf<'cancel'>, life: ServerLife): Promise<void> {
    const { book } = this.#world
    const id = drawn(book.openRunIds, draw)
    if (id === undefined) return
    const span = book.timeline.begin()
    try {
      const run = await this.#world.project(life).runs.cancel(id)
      book.timeline.end(span)
      if (run.status !== 'canceled') throw new Violation(`the canceled run ${id} is ${run.status}`)
      book.sawRun(run, span)
    } catch (error) {
      if (codeOf(error) !== 'conflict') throw error
      const ended = await this.readRun(id, life)
      if (ended !== undefined && !isFinal(ended))
        throw new Violation(`the run ${id} cannot be canceled, and is ${ended.status}`)
    }
  }

  /** The run as the server shows it now; `undefined` if it does not know it. */
  async readRun(id: string, life: ServerLife): Promise<RunDetails | undefined> {
    const { book } = this.#world
    const span = book.timeline.begin()
    try {
      const run = await this.#world.project(life).runs.get(id)
      book.timeline.end(span)
      this.#saw(run, span)
      return run
    } catch (error) {
      if (codeOf(error) !== 'not_found') throw error
      book.timeline.end(span)
      book.missedRun(id, span)
      return undefined
    }
  }

  #saw(run: Run, span: Span): void {
    if (isLost(run) && !this.#world.isDisturbed)
      throw new Violation(`the run ${run.id} counts as lost, and its server was there all the time`)
    this.#world.book.sawRun(run, span)
  }

  async #change({ kind, what, draw }: ActOf<'delete' | 'restore'>, life: ServerLife): Promise<void> {
    const { book } = this.#world
    const now = book.timeline.begin()
    const some: readonly (KnownModel | KnownVersion)[] = what === 'model' ? book.models : book.versions
    const target = drawn(kind === 'delete' ? some : some.filter(({ fate }) => !fate.isLive(now)), draw)
    if (target === undefined) return
    const model = 'model' in target ? target.model : target
    const { models, versions } = this.#world.project(life)
    const change = target.fate.begin(kind)
    try {
      if (target === model) await models[kind](model.id)
      else await versions[kind](model.id, target.id)
      target.fate.acknowledged(change)
    } catch (error) {
      if (!isAbsence(error)) throw error
      target.fate.refused(change)
      book.timeline.end(change)
      const isOfLiving = target === model || model.fate.isLive(change)
      if (isOfLiving && !target.fate.mayBePurged(change) && !model.fate.mayBePurged(change)) throw error
      // While the model is deleted, none of its versions changes.
      if (codeOf(error) === 'not_found' && !target.fate.mayBePurged(change) && !model.fate.mayBePurged(change))
        throw error
    }
  }

  async #collect({ graceEpochs, undoEpochs }: ActOf<'collect'>, life: ServerLife): Promise<void> {
    this.#hasCollected = true
    const settings = { olderThanMs: graceEpochs * EPOCH_MS, undoMs: undoEpochs * EPOCH_MS }
    await this.#upkeep(() => life.service.project(PROJECT_ID).collect(settings))
  }

  /** An empty project has nothing to keep up, and several servers get in each other's way. */
  async #upkeep(work: () => Promise<unknown>): Promise<void> {
    await work().catch((error: unknown) => {
      if (codeOf(error) !== 'not_found' && codeOf(error) !== 'overloaded') throw error
    })
  }

  async #read({ draw }: ActOf<'read'>, life: ServerLife): Promise<void> {
    const { book } = this.#world
    const id = drawn(book.runIds, draw)
    if (id !== undefined) await this.readRun(id, life)
    const version = drawn(book.versions, draw)
    if (version !== undefined) await this.download(version, life)
  }
}

/** All pages of a list. */
export async function all<T>(page: (request: { readonly cursor?: string }) => Promise<Page<T>>): Promise<readonly T[]> {
  const items: T[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const next: Page<T> = await page(cursor === undefined ? {} : { cursor })
    items.push(...next.items)
    cursor = next.cursor
  }
  return items
}

/** Ended since its runner was silent. */
function isLost({ status, message }: Run): boolean {
  return status === 'timeout' && message?.includes('was silent') === true
}

/** What it is about is not there, or is deleted. */
function isAbsence(error: unknown): boolean {
  return codeOf(error) === 'not_found' || codeOf(error) === 'conflict'
}

function drawn<T>(items: readonly T[], draw: number): T | undefined {
  return items.length === 0 ? undefined : items[draw % items.length]
}
