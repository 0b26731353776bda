import type { ProjectQuota } from '../object/graph-store.ts'
import { plannedObject, type PlannedModel, type PlannedObject, type PlannedVersion } from './models.ts'
import type {
  PlannedChoice,
  PlannedCollection,
  PlannedCompaction,
  PlannedDownload,
  PlannedExport,
  PlannedPin,
  PlannedRemoval,
  PlannedUpload,
  Unplaced,
} from './operations.ts'
import type { Random } from './random.ts'

/** A step of a story: an operation, and how long after the one before it begins. */
export interface StoryStep {
  readonly operation: Unplaced
  readonly gapMs: number
  /** Drawn by default. */
  readonly server: number | undefined
}

/** Operations in a fixed order that lead to one kind of trouble, over objects of their own. */
export interface Story {
  readonly model: PlannedModel
  readonly steps: readonly StoryStep[]
  /** Whether everything else comes before. */
  readonly isLast: boolean
  /** What its project may hold. */
  readonly quota: ProjectQuota | undefined
}

/** More claims than are looked up one by one: the plan of such a root is stored. */
const CLAIMS_OF_STORED_PLAN = 1_001

/** Random bytes of a text whose block is too large to be copied into a plan. */
const LARGE_TEXT_BYTES = 90_000

/** Collects the steps of a story. */
export class Teller {
  readonly random: Random
  readonly #projectId: string
  readonly #name: string
  readonly #objects: PlannedObject[] = []
  readonly #steps: StoryStep[] = []
  readonly #roots: string[] = []
  #isLast = false
  #quota: ProjectQuota | undefined
  #server: number | undefined

  constructor(random: Random, projectId: string, name: string) {
    this.random = random
    this.#projectId = projectId
    this.#name = name
  }

  get story(): Story {
    const versions = this.#roots.map((rootId): PlannedVersion => ({ rootId, objects: this.#objects }))
    const model = { projectId: this.#projectId, versions }
    return { model, steps: this.#steps, isLast: this.#isLast, quota: this.#quota }
  }

  object(
    name: string,
    content: { readonly isLarge?: boolean; readonly text?: string; readonly children?: readonly PlannedObject[] } = {},
  ): PlannedObject {
    const { isLarge = false, text = name, children = [] } = content
    const id = this.#idOf(name)
    const large = isLarge ? Buffer.from(this.random.fork(id).bytes(LARGE_TEXT_BYTES)).toString('base64') : text
    return this.#known(plannedObject(id, { text: large, children: children.map((child) => child.id) }))
  }

  /** A root whose claims nobody holds, except for these. */
  rootOfClaims(name: string, claimed: readonly PlannedObject[]): PlannedObject {
    const absent = Array.from({ length: CLAIMS_OF_STORED_PLAN }, (_, at) => `${this.#name}-absent${at}`)
    return this.#known(
      plannedObject(this.#idOf(name), { text: name, claims: [...claimed.map(({ id }) => id), ...absent] }),
    )
  }

  /** What follows is asked of this server, as far as there are so many, or again of one that is drawn. */
  on(server: number | undefined): void {
    this.#server = server
  }

  /** The project of the story may not hold more. */
  mayHold(quota: ProjectQuota): void {
    this.#quota = quota
  }

  /** Everything else comes before. */
  comesLast(): void {
    this.#isLast = true
  }

  /** Looked at in the end. */
  root(object: PlannedObject): void {
    this.#roots.push(object.id)
  }

  upload(objects: readonly PlannedObject[], more: Partial<PlannedUpload> = {}, gapMs = 0): void {
    const form = { isBroken: false, isZipped: false, asks: false, requests: 1 }
    this.#add({ kind: 'upload', projectId: this.#projectId, objects, ...form, ...more }, gapMs)
  }

  download({ id }: PlannedObject, more: Partial<PlannedDownload> = {}, gapMs = 0): void {
    const form = this.random.pick(['records', 'gzip', 'identity'] as const)
    const download = { kind: 'download', projectId: this.#projectId, rootId: id, form, haveRootId: undefined } as const
    this.#add({ ...download, ...more }, gapMs)
  }

  look(...objects: readonly PlannedObject[]): void {
    this.#look(this.random.pick(['has', 'list']), objects)
  }

  /** Whoever reads objects sees which of them are gone; `has` says the same of those that are condemned. */
  list(...objects: readonly PlannedObject[]): void {
    this.#look('list', objects)
  }

  pin({ id }: PlannedObject, gapMs = 0, more: Partial<PlannedPin> = {}): void {
    this.#add({ kind: 'pin', projectId: this.#projectId, rootId: id, ...more }, gapMs)
  }

  collect(graceEpochs: number, undoEpochs = 1, gapMs = 0, more: Partial<PlannedCollection> = {}): void {
    const terms = { graceEpochs, undoEpochs, isDryRun: false }
    this.#add({ kind: 'collect', projectId: this.#projectId, ...terms, ...more }, gapMs)
  }

  /** Chooses these, and of the objects that no root leads to each with the probability `share`. */
  choose(objects: readonly PlannedObject[], more: Partial<PlannedChoice> = {}, gapMs = 0): void {
    const ids = objects.map(({ id }) => id)
    const list = { share: 0, draw: this.random.below(1_000_000), pageObjects: 100, topsOnly: false }
    const terms = { graceEpochs: 1, isDryRun: false }
    this.#add({ kind: 'choose', projectId: this.#projectId, ids, ...list, ...terms, ...more }, gapMs)
  }

  restore(gapMs = 0): void {
    this.#add({ kind: 'restore', projectId: this.#projectId }, gapMs)
  }

  unpin(gapMs = 0): void {
    this.#add({ kind: 'unpin', projectId: this.#projectId, draw: 0 }, gapMs)
  }

  compact(gapMs = 0, more: Partial<PlannedCompaction> = {}): void {
    this.#add({ kind: 'compact', projectId: this.#projectId, all: true, ...more }, gapMs)
  }

  restart(gapMs = 0): void {
    this.#add({ kind: 'restart', projectId: this.#projectId }, gapMs)
  }

  remove(crashAfterMs: number | undefined, gapMs = 0, more: Partial<PlannedRemoval> = {}): void {
    const crash = crashAfterMs === undefined ? {} : { crashAfterMs }
    this.#add({ kind: 'remove', projectId: this.#projectId, ...crash, ...more }, gapMs)
  }

  /** How much the project holds. */
  count(gapMs = 0): void {
    this.#add({ kind: 'usage', projectId: this.#projectId }, gapMs)
  }

  export(more: Pick<PlannedExport, 'pageBytes' | 'hold' | 'patienceMs'>, gapMs = 0): void {
    this.#add({ kind: 'export', projectId: this.#projectId, ...more }, gapMs)
  }

  /** `fullAfterCalls`: the disk is full so many calls after it began. */
  reindex(gapMs = 0, more: { readonly fullAfterCalls?: number } = {}): void {
    this.#add({ kind: 'maintenance', task: 'reindex', projectId: this.#projectId, ...more }, gapMs)
  }

  /** So many epochs begin while others go on. */
  pass(epochs: number, gapMs = 0): void {
    this.#add({ kind: 'age', projectId: this.#projectId, epochs, isBeside: true }, gapMs)
  }

  /** Everything before has ended; so many epochs begin, and then so much time passes. */
  pause(epochs = 0, waitMs = 0): void {
    this.#add({ kind: 'age', projectId: this.#projectId, epochs, waitMs })
  }

  /** Something that a pin keeps, so that the rest is collected. */
  keeper(): PlannedObject {
    const keeper = this.object('keeper')
    this.upload([keeper])
    this.pause()
    this.pin(keeper)
    return keeper
  }

  #look(kind: 'has' | 'list', objects: readonly PlannedObject[]): void {
    this.#add({ kind, projectId: this.#projectId, ids: objects.map(({ id }) => id) })
  }

  #idOf(name: string): string {
    return `${this.#name}-${name}-0`
  }

  #known(object: PlannedObject): PlannedObject {
    this.#objects.push(object)
    return object
  }

  #add(operation: Unplaced, gapMs = 0): void {
    this.#steps.push({ operation, gapMs, server: this.#server })
  }
}
