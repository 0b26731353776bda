import { isTextOf } from '../common/content-id.ts'
import type { ObjectText } from '../common/types.ts'

/** A root below which the cache was given everything that the server held. */
export interface CachedRoot {
  /** The id of the root. */
  readonly id: string
  /** The server's name for that set of objects (`Stowage-Closure`), if known. */
  readonly closure?: string
}

/**
 * The place where a client keeps downloaded objects. A scope names one project on one server: the same id in two scopes
 * may be two objects. Objects never change, so nothing goes stale; a cache may forget any of them at any time.
 */
export interface ObjectCache {
  /** The texts in the order of `ids`, `undefined` for missing ones. */
  getMany(scope: string, ids: readonly string[]): Promise<readonly (string | undefined)[]>
  /** In the order of `ids`. */
  hasMany(scope: string, ids: readonly string[]): Promise<readonly boolean[]>
  /** Keeps the texts of these objects, or as many as there is room for. */
  putMany(scope: string, objects: readonly ObjectText[]): Promise<void>
  /** The newest first; a few are enough. */
  roots(scope: string): Promise<readonly CachedRoot[]>
  /** Remembers a root, so that later downloads can omit the objects below it. */
  putRoot(scope: string, root: CachedRoot): Promise<void>
}

/** The capacity of a `memoryCache`. */
export interface MemoryCacheOptions {
  /**
   * Characters of text that are kept, including ids; beyond them the least recently used texts are dropped. 134,217,728
   * by default.
   */
  readonly charactersMax?: number
}

/** Roots that a cache keeps for each scope. */
export const CACHED_ROOTS_MAX = 8

const CHARACTERS_MAX = 134_217_728

/** A cache that lives as long as the process, or the page. */
export function memoryCache(options: MemoryCacheOptions = {}): ObjectCache {
  const { charactersMax = CHARACTERS_MAX } = options
  if (!(charactersMax >= 0)) throw new RangeError(`charactersMax is ${charactersMax}; it must be 0 or more`)
  return new MemoryCache(charactersMax)
}

class MemoryCache implements ObjectCache {
  /** In the order of use, the longest unused first. */
  readonly #texts = new Map<string, string>()
  readonly #roots = new Map<string, readonly CachedRoot[]>()
  readonly #charactersMax: number
  #characters = 0

  constructor(charactersMax: number) {
    this.#charactersMax = charactersMax
  }

  getMany(scope: string, ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    return Promise.resolve(ids.map((id) => this.#touched(keyOf(scope, id))))
  }

  hasMany(scope: string, ids: readonly string[]): Promise<readonly boolean[]> {
    return Promise.resolve(ids.map((id) => this.#texts.has(keyOf(scope, id))))
  }

  putMany(scope: string, objects: readonly ObjectText[]): Promise<void> {
    for (const { id, json } of objects) this.#put(keyOf(scope, id), json)
    for (const [key, text] of this.#texts) {
      if (this.#characters <= this.#charactersMax) break
      this.#texts.delete(key)
      this.#characters -= key.length + text.length
    }
    return Promise.resolve()
  }

  roots(scope: string): Promise<readonly CachedRoot[]> {
    return Promise.resolve(this.#roots.get(scope) ?? [])
  }

  putRoot(scope: string, root: CachedRoot): Promise<void> {
    this.#roots.set(scope, withRoot(this.#roots.get(scope) ?? [], root))
    return Promise.resolve()
  }

  #touched(key: string): string | undefined {
    const text = this.#texts.get(key)
    if (text === undefined) return undefined
    this.#texts.delete(key)
    this.#texts.set(key, text)
    return text
  }

  #put(key: string, text: string): void {
    const old = this.#texts.get(key)
    if (old !== undefined) this.#characters -= key.length + old.length
    this.#texts.delete(key)
    this.#texts.set(key, text)
    this.#characters += key.length + text.length
  }
}

/** The roots with this one as the newest. */
export function withRoot(roots: readonly CachedRoot[], root: CachedRoot): readonly CachedRoot[] {
  return [root, ...roots.filter(({ id }) => id !== root.id)].slice(0, CACHED_ROOTS_MAX)
}

/** The texts in the order of `ids`. What cannot be the text of its object counts as forgotten. */
export async function cachedTexts(
  cache: ObjectCache,
  scope: string,
  ids: readonly string[],
): Promise<readonly (string | undefined)[]> {
  const texts = ids.length === 0 ? [] : await cache.getMany(scope, ids)
  return ids.map((id, at) => {
    const json = texts[at]
    return json !== undefined && isTextOf({ id, json }) ? json : undefined
  })
}

function keyOf(scope: string, id: string): string {
  return `${scope}\0${id}`
}
