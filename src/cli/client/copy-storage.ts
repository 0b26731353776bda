import { hostname } from 'node:os'
import type { CopiedProject } from '../../archive/copy-projects.ts'
import type { MirrorProgress } from '../../archive/mirror.ts'
import type { ClientOptions } from '../../client/index.ts'
import type { CredentialStore } from '../../credentials/credential-store.ts'
import { REAL_ENVIRONMENT } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { StorageBackend } from '../../storage/backend.ts'
import { type MaintenanceOptions, withMaintenance } from '../../storage/maintenance-lease.ts'
import { MAINTENANCE_FRESH_MS } from '../../storage/maintenance-watch.ts'
import { setStoreId, storeId } from '../../storage/store-id.ts'
import { withServiceOver } from './in-process.ts'

/** A storage that is open, with its keys and tokens. */
export interface OpenStorage {
  readonly backend: StorageBackend
  readonly credentials: CredentialStore
  /** Names it in messages, without secrets. */
  readonly place: string
}

export interface CopyStorageOptions {
  /** How long a call of a server to the shared records of the source may take. */
  readonly drainMs: number
  readonly signal: AbortSignal
  /** While a database or a store is away. */
  readonly retry: ClientOptions['retry']
  readonly onProgress: (project: string, progress: MirrorProgress | 'compared') => void
  /** Called before the calls of servers that share the source are waited for. */
  readonly onDrain?: (waitMs: number) => void
}

export interface CopiedStorage {
  readonly projects: readonly CopiedProject[]
  /** Tokens that were issued. */
  readonly tokens: number
}

interface Target extends OpenStorage {
  /** What is copied, as messages call it. */
  readonly source: string
  readonly retry: ClientOptions['retry']
}

/** The target is empty: what a server would write there is found in the end. */
const TARGET_DRAIN_MS = 500

/**
 * Copies everything of a storage into an empty one, and compares both. Servers that share the source refuse writes
 * meanwhile. The target is marked as incomplete until the copy has finished; one that was stopped continues. Throws
 * `conflict` for a target that holds anything else, `corrupt_data` if both differ in the end.
 */
export async function copyStorage(
  source: OpenStorage,
  target: OpenStorage,
  { drainMs, signal, retry, onProgress, onDrain }: CopyStorageOptions,
): Promise<CopiedStorage> {
  const { copyCredentials } = await import('../../credentials/copy-credentials.ts')
  const { copyProjects } = await import('../../archive/copy-projects.ts')
  if (source.backend.records.isShared === true) onDrain?.(MAINTENANCE_FRESH_MS + drainMs)
  return withMaintenance(source.backend, heldBy({ drainMs }), (held) =>
    withServiceOver(held.backend, source.credentials, async (from) => {
      const id = await storeId(held.backend.records)
      return withTarget({ ...target, source: source.place, retry }, id, async (to) => {
        const tokens = await copyCredentials(source.credentials, target.credentials)
        return { tokens, projects: await copyProjects({ ...from, retry }, to, { signal, onProgress }) }
      })
    }),
  )
}

async function withTarget<T>(
  { backend, credentials, place, source, retry }: Target,
  id: string,
  use: (server: ClientOptions) => Promise<T>,
): Promise<T> {
  const { hasNoCredentials } = await import('../../credentials/copy-credentials.ts')
  const { listProjects } = await import('../../archive/list-projects.ts')
  return withMaintenance(backend, heldBy({ drainMs: TARGET_DRAIN_MS, source }), async (held) => {
    const mustBeEmpty = !held.isContinued
    if (mustBeEmpty && !(await hasNoCredentials(credentials))) throw areThereAlready(place, 'keys or tokens')
    return withServiceOver(held.backend, credentials, async (inProcess) => {
      const server = { ...inProcess, retry }
      if (mustBeEmpty && (await listProjects(server, undefined)).length > 0) throw areThereAlready(place, 'data')
      await held.exclude()
      // The copy takes the place of its source.
      await setStoreId(held.backend.records, id)
      return use(server)
    })
  })
}

function heldBy(options: Pick<MaintenanceOptions, 'drainMs' | 'source'>): MaintenanceOptions {
  const holder = `${hostname()}, process ${process.pid}`
  return { purpose: 'copy', holder, environment: REAL_ENVIRONMENT, ...options }
}

function areThereAlready(place: string, what: string): StowageError {
  return new StowageError(
    'conflict',
    `${what} are already in ${place}; name an empty place, such as another folder, or another schema (?schema=) and another prefix in the bucket`,
  )
}
