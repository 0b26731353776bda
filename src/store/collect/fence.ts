import type { KeyedMutex } from '../../async/keyed-mutex.ts'
import { type Environment, randomId } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { StoreEpoch, StoreEpochs } from '../../object/epochs.ts'
import type { Change, Expectation, RecordStore } from '../../storage/backend.ts'
import type { ChangeTerms } from '../records/change-objects.ts'
import { areAsExpected, type FoundValues, TRIES_AT_ONCE, valuesFound } from '../records/lost-try.ts'
import type { ProjectView } from '../records/project-view.ts'
import { asHead, type ReadHead, readHead } from '../records/projects.ts'
import { collectionKey } from '../records/keys.ts'
import { asEpoch, encodeCollection, encodeHead, type ProjectHead } from '../records/records.ts'

/** Another server changed where objects lie, or which of them are condemned: what was marked does not hold any more. */
export class LayoutChangedError extends StowageError {
  constructor() {
    super('overloaded', 'another server is changing the packs of this project; try again', {
      headers: { 'Retry-After': '5' },
    })
  }
}

/** The project was removed, and perhaps made anew. */
export class ProjectGoneError extends StowageError {
  constructor() {
    super('not_found', 'the project was removed while it was collected')
  }
}

export interface FenceParts {
  readonly records: RecordStore
  readonly environment: Environment
  readonly epochs: StoreEpochs
  /** Those of the committer. */
  readonly turns: KeyedMutex
}

/** The head, the epoch, and the record of the collection. */
const OWN_EXPECTATIONS = 3

const NO_BYTES = new Uint8Array(0)

type LiveHead = ReadHead & { readonly head: ProjectHead }

interface OwnTerms {
  readonly head: LiveHead
  readonly epoch: StoreEpoch
  readonly own: Expectation
}

interface ReadTerms {
  readonly head: ReadHead
  readonly epoch: StoreEpoch
  readonly own: Uint8Array | undefined
}

/**
 * The head of a project, the store's epoch and the record of the collection, as every commit of a collection expects
 * them. Uploads change the head too; they are no reason to stop. Whatever else raises the layout is, and so is another
 * collection: each begins by putting its own id into the record, before it looks at any object. Otherwise one server
 * could own again an object that it saw alive, while another, which had taken the object's pack before, condemns it.
 */
export class Fence implements ChangeTerms {
  readonly #parts: FenceParts
  readonly #project: ProjectView
  #layout: number
  #head: LiveHead
  #epoch: StoreEpoch
  readonly #own: Expectation

  private constructor(parts: FenceParts, project: ProjectView, terms: OwnTerms) {
    this.#parts = parts
    this.#project = project
    this.#layout = project.layout
    this.#head = terms.head
    this.#epoch = terms.epoch
    this.#own = terms.own
  }

  /** The fence of a new collection, which ends those of other servers. */
  static async of(parts: FenceParts, project: ProjectView): Promise<Fence> {
    const { records, environment, epochs, turns } = parts
    const key = collectionKey(project.projectId, project.generation)
    const own = { key, value: encodeCollection(key, randomId(environment)) }
    // Uploads change the head. Those of this process wait, or many of them would get ahead of every try.
    return turns.run(project.projectId, async () => {
      for (let tries = 0; tries < TRIES_AT_ONCE; tries++) {
        const head = live(await readHead(records, project.projectId), project, project.layout)
        const { ok } = await records.commit({ put: [own], expect: [{ key: head.key, value: head.bytes }] })
        if (ok) return new Fence(parts, project, { head, epoch: await epochs.current(), own })
      }
      throw new LayoutChangedError()
    })
  }

  /** For a collection that changes nothing. */
  static async ofDryRun(parts: FenceParts, project: ProjectView): Promise<Fence> {
    const key = collectionKey(project.projectId, project.generation)
    const [value] = await parts.records.getMany([key])
    const head = live(await readHead(parts.records, project.projectId), project, project.layout)
    return new Fence(parts, project, { head, epoch: await parts.epochs.current(), own: { key, value } })
  }

  get epoch(): number {
    return this.#epoch.number
  }

  get expect(): readonly Expectation[] {
    return [{ key: this.#head.key, value: this.#head.bytes }, this.#epoch.expectation, this.#own]
  }

  /** Uploads of this process wait meanwhile. Not to be nested. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#parts.turns.run(this.#project.projectId, work)
  }

  /**
   * Takes them from what a lost commit found, or reads them. What was decided in another epoch does not hold. Throws
   * `LayoutChangedError` and `ProjectGoneError`.
   */
  async renew(found?: FoundValues): Promise<boolean> {
    const { head, epoch, own } = found === undefined ? await this.#read() : this.#taken(found)
    if (own === undefined || Buffer.compare(own, this.#own.value ?? NO_BYTES) !== 0) throw new LayoutChangedError()
    const isSameEpoch = epoch.number === this.#epoch.number
    this.#head = live(head, this.#project, this.#layout)
    this.#epoch = epoch
    return isSameEpoch
  }

  /**
   * Commits a change of the layout, as long as it is the one that this fence knows; `false` if uploads got ahead too
   * often. Throws `LayoutChangedError` if something else of what is expected changed.
   */
  raiseLayout(change: Required<Pick<Change, 'put' | 'expect'>>): Promise<boolean> {
    return this.inTurn(async () => {
      let found: FoundValues | undefined
      for (let tries = 0; tries < TRIES_AT_ONCE; tries++) {
        await this.renew(found)
        found = await this.#raise(change)
        if (found === undefined) return true
        if (!areAsExpected(found.slice(OWN_EXPECTATIONS), change.expect)) throw new LayoutChangedError()
      }
      return false
    })
  }

  /** `undefined` if the commit was made. */
  async #raise({ put, expect }: Required<Pick<Change, 'put' | 'expect'>>): Promise<FoundValues | undefined> {
    const { key, head } = this.#head
    const raised = { ...head, layout: head.layout + 1 }
    const value = encodeHead(key, raised)
    const all = [...this.expect, ...expect]
    const result = await this.#parts.records.commit({ put: [{ key, value }, ...put], expect: all })
    if (!result.ok) return valuesFound(all, result.conflicts)
    this.#layout = raised.layout
    this.#head = { key, bytes: value, head: raised }
    return undefined
  }

  async #read(): Promise<ReadTerms> {
    const { records, epochs } = this.#parts
    const [[head, own], epoch] = await Promise.all([records.getMany([this.#head.key, this.#own.key]), epochs.current()])
    return { head: asHead(this.#head.key, head), epoch, own }
  }

  #taken([head, epoch, own]: FoundValues): ReadTerms {
    return { head: asHead(this.#head.key, head), epoch: asEpoch(this.#epoch.expectation.key, epoch), own }
  }
}

function live(read: ReadHead, { generation }: ProjectView, layout: number): LiveHead {
  const { head } = read
  if (head === undefined || head.removed || head.generation !== generation) throw new ProjectGoneError()
  if (head.layout !== layout) throw new LayoutChangedError()
  return { ...read, head }
}
