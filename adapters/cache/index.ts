/**
 * A cache of blobs on the local disk, in front of a store that is far away.
 *
 * @module stowage/cache
 */

import { resolve } from 'node:path'
import type { BlobStore } from '../../src/storage/backend.ts'
import type { OpenedBlobs } from '../../src/storage/driver.ts'
import { guardedBlobs } from '../../src/storage/guard.ts'
import { CacheFolder, type CacheFolderOptions } from './cache-folder.ts'
import { CachedBlobs } from './cached-blobs.ts'

/** Where the cache lies, and how large it may become. */
export interface BlobCacheOptions {
  /** The folder of the cache, of this process alone. It is made when there is none; everything in it may be lost. */
  readonly path: string
  /** The most bytes on the disk: at least 64 MiB. What was used least recently gives way. */
  readonly sizeBytesMax: number
  /** Receives errors of the cache's disk. Reads go to the store then, and if the folder cannot be opened, all of them. */
  readonly onError?: (error: unknown) => void
}

const SIZE_BYTES_MIN = 64 * 1_048_576

/**
 * The same blobs, with a cache in front of their reads: pieces of 1 MiB, as far as they were read, in files of a local
 * folder. The cache survives restarts and kills; a piece that was torn or damaged is found by its checksum and read
 * again. Writes go to the store alone. Closing closes the store, too.
 *
 * The names of removed blobs must not return with other contents from another process: Stowage's are random. `ready`
 * rejects if another process uses the folder. Throws `RangeError` for a cache that is too small.
 *
 * @example
 * import { cachedBlobs } from 'stowage/cache'
 * import { s3Blobs } from 'stowage/s3'
 *
 * const blobs = cachedBlobs(s3Blobs({ endpoint: 'https://s3.example.org', bucket: 'models' }), {
 *   path: './blob-cache',
 *   sizeBytesMax: 20_000_000_000,
 * })
 */
export function cachedBlobs(blobs: BlobStore, options: BlobCacheOptions): BlobStore {
  const { sizeBytesMax, onError = () => undefined } = options
  if (!(sizeBytesMax >= SIZE_BYTES_MIN))
    throw new RangeError(`sizeBytesMax of the cache is ${sizeBytesMax}; it must be at least ${SIZE_BYTES_MIN}`)
  // A host that changes its working folder later means the same cache.
  const path = resolve(options.path)
  const { readBytesPreferred, isPersistent, place } = blobs
  return guardedBlobs({
    readBytesPreferred,
    isPersistent,
    place,
    open: () => openCached(blobs, { path, sizeBytesMax, onError, place: place ?? '' }),
  })
}

async function openCached(blobs: BlobStore, options: CacheFolderOptions): Promise<OpenedBlobs> {
  await blobs.ready?.()
  const folder = await openFolder(options)
  return {
    blobs: folder === undefined ? blobs : new CachedBlobs(blobs, folder),
    close: async () => {
      await folder?.close()
      await blobs.close()
    },
  }
}

/** A disk that fails is no reason to serve nothing. */
async function openFolder(options: CacheFolderOptions): Promise<CacheFolder | undefined> {
  try {
    return await CacheFolder.open(options)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    options.onError(error)
    return undefined
  }
}
