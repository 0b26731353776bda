import { type Environment, randomId, timeText, type Timer } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { RecordStore, StorageBackend } from './backend.ts'
import { type Gate, gatedBackend } from './gated-backend.ts'
import {
  encodeMaintenance,
  isSame,
  type Maintenance,
  MAINTENANCE_KEY,
  type MaintenancePurpose,
  readMaintenance,
  type StoredMaintenance,
} from './maintenance-record.ts'
import { HOLDER_SILENT_MS_MAX, MAINTENANCE_FRESH_MS } from './maintenance-watch.ts'

/** How somebody holds a storage as a whole. */
export interface MaintenanceOptions {
  readonly purpose: MaintenancePurpose
  /** For people: the machine and the process. */
  readonly holder: string
  /** What is copied: only the same copy continues one that was stopped. */
  readonly source?: string
  /** How long a call of a server that is under way may take, in milliseconds. */
  readonly drainMs: number
  readonly environment: Environment
}

/** A storage that is held as a whole. */
export interface HeldStorage {
  /**
   * The storage for the holder. Its calls reject with `maintenance` once somebody else may hold it. With `excludes`,
   * the first write waits until all servers refuse all requests.
   */
  readonly backend: StorageBackend
  /** Whether the work of a holder that was stopped is continued. */
  readonly isContinued: boolean
  /** From here on the records are incomplete, until the work has been finished. Resolves when no server uses them. */
  exclude(): Promise<void>
}

/** Well before `HOLDER_SILENT_MS_MAX`, by which others take the holder for dead. */
const LEASE_MS = 8_000
const RENEW_MS = 2_000
const LOOK_MS = 500

/**
 * Holds the storage while `use` runs: servers refuse writes, and everything after `exclude`. If `use` rejects after
 * that, or its process dies, servers go on refusing until the same work is done once more. Throws `conflict` if somebody
 * else holds the storage, or left other work unfinished.
 */
export async function withMaintenance<T>(
  backend: StorageBackend,
  options: MaintenanceOptions & { readonly excludes?: boolean },
  use: (held: HeldStorage) => Promise<T>,
): Promise<T> {
  const { lease, isContinued } = await MaintenanceLease.take(backend.records, options)
  try {
    await lease.drained()
    const gate: Gate = {
      read: () => lease.check(),
      write: () => (options.excludes === true && !lease.isExclusive ? lease.exclude() : lease.check()),
    }
    // Whoever closes it, the lease still needs the records.
    const held = { ...gatedBackend(backend, gate), close: async () => undefined }
    const result = await use({ backend: held, isContinued, exclude: () => lease.exclude() })
    await lease.end()
    return result
  } catch (error) {
    await lease.abandon()
    throw error
  }
}

class MaintenanceLease {
  readonly #records: RecordStore
  readonly #options: MaintenanceOptions
  #content: Maintenance
  #value: Uint8Array
  /** When the last renewal that succeeded was sent. */
  #renewedAtMs: number
  #timer: Timer | undefined
  /** Changes of the record, one after the other. */
  #changing: Promise<void> = Promise.resolve()
  #excluding: Promise<void> | undefined
  #isStopped = false
  #lost: StowageError | undefined

  private constructor(records: RecordStore, options: MaintenanceOptions, content: Maintenance, takenAtMs: number) {
    this.#records = records
    this.#options = options
    this.#content = content
    this.#value = encodeMaintenance(content)
    this.#renewedAtMs = takenAtMs
    this.#renewLater()
  }

  static async take(
    records: RecordStore,
    options: MaintenanceOptions,
  ): Promise<{ readonly lease: MaintenanceLease; readonly isContinued: boolean }> {
    const { environment, purpose, holder, source } = options
    const before = await silentMaintenance(records, environment)
    // A damaged record says nothing, so the records may be incomplete.
    const isContinued = before !== undefined && before.content?.stage !== 'reading'
    if (isContinued) checkContinues(before.content, options)
    const content: Maintenance = {
      id: randomId(environment),
      counter: 1,
      purpose,
      stage: isContinued ? 'writing' : 'reading',
      holder,
      since: timeText(environment.now()),
      ...(source === undefined ? {} : { source }),
    }
    const takenAtMs = environment.monotonicMs()
    const put = [{ key: MAINTENANCE_KEY, value: encodeMaintenance(content) }]
    const { ok } = await records.commit({ put, expect: [{ key: MAINTENANCE_KEY, value: before?.value }] })
    if (!ok) throw new StowageError('conflict', 'another command has just begun to work on the storage as a whole')
    return { lease: new MaintenanceLease(records, options, content, takenAtMs), isContinued }
  }

  get isExclusive(): boolean {
    return this.#content.stage === 'writing' && this.#excluding === undefined
  }

  /** `undefined` while nobody else can hold the storage; rejects afterwards. */
  check(): Promise<void> | undefined {
    const isLate = this.#options.environment.monotonicMs() - this.#renewedAtMs >= LEASE_MS
    if (isLate) this.#lose('its record could not be renewed in time')
    return this.#lost && Promise.reject(this.#lost)
  }

  exclude(): Promise<void> {
    if (this.#content.stage === 'writing' && this.#excluding === undefined) return Promise.resolve()
    this.#excluding ??= this.#exclude().finally(() => (this.#excluding = undefined))
    return this.#excluding
  }

  /** Resolves when each server knows, and the calls have ended that it made before. */
  async drained(): Promise<void> {
    if (this.#records.isShared === true) await this.#wait(MAINTENANCE_FRESH_MS + this.#options.drainMs)
    await this.check()
  }

  /** Servers go on. */
  async end(): Promise<void> {
    await this.#stop()
    await this.check()
    const { ok } = await this.#records.commit({
      remove: [MAINTENANCE_KEY],
      expect: [{ key: MAINTENANCE_KEY, value: this.#value }],
    })
    if (!ok) this.#lose('another command took it over')
    await this.check()
  }

  /** After a failure: servers go on if nothing was changed. */
  async abandon(): Promise<void> {
    await this.#stop()
    if (this.#content.stage === 'writing') return
    const expect = [{ key: MAINTENANCE_KEY, value: this.#value }]
    // Otherwise they go on when the record has stood still for long enough.
    await this.#records.commit({ remove: [MAINTENANCE_KEY], expect }).catch(() => undefined)
  }

  async #exclude(): Promise<void> {
    await this.check()
    await this.#change({ stage: 'writing' })
    await this.drained()
  }

  async #stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#changing
  }

  #renewLater(): void {
    if (this.#isStopped) return
    this.#timer = this.#options.environment.setTimer(RENEW_MS, () => {
      void this.#change({}).then(
        () => this.#renewLater(),
        // The next renewal may succeed; `check` counts the time.
        () => this.#renewLater(),
      )
    })
  }

  #change(changed: Partial<Maintenance>): Promise<void> {
    const step = this.#changing.then(() => this.#changeNow(changed))
    this.#changing = step.catch(() => undefined)
    return step
  }

  async #changeNow(changed: Partial<Maintenance>): Promise<void> {
    await this.check()
    const { environment } = this.#options
    const sentAtMs = environment.monotonicMs()
    const content = { ...this.#content, ...changed, counter: this.#content.counter + 1 }
    const value = encodeMaintenance(content)
    if (!(await this.#put(value))) this.#lose('another command took it over')
    // Otherwise somebody may have seen one value for so long that the holder counts as dead.
    await this.check()
    this.#content = content
    this.#value = value
    this.#renewedAtMs = sentAtMs
  }

  async #put(value: Uint8Array): Promise<boolean> {
    try {
      const expect = [{ key: MAINTENANCE_KEY, value: this.#value }]
      return (await this.#records.commit({ put: [{ key: MAINTENANCE_KEY, value }], expect })).ok
    } catch (error) {
      // The commit may have been made, and only its answer was lost.
      const stored = await readMaintenance(this.#records)
      if (isSame(stored?.value, value)) return true
      throw error
    }
  }

  #lose(why: string): void {
    this.#lost ??= new StowageError(
      'maintenance',
      `this command does not hold the storage any more: ${why}; run it again`,
    )
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#options.environment.setTimer(ms, resolve))
  }
}

/** A record whose holder has died, or none. Throws `conflict` if the holder lives. */
async function silentMaintenance(
  records: RecordStore,
  environment: Environment,
): Promise<StoredMaintenance | undefined> {
  const first = await readMaintenance(records)
  // What one process has for itself, nobody else can hold.
  if (first === undefined || records.isShared !== true) return first
  const sinceMs = environment.monotonicMs()
  for (;;) {
    await new Promise<void>((resolve) => void environment.setTimer(LOOK_MS, resolve))
    const lookedAtMs = environment.monotonicMs()
    const now = await readMaintenance(records)
    if (now === undefined) return undefined
    if (!isSame(now.value, first.value)) throw heldByAnother(now.content)
    if (lookedAtMs - sinceMs >= HOLDER_SILENT_MS_MAX) return now
  }
}

function heldByAnother(content: Maintenance | undefined): StowageError {
  const { purpose = 'reindex', holder = 'another process', since = 'an unknown time' } = content ?? {}
  return new StowageError('conflict', `${holder} works on the storage as a whole (stowage ${purpose}) since ${since}`)
}

function checkContinues(left: Maintenance | undefined, { purpose, source }: MaintenanceOptions): void {
  if (left === undefined || (left.purpose === purpose && left.source === source)) return
  const of = left.source === undefined ? '' : ` of ${left.source}`
  throw new StowageError(
    'conflict',
    `a "stowage ${left.purpose}"${of}, begun on ${left.since} by ${left.holder}, has not finished: run it again first`,
  )
}
