import { StowageError } from '../../errors.ts'
import { keyBounds } from '../records/keys.ts'
import { applyMarked, type RecoveryParts } from './recovery.ts'

/** A pack that waits for longer belongs to a server that is gone, or cannot reach the storage. */
const WAITING_MS_MAX = 60_000

interface Sighting {
  readonly sinceMs: number
  /** It failed, and that was reported. */
  isReported: boolean
}

/**
 * Applies packs that another server committed and did not apply. A pack counts as left behind when this server has seen
 * it wait for a minute of its own clock. If it was not, both apply it, which is harmless.
 */
export class PendingWatch {
  readonly #parts: RecoveryParts
  /** Marks by their keys. */
  #seen = new Map<string, Sighting>()

  constructor(parts: RecoveryParts) {
    this.#parts = parts
  }

  /** To be called again and again. Errors of single packs go to `onError`, once for each pack. */
  async look(onError: (error: unknown) => void, signal: AbortSignal): Promise<void> {
    const { records, environment } = this.#parts
    const before = this.#seen
    const waiting = new Map<string, Sighting>()
    for await (const entries of records.range(keyBounds('pending'), { signal })) {
      for (const entry of entries) {
        signal.throwIfAborted()
        const name = Buffer.from(entry.key).toString('latin1')
        const sighting = before.get(name) ?? { sinceMs: environment.monotonicMs(), isReported: false }
        waiting.set(name, sighting)
        if (environment.monotonicMs() - sighting.sinceMs < WAITING_MS_MAX) continue
        try {
          await applyMarked(this.#parts, entry)
          waiting.delete(name)
        } catch (error) {
          const isGone = error instanceof StowageError && error.code === 'project_removed'
          if (!isGone && !sighting.isReported) onError(error)
          sighting.isReported = true
        }
      }
    }
    this.#seen = waiting
  }
}
