import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Option } from 'commander'
import type { StorageBackend } from '../../storage/backend.ts'
import { refuseUnfinished } from '../../storage/maintenance-watch.ts'
import { type FolderKind, MARKER_FILE } from '../../data-folder/data-folder.ts'
import {
  credentialsOf,
  damagedSharedBackend,
  isShared,
  optionOf,
  sharedBackend,
  type StoragePlace,
  type StoredCredentials,
} from './shared-storage.ts'
import type { OpeningOptions } from './storage-address.ts'

/* The one place in `src` that knows the adapters: the command has to bring a storage, as any other host does. */

/** What holds the data of a folder. */
export type StorageKind = FolderKind | 'memory'

/** Loaded when they are needed. */
const BACKENDS: Readonly<
  Record<StorageKind, (path: string, onSalvaged?: (what: string) => void) => Promise<StorageBackend>>
> = {
  filesystem: async (path, onSalvaged) =>
    (await import('../../../adapters/filesystem/index.ts')).filesystemBackend({ path, onSalvaged }),
  level: async (path, onSalvaged) =>
    (await import('../../../adapters/level/index.ts')).levelBackend({ path, onSalvaged }),
  memory: async () => (await import('../../../adapters/memory/index.ts')).memoryBackend(),
}

export function storageOption(): Option {
  return kindOption(Object.keys(BACKENDS))
}

/** For commands that fill a folder: what they put into memory would be lost with them. */
export function folderStorageOption(): Option {
  return kindOption(Object.keys(BACKENDS).filter((kind) => kind !== 'memory'))
}

function kindOption(kinds: readonly string[]): Option {
  return new Option(
    '--storage <kind>',
    'the storage (default: that of the folder, "filesystem" for a new one)',
  ).choices(kinds)
}

/** Stands in a data folder while a backup is being restored into it. */
export const RESTORING_FILE = 'restoring.json'

/** A storage that a server can open, and what its first line says of it. */
export interface ServedStorage extends StoredCredentials {
  readonly backend: StorageBackend
  readonly kind: StorageKind | 'shared'
  /** The folder, or both addresses without passwords. */
  readonly place: string
}

/** The storage to serve; nothing is opened yet. Throws as `storageOf` does, and where an address cannot be one. */
export async function servedStorage(
  where: StoragePlace,
  kind: StorageKind | undefined,
  options: OpeningOptions = {},
): Promise<ServedStorage> {
  if (!isShared(where)) {
    const found = await storageOf(where.data, kind)
    return { ...found, ...credentialsOf(where, undefined), place: found.kind === 'memory' ? 'memory' : where.data }
  }
  if (kind !== undefined)
    throw new Error('--storage is for a data folder; --records and --blobs say what to use instead')
  const { backend, place } = await sharedBackend(where, options)
  return { backend, ...credentialsOf(where, backend.records), kind: 'shared', place }
}

/** Opens the storage. Throws `maintenance` if a command left its records incomplete. */
export async function openStorage({ backend }: Pick<ServedStorage, 'backend'>): Promise<void> {
  await backend.ready?.()
  await refuseUnfinished(backend.records)
}

/**
 * The storage in a data folder, which is created if it is missing; nothing is opened yet. Throws if a restore was not
 * finished, unless it continues.
 */
export async function storageOf(
  dataFolder: string,
  kind: StorageKind | undefined,
  { mayBeRestoring = false }: { readonly mayBeRestoring?: boolean } = {},
): Promise<{ readonly backend: StorageBackend; readonly kind: StorageKind }> {
  if (!mayBeRestoring && existsSync(join(dataFolder, RESTORING_FILE)))
    throw new Error(
      `a restore into ${JSON.stringify(dataFolder)} was not finished; run "stowage restore" again with the same backup`,
    )
  const chosen = kind ?? (await kindOf(dataFolder)) ?? (await kindOfUnmarked(dataFolder)) ?? 'filesystem'
  return { backend: await BACKENDS[chosen](dataFolder), kind: chosen }
}

/**
 * Opens a storage that exists, in a folder or shared, and closes it afterwards. Throws `maintenance` if a command left
 * its records incomplete. With `onSalvaged`, a damaged one is opened with everything that can be saved.
 */
export async function withStorage(
  where: StoragePlace,
  use: (backend: StorageBackend) => Promise<void>,
  onSalvaged?: (what: string) => void,
): Promise<void> {
  if (!isShared(where)) return withExistingStorage(where.data, use, onSalvaged, optionOf(where, 'data'))
  const backend =
    onSalvaged === undefined ? (await sharedBackend(where)).backend : await damagedSharedBackend(where, onSalvaged)
  try {
    // Only a reindex goes on where one was stopped.
    await (onSalvaged === undefined ? openStorage({ backend }) : backend.ready?.())
    await use(backend)
  } finally {
    await backend.close()
  }
}

/**
 * Opens the storage in an existing data folder, and closes it afterwards. Commands that check or repair must not create
 * a new one at a wrong path. Throws `DataFolderError`, naming the process, while another one has the folder. With
 * `onSalvaged`, a damaged database is opened with everything that can be saved.
 */
export async function withExistingStorage(
  dataFolder: string,
  use: (backend: StorageBackend) => Promise<void>,
  onSalvaged?: (what: string) => void,
  dataOption = '--data',
): Promise<void> {
  const kind = (await kindOf(dataFolder)) ?? (await kindOfUnmarked(dataFolder))
  if (kind === undefined)
    throw new Error(`there is no storage in the folder ${JSON.stringify(dataFolder)}; name one with ${dataOption}`)
  const backend = await BACKENDS[kind](dataFolder, onSalvaged)
  try {
    // Only a reindex goes on where one was stopped.
    await (onSalvaged === undefined ? openStorage({ backend }) : backend.ready?.())
    await use(backend)
  } finally {
    await backend.close()
  }
}

/** For a folder that lost its marker, so that the adapter says what is missing. */
async function kindOfUnmarked(dataFolder: string): Promise<FolderKind | undefined> {
  const names = new Set(await readdir(dataFolder).catch(() => []))
  if (!names.has('records')) return undefined
  return names.has('blobs') ? 'level' : 'filesystem'
}

/** The kind that the folder's marker names. The adapter checks the rest of the marker. */
async function kindOf(dataFolder: string): Promise<FolderKind | undefined> {
  try {
    const marker = await readFile(join(dataFolder, MARKER_FILE), 'utf8')
    return marker.includes('"level"') ? 'level' : 'filesystem'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
