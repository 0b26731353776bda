import { type CachedRoot, cachedTexts, type ObjectCache } from './cache.ts'
import { checkContentIds, hasContentId } from '../common/content-id.ts'
import type { ObjectTexts } from './deltas.ts'
import { ClientError, quoted } from '../common/errors.ts'
import type { GraphInfo } from './graph-info.ts'
import { type GraphProgress, GraphTransfer, type TransferOptions } from './graph-transfer.ts'
import { SeenIds } from '../common/seen-ids.ts'
import { listTexts, missingError } from './list.ts'
import { type ReferencedIds, referencedIdsOf } from '../common/references.ts'
import { checkPathId, fetchObject, IDS_PER_REQUEST, type Remote } from '../http/remote.ts'
import type { ObjectText } from '../common/types.ts'

/** Roots whose objects the server is asked to omit; each costs it a look-up of a closure. */
const HAVE_ROOTS_MAX = 4
/** Asking for objects by id pays as long as few of a graph are missing. */
const LISTED_SHARE_MAX = 0.25
const LISTED_MAX = 20_000
/** Objects that are read from the cache at once. */
const CACHE_READ_IDS = 250

/** An object, and the ids below it. */
type WalkedObject = ObjectText & { readonly referenced: ReferencedIds }

export function scopeOf({ connection, projectId }: Remote): string {
  return `${connection.url}\0${projectId}`
}

/** The contents of the cache, as bases of deltas. */
export function cacheAsBases(cache: ObjectCache, scope: string): ObjectTexts {
  return { getMany: (ids) => cachedTexts(cache, scope, ids) }
}

/** Roots as `have` takes them, with the closure that the cache remembers. */
export async function knownRoots(
  cache: ObjectCache,
  scope: string,
  have: readonly string[],
): Promise<readonly string[]> {
  const known = new Map((await cache.roots(scope)).map((root) => [root.id, root]))
  return have.map((id) => haveValue(known.get(id) ?? { id }))
}

/** The server knows none of the roots that the cache has. */
class NothingSubtracted extends Error {}

/**
 * One root with everything below it, from the cache if possible. Missing objects come as the difference to roots that
 * the cache has whole; otherwise by id, if the root's `__closure` shows that they are few; otherwise as a whole
 * download. Everything that arrives is kept.
 */
export class CachedGraph {
  readonly #remote: Remote
  readonly #cache: ObjectCache
  readonly #scope: string
  readonly #root: string
  readonly #options: TransferOptions
  readonly #given = new SeenIds()
  readonly #queued = new SeenIds()
  /** The queued ids that an object refers to; other queued ids are only claims of a closure, and may be missing. */
  readonly #referenced = new SeenIds()
  readonly #absent: string[] = []
  #pending: string[] = []
  #follows = true
  #objects = 0
  #fromCache = 0
  #info: GraphInfo | undefined
  #network: GraphProgress = {
    objects: 0,
    cached: 0,
    receivedBytes: 0,
    totalBytes: undefined,
    keptBytes: 0,
    resumes: 0,
    restarts: 0,
  }

  /** Throws `invalid_id`. */
  constructor(remote: Remote, cache: ObjectCache, root: string, options: TransferOptions) {
    checkPathId(root)
    this.#remote = remote
    this.#cache = cache
    this.#scope = scopeOf(remote)
    this.#root = root
    this.#options = options
  }

  /** The objects, each once, the root first. Throws `not_found`, and with `strict` `objects_missing`. */
  async *batches(): AsyncGenerator<readonly ObjectText[]> {
    const roots = await this.#cache.roots(this.#scope)
    const known = roots.find(({ id }) => id === this.#root)
    if (known === undefined) yield* this.#lacking(roots)
    this.#refer(this.#root)
    yield* this.#walk()
    if (!this.#given.has(this.#root)) throw this.#notFound()
    const missing = this.#follows ? this.#absent.filter((id) => this.#referenced.has(id)) : []
    if (missing.length > 0 && this.#options.strict === true) throw missingError(missing)
    if (this.#info === undefined)
      this.#options.onInfo?.({
        objects: this.#objects,
        missing: missing.length,
        closure: known?.closure,
        have: new Map(),
      })
    if (missing.length > 0 || (!this.#follows && this.#info?.missing !== 0)) return
    const closure = this.#info?.closure ?? known?.closure
    await this.#cache.putRoot(this.#scope, { id: this.#root, ...(closure === undefined ? {} : { closure }) })
  }

  /** The objects that the cache lacks, if one request for all is better than one by one. */
  async *#lacking(roots: readonly CachedRoot[]): AsyncGenerator<readonly ObjectText[]> {
    const [cached] = await this.#cached([this.#root])
    if (cached !== undefined && (await this.#isMostlyCached(cached))) return
    if (roots.length > 0) {
      try {
        yield* this.#download(roots)
        return
      } catch (error) {
        if (!(error instanceof NothingSubtracted)) throw error
        this.#info = undefined
        this.#follows = true
      }
      if (cached === undefined && (await this.#isMostlyCached(await this.#fetchRoot()))) return
    }
    yield* this.#download([])
  }

  /** Whether the root's closure shows that only a few objects are missing. */
  async #isMostlyCached({ referenced: { references, claims } }: WalkedObject): Promise<boolean> {
    if (references.length === 0) return true
    let absent = 0
    for (let at = 0; at < claims.length; at += IDS_PER_REQUEST) {
      for (const held of await this.#cache.hasMany(this.#scope, claims.slice(at, at + IDS_PER_REQUEST)))
        absent += held ? 0 : 1
    }
    return claims.length > 0 && absent <= Math.min(LISTED_MAX, claims.length * LISTED_SHARE_MAX)
  }

  async #fetchRoot(): Promise<WalkedObject> {
    const object = await fetchObject(this.#remote, this.#root, this.#options.signal)
    if (object === undefined) throw this.#notFound()
    if (this.#options.verifyIds === true) await checkContentIds([object])
    await this.#cache.putMany(this.#scope, [object])
    return { ...object, referenced: referencedIdsOf(object) }
  }

  #notFound(): ClientError {
    return new ClientError('not_found', `there is no object ${quoted(this.#root)} in this project`, { statusCode: 404 })
  }

  async *#download(roots: readonly CachedRoot[]): AsyncGenerator<readonly ObjectText[]> {
    const transfer = new GraphTransfer(this.#remote, this.#root, {
      ...this.#options,
      journal: undefined,
      have: roots.slice(0, HAVE_ROOTS_MAX).map(haveValue),
      bases: cacheAsBases(this.#cache, this.#scope),
      onInfo: (info) => {
        this.#info = info
        this.#follows = [...info.have.values()].includes('subtracted')
        if (roots.length > 0 && !this.#follows && this.#objects === 0) throw new NothingSubtracted()
        this.#options.onInfo?.(info)
      },
      onProgress: (progress) => (this.#network = progress),
    })
    for await (const batch of transfer.batches()) {
      await this.#cache.putMany(this.#scope, batch)
      yield this.#taken(
        this.#follows ? batch.map((object) => ({ ...object, referenced: referencedIdsOf(object) })) : batch,
      )
    }
  }

  /** Follows the queue until it is empty: from the cache, and for missing objects from the server. */
  async *#walk(): AsyncGenerator<readonly ObjectText[]> {
    let absent: string[] = []
    while (this.#pending.length > 0 || absent.length > 0) {
      this.#options.signal?.throwIfAborted()
      const ids = this.#pending.splice(-CACHE_READ_IDS).filter((id) => !this.#given.has(id))
      const cached = await this.#cached(ids)
      const found = cached.filter((object) => object !== undefined)
      for (const [at, id] of ids.entries()) if (cached[at] === undefined) absent.push(id)
      this.#fromCache += found.length
      if (found.length > 0) yield this.#taken(found)
      if (this.#pending.length > 0 || absent.length === 0) continue
      yield* this.#fetch(absent)
      absent = []
    }
  }

  async *#fetch(ids: readonly string[]): AsyncGenerator<readonly ObjectText[]> {
    const onMissing = (missing: readonly string[]): void => void this.#absent.push(...missing)
    for await (const batch of listTexts(this.#remote, ids, { signal: this.#options.signal, onMissing })) {
      if (this.#options.verifyIds === true) await checkContentIds(batch)
      await this.#cache.putMany(this.#scope, batch)
      yield this.#taken(batch.map((object) => ({ ...object, referenced: referencedIdsOf(object) })))
    }
  }

  /** The valid entries of the cache. */
  async #cached(ids: readonly string[]): Promise<readonly (WalkedObject | undefined)[]> {
    const texts = await cachedTexts(this.#cache, this.#scope, ids)
    return Promise.all(
      ids.map(async (id, at) => {
        const json = texts[at]
        const referenced = json === undefined ? undefined : readableReferences({ id, json })
        if (
          json === undefined ||
          referenced === undefined ||
          (this.#options.verifyIds === true && !(await hasContentId({ id, json })))
        )
          return undefined
        return { id, json, referenced }
      }),
    )
  }

  #taken(batch: readonly (ObjectText & Partial<WalkedObject>)[]): readonly ObjectText[] {
    for (const { id, referenced } of batch) {
      this.#given.add(id)
      if (!this.#follows || referenced === undefined) continue
      for (const child of referenced.references) this.#refer(child)
      for (const claimed of referenced.claims) this.#queue(claimed)
    }
    this.#objects += batch.length
    this.#options.onProgress?.({ ...this.#network, objects: this.#objects, cached: this.#fromCache })
    return batch.map(({ id, json }) => ({ id, json }))
  }

  #refer(id: string): void {
    this.#referenced.add(id)
    this.#queue(id)
  }

  #queue(id: string): void {
    if (this.#queued.add(id)) this.#pending.push(id)
  }
}

function haveValue({ id, closure }: CachedRoot): string {
  return closure === undefined ? id : `${id}@${closure}`
}

/** An unreadable entry of a cache counts as forgotten. */
function readableReferences(object: ObjectText): ReferencedIds | undefined {
  try {
    return referencedIdsOf(object)
  } catch {
    return undefined
  }
}
