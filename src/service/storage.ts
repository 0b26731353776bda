import type { Clock, Environment } from '../environment.ts'
import type { Limits } from '../limits.ts'
import type { ServiceMemory } from '../memory/service-memory.ts'
import type { GraphStore } from '../object/graph-store.ts'
import type { ServiceQuota, ServiceStorage } from './options.ts'
import type { StorageBackend } from '../storage/backend.ts'
import { asGuarded } from '../storage/guard.ts'
import { maintainedBackend } from '../storage/maintenance-watch.ts'
import { createPackStore, type QuotaOf } from '../store/pack-store.ts'
import { plainGraphStore } from '../store/plain/plain-store.ts'

/**
 * The mark that a service leaves on its backend. On the backend itself, so that no module keeps state; `for`, so that
 * two copies of the package see it.
 */
const TAKEN: unique symbol = Symbol.for('stowage.backend.taken')

export interface StoreOptions {
  readonly limits: Limits
  readonly newId: () => string
  readonly memory: ServiceMemory
  readonly clock: Clock
  readonly environment: Environment
  readonly quota: ServiceQuota | undefined
  readonly onBackgroundError: (error: unknown) => void
}

/**
 * The host's storage, with a guard around a backend that has none: the one place where errors of a foreign backend are
 * classified. Where servers share the records, they also respect the maintenance of the storage. Throws `TypeError` for a backend of another service: two services would not see each other's locks.
 */
export function claimStorage(storage: ServiceStorage, environment: Environment): ServiceStorage {
  if (!('backend' in storage)) return storage
  take(storage.backend)
  const backend = asGuarded(storage.backend)
  return { backend: backend.records.isShared === true ? maintainedBackend(backend, environment) : backend }
}

/** The store over the result of `claimStorage`. */
export function graphStoreOf(storage: ServiceStorage, options: StoreOptions): GraphStore {
  const { limits, newId, clock, environment, memory, quota, onBackgroundError } = options
  const quotaOf = quota === undefined ? undefined : quotaFunction(quota)
  if (quotaOf !== undefined && !('backend' in storage))
    throw new TypeError('quotas need a storage backend; a plain object store cannot count its bytes')
  if (!('backend' in storage)) return plainGraphStore(storage.store, { limits })
  return createPackStore({ backend: storage.backend, newId, clock, environment, memory, quotaOf, onBackgroundError })
}

/** Throws `RangeError` for a bound that cannot be. */
function quotaFunction(quota: ServiceQuota): QuotaOf {
  if (typeof quota === 'function') return quota
  for (const [name, value] of Object.entries(quota)) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0))
      throw new RangeError(`quota.${name} is ${value}; it must be an integer of 0 or more`)
  }
  return () => quota
}

function take(backend: StorageBackend & { readonly [TAKEN]?: true }): void {
  if (backend[TAKEN] === true)
    throw new TypeError('this backend already belongs to another service; create one for each service')
  Object.defineProperty(backend, TAKEN, { value: true })
}
