import { StowageError } from '../../errors.ts'
import { DEFAULT_LIMITS, type Limits } from '../../limits.ts'
import type { ObjectBatch } from '../../object/batch.ts'
import type { ClosureOptions, GraphStore, PutOptions, PutResult, SignalOptions } from '../../object/graph-store.ts'
import { isObjectId } from '../../object/id.ts'
import { IdSet } from '../../object/id-set.ts'
import { type ObjectRecord, toObjectRecords } from '../../object/line.ts'
import type { Selection } from '../../object/selection.ts'
import type { ObjectStore } from './object-store.ts'
import { PlainClosure } from './plain-closure.ts'
import { IDS_PER_CALL, PlainSelection } from './plain-selection.ts'

export interface PlainStoreOptions {
  /** Objects that a graph may have, missing ones and claims included. 100,000 by default; more answers 501. */
  readonly closureObjectsMax?: number
  readonly limits?: Pick<Limits, 'nestingMax'>
}

const CLOSURE_OBJECTS_MAX = 100_000

/**
 * A host's store with the additions that the operations need: lists in both formats, and graphs by walking the
 * references within a bound.
 */
export function plainGraphStore(store: ObjectStore, options: PlainStoreOptions = {}): GraphStore {
  return new PlainGraphStore(store, options)
}

class PlainGraphStore implements GraphStore {
  readonly #store: ObjectStore
  readonly #limits: Pick<Limits, 'nestingMax'>
  readonly #closureObjectsMax: number

  constructor(store: ObjectStore, options: PlainStoreOptions) {
    this.#store = store
    this.#limits = options.limits ?? DEFAULT_LIMITS
    this.#closureObjectsMax = options.closureObjectsMax ?? CLOSURE_OBJECTS_MAX
  }

  async ready(): Promise<void> {
    await this.#store.ready?.()
  }

  async close(): Promise<void> {
    await this.#store.close?.()
  }

  /** `differing` is always 0: only the host's store knows the texts that it holds. */
  async put(projectId: string, batches: AsyncIterable<ObjectBatch>, options: PutOptions): Promise<PutResult> {
    const seen = new IdSet()
    const { inserted } = await this.#store.put(projectId, firstOfEach(batches, seen), options)
    return { objects: seen.size, inserted, differing: 0 }
  }

  /**
   * Lists come from clients: a text that can never be an id is held nowhere, and the host's store is not asked for it.
   */
  async has(projectId: string, ids: IdSet, options: SignalOptions): Promise<Uint8Array> {
    const held = new Uint8Array(ids.size)
    for (let start = 0; start < ids.size; start += IDS_PER_CALL) {
      options.signal.throwIfAborted()
      const possible: number[] = []
      for (let index = start; index < Math.min(ids.size, start + IDS_PER_CALL); index++)
        if (isObjectId(ids.bytesAt(index))) possible.push(index)
      if (possible.length === 0) continue
      const answers = await this.#store.has(
        projectId,
        possible.map((index) => ids.stringAt(index)),
      )
      for (const [at, isHeld] of answers.entries()) held[possible[at]] = isHeld ? 1 : 0
    }
    return held
  }

  async select(projectId: string, ids: IdSet, options: SignalOptions): Promise<Selection> {
    const held = await this.has(projectId, ids, options)
    return new PlainSelection({
      store: this.#store,
      projectId,
      ids,
      held,
      absent: absentOf(held),
      limits: this.#limits,
    })
  }

  async closure(projectId: string, rootId: string, options: ClosureOptions): Promise<Selection | undefined> {
    if ((options.have ?? []).length > 0) throw notSupported('have')
    const walk = new PlainClosure(this.#store, {
      projectId,
      objectsMax: this.#closureObjectsMax,
      limits: this.#limits,
      signal: options.signal,
    })
    const isHeld = await walk.from(rootId)
    if (!isHeld) return undefined
    return new PlainSelection({
      store: this.#store,
      projectId,
      ids: walk.ids,
      held: walk.held(),
      absent: walk.absent(),
      limits: this.#limits,
    })
  }

  projects(): AsyncIterable<readonly string[]> {
    throw notSupported('a list of projects')
  }

  holds(): Promise<boolean> {
    return Promise.reject(notSupported('looking for a project'))
  }

  remove(): Promise<void> {
    return Promise.reject(notSupported('removing a project'))
  }
}

function notSupported(what: string): StowageError {
  return new StowageError('not_supported', `${what} needs a storage backend; this service uses a plain object store`)
}

/** Of two objects with one id in a request the first stays. */
async function* firstOfEach(batches: AsyncIterable<ObjectBatch>, seen: IdSet): AsyncGenerator<readonly ObjectRecord[]> {
  for await (const batch of batches) {
    const isFirst = new Uint8Array(batch.count)
    for (let index = 0, start = 0; index < batch.count; start += batch.lineBytes[index++]) {
      const size = seen.size
      seen.add(batch.lines, start, start + batch.idBytes[index])
      isFirst[index] = seen.size > size ? 1 : 0
    }
    const records = toObjectRecords(batch).filter((_, index) => isFirst[index] === 1)
    if (records.length > 0) yield records
  }
}

function absentOf(held: Uint8Array): Uint8Array {
  return held.map((isHeld) => 1 - isHeld)
}
