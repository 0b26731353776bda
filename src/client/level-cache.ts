/// <reference types="node" preserve="true" />

import { Level } from 'level'
import { type CachedRoot, type ObjectCache, withRoot } from './cache.ts'
import type { ObjectText } from './types.ts'

/** Where `levelCache` keeps what was downloaded. */
export interface LevelCacheOptions {
  /** The folder of the cache. It is made when there is none, and belongs to one process at a time. */
  readonly path: string
}

/** A cache on the disk, without a bound of its own. */
export interface LevelCache extends ObjectCache, AsyncDisposable {
  /** Forgets everything. */
  clear(): Promise<void>
  /** Lets what is under way end and frees the folder for other processes. */
  close(): Promise<void>
}

/** A cache in a LevelDB of its own, which opens itself. Nothing is synced: what a crash takes is downloaded again. */
export function levelCache({ path }: LevelCacheOptions): LevelCache {
  return new Cache(path)
}

class Cache implements LevelCache {
  readonly #database: Level

  constructor(path: string) {
    this.#database = new Level(path, { keyEncoding: 'utf8', valueEncoding: 'utf8' })
  }

  getMany(scope: string, ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    return this.#database.getMany(ids.map((id) => objectKey(scope, id)))
  }

  hasMany(scope: string, ids: readonly string[]): Promise<readonly boolean[]> {
    return this.#database.hasMany(ids.map((id) => objectKey(scope, id)))
  }

  putMany(scope: string, objects: readonly ObjectText[]): Promise<void> {
    return this.#database.batch(objects.map(({ id, json }) => ({ type: 'put', key: objectKey(scope, id), value: json })))
  }

  async roots(scope: string): Promise<readonly CachedRoot[]> {
    const text = await this.#database.get(rootsKey(scope))
    return text === undefined ? [] : (JSON.parse(text) as CachedRoot[])
  }

  async putRoot(scope: string, root: CachedRoot): Promise<void> {
    await this.#database.put(rootsKey(scope), JSON.stringify(withRoot(await this.roots(scope), root)))
  }

  clear(): Promise<void> {
    return this.#database.clear()
  }

  close(): Promise<void> {
    return this.#database.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function objectKey(scope: string, id: string): string {
  return `o\0${scope}\0${id}`
}

function rootsKey(scope: string): string {
  return `r\0${scope}`
}
