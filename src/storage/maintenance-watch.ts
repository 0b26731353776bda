import type { Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { RecordStore, StorageBackend } from './backend.ts'
import { type Gate, gatedBackend } from './gated-backend.ts'
import { isSame, type Maintenance, readMaintenance, type StoredMaintenance } from './maintenance-record.ts'

/** How old the knowledge of a server may be when it makes a call. */
export const MAINTENANCE_FRESH_MS = 500
/** A holder whose record stood still for so long has died. Counted by the clock of whoever looks. */
export const HOLDER_SILENT_MS_MAX = 10_000

const RETRY_AFTER: Readonly<Record<string, string>> = { 'Retry-After': '5' }

interface Sighting {
  readonly stored: StoredMaintenance
  readonly sinceMs: number
}

/**
 * The storage as a server uses it: while a command holds the whole storage, its calls reject with `maintenance`. The
 * server learns about it within half a second, and reads the record only when it uses the storage anyway.
 */
export function maintainedBackend(
  backend: StorageBackend,
  environment: Pick<Environment, 'monotonicMs'>,
): StorageBackend {
  return gatedBackend(backend, new MaintenanceWatch(backend.records, environment))
}

class MaintenanceWatch implements Gate {
  readonly #records: RecordStore
  readonly #environment: Pick<Environment, 'monotonicMs'>
  #seen: Sighting | undefined
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined

  constructor(records: RecordStore, environment: Pick<Environment, 'monotonicMs'>) {
    this.#records = records
    this.#environment = environment
  }

  read(): Promise<void> | undefined {
    return this.#isOpen() ? undefined : this.#pass(false)
  }

  write(): Promise<void> | undefined {
    return this.#isOpen() ? undefined : this.#pass(true)
  }

  #isOpen(): boolean {
    return this.#seen === undefined && this.#isFresh()
  }

  #isFresh(): boolean {
    return this.#environment.monotonicMs() - this.#lookedAtMs <= MAINTENANCE_FRESH_MS
  }

  async #pass(isWrite: boolean): Promise<void> {
    if (!this.#isFresh()) {
      this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
      await this.#looking
    }
    const seen = this.#seen
    if (seen === undefined) return
    const { content } = seen.stored
    if (content?.stage === 'reading') {
      const isSilent = this.#environment.monotonicMs() - seen.sinceMs >= HOLDER_SILENT_MS_MAX
      if (!isWrite || isSilent) return
    }
    throw refusal(content)
  }

  /** What was written before this began is seen. */
  async #look(): Promise<void> {
    const startedMs = this.#environment.monotonicMs()
    const stored = await readMaintenance(this.#records)
    if (stored === undefined) this.#seen = undefined
    else if (!isSame(stored.value, this.#seen?.stored.value)) this.#seen = { stored, sinceMs: startedMs }
    this.#lookedAtMs = startedMs
  }
}

function refusal(content: Maintenance | undefined): StowageError {
  if (content === undefined)
    return new StowageError(
      'maintenance',
      'the record of the storage\'s maintenance is damaged; "stowage reindex" mends it',
      { headers: RETRY_AFTER },
    )
  const { purpose, stage, since } = content
  const what = purpose === 'reindex' ? 'its records are rebuilt' : 'it is copied'
  const answered = stage === 'reading' ? 'no writes are accepted' : 'no requests are answered'
  return new StowageError(
    'maintenance',
    `the storage is under maintenance: ${what} since ${since}, and until the end ${answered}`,
    { headers: RETRY_AFTER },
  )
}

/**
 * Throws `maintenance` if some work left the records incomplete and is not finished. For a storage that one process
 * uses alone, and for a server that starts.
 */
export async function refuseUnfinished(records: RecordStore): Promise<void> {
  const stored = await readMaintenance(records)
  if (stored === undefined || stored.content?.stage === 'reading') return
  const { purpose = 'reindex', since = 'an unknown time' } = stored.content ?? {}
  throw new StowageError(
    'maintenance',
    `a "stowage ${purpose}" of ${since} has not finished, so the records are incomplete: wait for its end, or run it again if it was stopped`,
    { headers: RETRY_AFTER },
  )
}
