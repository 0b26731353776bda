/// <reference types="node" preserve="true" />

import { crc32 } from 'node:zlib'
import { Level } from 'level'
import { type CachedRoot, type ObjectCache, withRoot } from './download/cache.ts'
import { ClientError, quoted } from './common/errors.ts'
import type { ObjectText } from './common/types.ts'

/** The place of a `levelCache`. */
export interface LevelCacheOptions {
  /** The folder of the cache. It is made when there is none, and belongs to one process at a time. */
  readonly path: string
}

/**
 * A cache on the disk, without a bound of its own. Its calls reject with a `ClientError` (`storage_unavailable`) while
 * the folder cannot be used.
 */
export interface LevelCache extends ObjectCache, AsyncDisposable {
  /** Forgets everything. */
  clear(): Promise<void>
  /** Waits for calls under way and frees the folder for other processes. */
  close(): Promise<void>
}

/**
 * A cache in its own LevelDB, which opens on first use. Nothing is synced: data that a crash loses, or a failing disk
 * changes, is downloaded again.
 *
 * @example
 * import { createClient } from 'stowage/client'
 * import { levelCache } from 'stowage/client/level'
 *
 * await using cache = levelCache({ path: './cache' })
 * const client = createClient({ url: 'https://models.example', token: undefined, cache })
 * console.log(client.url)
 */
export function levelCache({ path }: LevelCacheOptions): LevelCache {
  return new Cache(path)
}

/** Digits of the CRC-32 before each value: LevelDB itself compares no checksums. */
const CRC_DIGITS = 8

class Cache implements LevelCache {
  readonly #path: string
  readonly #database: Level
  #isClosed = false
  /** Roots are read and written again, one after the other. */
  #rooted: Promise<void> = Promise.resolve()

  constructor(path: string) {
    this.#path = path
    this.#database = new Level(path, { keyEncoding: 'utf8', valueEncoding: 'utf8' })
  }

  getMany(scope: string, ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    const keys = ids.map((id) => objectKey(scope, id))
    return this.#use(async (database) => (await database.getMany(keys)).map((value, at) => unsealed(keys[at], value)))
  }

  hasMany(scope: string, ids: readonly string[]): Promise<readonly boolean[]> {
    return this.#use((database) => database.hasMany(ids.map((id) => objectKey(scope, id))))
  }

  putMany(scope: string, objects: readonly ObjectText[]): Promise<void> {
    return this.#use((database) =>
      database.batch(
        objects.map(({ id, json }) => ({
          type: 'put',
          key: objectKey(scope, id),
          value: sealed(objectKey(scope, id), json),
        })),
      ),
    )
  }

  async roots(scope: string): Promise<readonly CachedRoot[]> {
    const key = rootsKey(scope)
    const text = unsealed(key, await this.#use((database) => database.get(key)))
    return text === undefined ? [] : (JSON.parse(text) as CachedRoot[])
  }

  putRoot(scope: string, root: CachedRoot): Promise<void> {
    const key = rootsKey(scope)
    const put = this.#rooted.then(async () => {
      const text = JSON.stringify(withRoot(await this.roots(scope), root))
      await this.#use((database) => database.put(key, sealed(key, text)))
    })
    this.#rooted = put.catch(() => undefined)
    return put
  }

  clear(): Promise<void> {
    return this.#use((database) => database.clear())
  }

  close(): Promise<void> {
    this.#isClosed = true
    return this.#database.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #use<T>(work: (database: Level) => Promise<T>): Promise<T> {
    try {
      if (this.#isClosed) throw new Error('it is closed')
      await this.#database.open()
      return await work(this.#database)
    } catch (cause) {
      const reason = this.#isClosed ? 'it is closed' : reasonOf(cause)
      throw new ClientError(
        'storage_unavailable',
        `the cache in ${quoted(this.#path, PATH_CHARACTERS_MAX)} cannot be used: ${reason}`,
        { cause },
      )
    }
  }
}

const PATH_CHARACTERS_MAX = 200

/** LevelDB's own message is in the cause of the error that its binding throws. */
function reasonOf(error: unknown): string {
  const inner: unknown = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if ((inner as { readonly code?: unknown }).code === 'LEVEL_LOCKED')
    return 'another process, or another cache of this one, has it open'
  return `${inner instanceof Error ? inner.message : String(inner)}; a cache can be removed; its objects are then downloaded again`
}

/** The text after its CRC-32, which is also over the key. */
function sealed(key: string, text: string): string {
  return crcOf(key, text) + text
}

/** `undefined` for a missing value, and for one that differs from the value that was put. */
function unsealed(key: string, value: string | undefined): string | undefined {
  const text = value?.slice(CRC_DIGITS)
  return text !== undefined && value?.slice(0, CRC_DIGITS) === crcOf(key, text) ? text : undefined
}

function crcOf(key: string, text: string): string {
  return crc32(text, crc32(key)).toString(16).padStart(CRC_DIGITS, '0')
}

function objectKey(scope: string, id: string): string {
  return `o\0${scope}\0${id}`
}

function rootsKey(scope: string): string {
  return `r\0${scope}`
}
