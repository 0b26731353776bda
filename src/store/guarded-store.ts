import { isObjectId, OBJECT_ID_BYTES_MAX } from '../object/id.ts'
import { IdSet } from '../object/id-set.ts'
import type { ObjectPresence, ObjectSelector, SignalOptions } from '../object/graph-store.ts'
import type { Fragment, Selection, SelectionReadOptions } from '../object/selection.ts'

/**
 * Lists of ids come from anywhere and may hold what can never be an object's id: empty, too long, with control characters. No such thing is held,
 * and no store need be asked for it.
 */
export function guardedLists(store: ObjectPresence & ObjectSelector): ObjectPresence & ObjectSelector {
  return {
    has: (projectId, ids, options) => has(store, projectId, ids, options),
    select: (projectId, ids, options) => select(store, projectId, ids, options),
  }
}

interface Sifted {
  readonly possible: IdSet
  /** Where in the whole set each possible id stands. */
  readonly places: Uint32Array
}

async function has(store: ObjectPresence, projectId: string, ids: IdSet, options: SignalOptions): Promise<Uint8Array> {
  const sifted = sift(ids)
  if (sifted === undefined) return store.has(projectId, ids, options)
  const held = new Uint8Array(ids.size)
  const answers = await store.has(projectId, sifted.possible, options)
  for (const [at, isHeld] of answers.entries()) held[sifted.places[at]] = isHeld
  return held
}

async function select(
  store: ObjectSelector,
  projectId: string,
  ids: IdSet,
  options: SignalOptions,
): Promise<Selection> {
  const sifted = sift(ids)
  if (sifted === undefined) return store.select(projectId, ids, options)
  return new GuardedSelection(await store.select(projectId, sifted.possible, options), ids, sifted)
}

/** `undefined` when every id is possible, as nearly always. */
function sift(ids: IdSet): Sifted | undefined {
  let impossible = 0
  for (let index = 0; index < ids.size; index++) if (!isObjectId(ids.bytesAt(index))) impossible++
  if (impossible === 0) return undefined
  const possible = new IdSet(ids.size - impossible)
  const places = new Uint32Array(ids.size - impossible)
  for (let index = 0; index < ids.size; index++) {
    const id = ids.bytesAt(index)
    if (isObjectId(id)) places[possible.add(id)] = index
  }
  return { possible, places }
}

/** A selection of the possible ids, in which the others count as missing. */
class GuardedSelection implements Selection {
  readonly #inner: Selection
  readonly #ids: IdSet
  readonly #sifted: Sifted
  readonly objects: number
  readonly missing: number

  constructor(inner: Selection, ids: IdSet, sifted: Sifted) {
    this.#inner = inner
    this.#ids = ids
    this.#sifted = sifted
    this.objects = inner.objects
    this.missing = inner.missing + ids.size - sifted.possible.size
  }

  /** The possible ones first; of the others, those that are short enough to be told. */
  async missingIds(limit: number): Promise<readonly string[]> {
    const missing = [...(await this.#inner.missingIds(limit))]
    const { possible } = this.#sifted
    for (let index = 0; index < this.#ids.size && missing.length < limit; index++) {
      const id = this.#ids.bytesAt(index)
      if (id.length <= OBJECT_ID_BYTES_MAX && possible.find(id) === -1) missing.push(this.#ids.stringAt(index))
    }
    return missing
  }

  get roomBytes(): number | undefined {
    return this.#inner.roomBytes
  }

  lines(options: SelectionReadOptions): AsyncIterable<Uint8Array> {
    return this.#inner.lines(options)
  }

  fragments(options: SelectionReadOptions): AsyncIterable<readonly Fragment[]> {
    return this.#inner.fragments(options)
  }

  release(): void {
    this.#inner.release()
  }
}
