import type { StorageBackend } from '../../src/storage/backend.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { BlobSweep } from '../../src/store/upkeep/blob-sweep.ts'
import { EPOCH_MS, EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { never } from './support.ts'

export const HOUR_MS = 3_600_000
/** A day of epochs, and one more. */
export const GRACE_EPOCHS: number = (24 * HOUR_MS) / EPOCH_MS + 1

export interface Sweeper {
  readonly sweep: BlobSweep
  /** Lets the clock of this server pass. */
  readonly pass: (ms: number) => void
  readonly epochs: EpochCounter
}

/** The sweep of a server whose time passes by hand. */
export function sweeperOver(backend: StorageBackend): Sweeper {
  const { records, blobs } = asGuarded(backend)
  let nowMs = 0
  const environment = { monotonicMs: () => nowMs }
  const epochs = new EpochCounter(records, environment)
  const sweep = new BlobSweep({ records, blobs, epochs, environment, dropRetired: () => Promise.resolve() })
  return { sweep, epochs, pass: (ms) => void (nowMs += ms) }
}

/** Removes every blob that nothing names, as days of sweeping would. */
export async function sweepForDays(backend: StorageBackend): Promise<void> {
  const { sweep, epochs, pass } = sweeperOver(backend)
  await sweep.condemnUnnamed(never)
  pass(HOUR_MS)
  await sweep.condemnUnnamed(never)
  await epochs.advance(GRACE_EPOCHS)
  await sweep.removeCondemned(never)
}
