import type { BlobStore, RecordStore, StorageBackend } from './backend.ts'
import { adoptBlobs, pairHalves, placeOf } from './cluster-id.ts'
import { asGuardedBlobs, asGuardedRecords, guardedBackend } from './guard.ts'

/** The halves of a combined backend. */
export interface CombinedHalves {
  /** Small records, with conditional commits. */
  readonly records: RecordStore
  /** Large immutable blobs. */
  readonly blobs: BlobStore
}

/**
 * One storage of two halves that lie in different places: records in a database, blobs on a shared disk. `ready` opens
 * both, and so does the first call. It gives both the same random id when they are new, and rejects halves whose ids
 * differ. `close` closes both, the records last.
 *
 * @example
 * import { createObjectService, openAccess } from 'stowage'
 * import { filesystemBlobs } from 'stowage/filesystem'
 * import { levelRecords } from 'stowage/level'
 * import { combinedBackend } from 'stowage/storage'
 *
 * const backend = combinedBackend({
 *   records: levelRecords({ path: './records' }),
 *   blobs: filesystemBlobs({ path: './blobs' }),
 * })
 * const service = createObjectService({ backend, access: openAccess() })
 * await service.ready()
 * await service.close()
 */
export function combinedBackend(given: CombinedHalves): StorageBackend {
  return combined(given, pairHalves)
}

/** The same for a reindex: records that were lost belong to the blobs whose id they take. */
export function adoptingBackend(given: CombinedHalves, onAdopted: () => void): StorageBackend {
  return combined(given, async (halves) => {
    if (await adoptBlobs(halves)) onAdopted()
  })
}

function combined(given: CombinedHalves, pair: (halves: CombinedHalves) => Promise<void>): StorageBackend {
  const halves = { records: asGuardedRecords(given.records), blobs: asGuardedBlobs(given.blobs) }
  const { records, blobs } = halves
  const closeHalves = async (): Promise<void> => {
    try {
      await blobs.close()
      await given.blobs.close()
    } finally {
      await records.close()
      await given.records.close()
    }
  }
  const backend = guardedBackend({
    limits: records.limits,
    readBytesPreferred: blobs.readBytesPreferred,
    isPersistent: records.isPersistent !== false && blobs.isPersistent !== false,
    isShared: records.isShared,
    open: async () => {
      await openHalf('records', halves)
      await openHalf('blobs', halves)
      await pair(halves)
      return { records, blobs, close: closeHalves }
    },
  })
  const close = backend.close.bind(backend)
  const closeAll = async (): Promise<void> => {
    await close()
    // For a half that opened beside one that did not.
    await closeHalves()
  }
  return Object.assign(backend, { close: closeAll })
}

async function openHalf(half: 'records' | 'blobs', halves: CombinedHalves): Promise<void> {
  try {
    await halves[half].ready?.()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`${placeOf(half, halves)} cannot be opened: ${reason}`, { cause: error })
  }
}
