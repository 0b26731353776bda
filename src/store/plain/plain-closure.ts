import { StowageError } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import type { ObjectBatch } from '../../object/batch.ts'
import { IdSet } from '../../object/id-set.ts'
import type { ObjectStore } from './object-store.ts'
import { fetchBatches, IDS_PER_CALL, idsOf } from './plain-selection.ts'

export interface PlainClosureOptions {
  readonly projectId: string
  readonly objectsMax: number
  readonly limits: Pick<Limits, 'nestingMax'>
  readonly signal: AbortSignal
}

const HELD = 1
const REFERENCED = 2

/**
 * A root with everything below it, found by fetching objects level by level. It ends on cycles, since an id is fetched
 * once.
 */
export class PlainClosure {
  readonly #store: ObjectStore
  readonly #options: PlainClosureOptions
  readonly #flags: Uint8Array
  /** The root, then the objects that it leads to, in the order of the walk. */
  readonly ids: IdSet = new IdSet()

  constructor(store: ObjectStore, options: PlainClosureOptions) {
    this.#store = store
    this.#options = options
    this.#flags = new Uint8Array(options.objectsMax)
  }

  /** Walks from the root; false when the root itself is not held. */
  async from(rootId: string): Promise<boolean> {
    this.#meet(Buffer.from(rootId), REFERENCED)
    if (this.#store.descendants !== undefined) return this.#ask(rootId)
    for (let next = 0; next < this.ids.size;) {
      const end = Math.min(this.ids.size, next + IDS_PER_CALL)
      await this.#fetch(next, end)
      if (!this.#has(0, HELD)) return false
      next = end
    }
    return true
  }

  held(): Uint8Array {
    return this.#flags.slice(0, this.ids.size).map((flags) => flags & HELD)
  }

  /** A missing claim is no loss; a missing reference is. */
  absent(): Uint8Array {
    return this.#flags.slice(0, this.ids.size).map((flags) => (flags === REFERENCED ? 1 : 0))
  }

  async #ask(rootId: string): Promise<boolean> {
    const { projectId, signal } = this.#options
    for await (const batch of this.#store.descendants?.(projectId, rootId, { signal }) ?? []) {
      for (const id of batch) this.#meet(Buffer.from(id), REFERENCED)
    }
    for (let start = 0; start < this.ids.size; start += IDS_PER_CALL) {
      signal.throwIfAborted()
      const answers = await this.#store.has(projectId, idsOf(this.ids, start, start + IDS_PER_CALL))
      for (const [at, isHeld] of answers.entries()) if (isHeld) this.#flags[start + at] |= HELD
    }
    return this.#has(0, HELD)
  }

  async #fetch(start: number, end: number): Promise<void> {
    const { projectId, limits, signal } = this.#options
    for await (const batch of fetchBatches(
      { store: this.#store, projectId, limits },
      idsOf(this.ids, start, end),
      signal,
    )) {
      this.#follow(batch)
    }
  }

  #follow(batch: ObjectBatch): void {
    let lineStart = 0
    let name = 0
    for (let index = 0; index < batch.count; index++) {
      const own = this.ids.find(batch.lines, lineStart, lineStart + batch.idBytes[index])
      if (own !== -1) this.#flags[own] |= HELD
      lineStart += batch.lineBytes[index]
      for (; name < batch.claimEnds[index]; name++) {
        const flag = name < batch.referenceEnds[index] ? REFERENCED : 0
        this.#meet(batch.names.subarray(name === 0 ? 0 : batch.nameEnds[name - 1], batch.nameEnds[name]), flag)
      }
    }
  }

  #meet(id: Uint8Array, flag: number): void {
    const index = this.ids.add(id)
    if (index >= this.#options.objectsMax) {
      throw new StowageError(
        'not_supported',
        `the graph has more than ${this.#options.objectsMax} objects, the limit of a plain object store`,
      )
    }
    this.#flags[index] |= flag
  }

  #has(index: number, flag: number): boolean {
    return (this.#flags[index] & flag) !== 0
  }
}
