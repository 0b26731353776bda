import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import type { CredentialStore } from '../../credentials/credential-store.ts'
import { folderCredentials } from '../../credentials/folder-credentials.ts'
import { recordCredentials } from '../../credentials/record-credentials.ts'
import { SealedRecords, type SealedRecordsOptions } from '../../credentials/sealed-records.ts'
import type { RecordStore, StorageBackend } from '../../storage/backend.ts'
import { adoptingBackend, combinedBackend } from '../../storage/combined-backend.ts'
import { dataOption, folderName } from './options.ts'
import {
  BLOBS_EXAMPLE,
  blobsAddress,
  blobsAt,
  type GivenAddress,
  isPostgres,
  type OpeningOptions,
  RECORDS_EXAMPLE,
  recordsAddress,
  recordsAt,
  withoutPassword,
} from './storage-address.ts'

/** The two storages of a command that copies. */
export type StorageSide = 'from' | 'to'

/** Where a command finds its storage: in a data folder, or in two halves, which several servers may share. */
export interface StoragePlace {
  readonly data: string
  /** Which of two storages of a command it is: its options begin with this word. */
  readonly side?: StorageSide
  readonly records?: string
  readonly blobs?: string
  readonly sealingKeyFile?: string
}

/** Two halves that were named by their addresses. */
export interface SharedPlace extends StoragePlace {
  readonly records: string
  readonly blobs: string
}

const SEALING_KEY_VARIABLE = 'STOWAGE_SEALING_KEY'
const SEALING_KEY_TEXT = /^[0-9a-fA-F]{64}$/

/** The options of one of two storages that a command uses: `--from`, `--from-records` and so on. */
export function addSidePlace(command: Command, side: StorageSide, folder: string): Command {
  const variable = `STOWAGE_${side.toUpperCase()}`
  return command
    .addOption(new Option(`--${side} <folder>`, folder).argParser(folderName))
    .addOption(recordsOption(`${side}-records`, `${variable}_RECORDS`, `the records instead: ${RECORDS_EXAMPLE}`))
    .addOption(blobsOption(`${side}-blobs`, `${variable}_BLOBS`, `the blobs beside them: ${BLOBS_EXAMPLE}`))
    .addOption(
      new Option(`--${side}-sealing-key-file <file>`, `64 hex digits; also STOWAGE_SEALING_KEY_FILE`).env(
        `${variable}_SEALING_KEY_FILE`,
      ),
    )
}

/** Names a place in messages, without secrets. */
export function placeText(place: StoragePlace): string {
  const { data, records, blobs } = place
  return records === undefined || blobs === undefined
    ? data
    : `${withoutPassword(records)} and ${withoutPassword(blobs)}`
}

/** Whether keys and tokens are in the records rather than in a folder. */
export function keepsCredentials({ records }: StoragePlace): boolean {
  return records !== undefined && isPostgres(records)
}

/** `--data`, and the options that put two halves in its place. */
export function addStoragePlace(command: Command): Command {
  return command
    .addOption(dataOption())
    .addOption(recordsOption('records', 'STOWAGE_RECORDS', `the records, which servers may share: ${RECORDS_EXAMPLE}`))
    .addOption(blobsOption('blobs', 'STOWAGE_BLOBS', `the blobs, which servers may share: ${BLOBS_EXAMPLE}`))
    .addOption(
      new Option(
        '--sealing-key-file <file>',
        `64 hex digits that seal tokens and keys in shared records; also ${SEALING_KEY_VARIABLE}`,
      ).env('STOWAGE_SEALING_KEY_FILE'),
    )
}

function recordsOption(name: string, variable: string, what: string): Option {
  return new Option(`--${name} <address>`, what).env(variable).argParser(recordsAddress)
}

function blobsOption(name: string, variable: string, what: string): Option {
  return new Option(`--${name} <address>`, what).env(variable).argParser(blobsAddress)
}

/** The option that names the folder of a storage, or one of its halves. */
export function optionOf({ side }: Pick<StoragePlace, 'side'>, what: 'data' | 'records' | 'blobs'): string {
  if (side === undefined) return `--${what}`
  return what === 'data' ? `--${side}` : `--${side}-${what}`
}

function halvesOf(place: SharedPlace): { readonly records: GivenAddress; readonly blobs: GivenAddress } {
  return {
    records: { address: place.records, option: optionOf(place, 'records') },
    blobs: { address: place.blobs, option: optionOf(place, 'blobs') },
  }
}

/** Whether both halves are named. Throws where only one is. */
export function isShared(place: StoragePlace): place is SharedPlace {
  const { records, blobs } = place
  if ((records === undefined) === (blobs === undefined)) return records !== undefined
  const [given, missing] = records === undefined ? (['blobs', 'records'] as const) : (['records', 'blobs'] as const)
  throw new Error(`${optionOf(place, given)} needs ${optionOf(place, missing)}: a storage has records and blobs`)
}

/** The storage of two halves, not opened yet. Throws where an address cannot be one. */
export async function sharedBackend(
  where: SharedPlace,
  options: OpeningOptions = {},
): Promise<{ readonly backend: StorageBackend; readonly place: string }> {
  const { records, blobs } = halvesOf(where)
  const halves = [await recordsAt(records, options), await blobsAt(blobs, options)] as const
  const backend = combinedBackend({ records: halves[0].store, blobs: halves[1].store })
  return { backend, place: `${halves[0].place} and ${halves[1].place}` }
}

/** The same for a reindex, which opens damaged records, and records that were lost. Notes go to `onSalvaged`. */
export async function damagedSharedBackend(
  where: SharedPlace,
  onSalvaged: (what: string) => void,
): Promise<StorageBackend> {
  const { records, blobs } = halvesOf(where)
  const halves = [await recordsAt(records, { onSalvaged }), await blobsAt(blobs)] as const
  const adopted = `the records had no id, and took that of the blobs in ${halves[1].place}`
  return adoptingBackend({ records: halves[0].store, blobs: halves[1].store }, () => onSalvaged(adopted))
}

/** Keys and tokens, and texts that are sealed among shared records. */
export interface StoredCredentials {
  readonly credentials: CredentialStore
  /** Absent where the credentials are in a folder. */
  readonly sealed?: SealedRecords
}

/**
 * Keys and tokens of a storage: sealed in records that servers share, otherwise in the data folder. Throws if the
 * sealing key is missing.
 */
export function credentialsOf(place: StoragePlace, records: RecordStore | undefined): StoredCredentials {
  if (records === undefined || !keepsCredentials(place)) return { credentials: folderCredentials(place.data) }
  const options: SealedRecordsOptions = { sealingKey: sealingKeyOf(place), place: withoutPassword(place.records ?? '') }
  return { credentials: recordCredentials(records, options), sealed: new SealedRecords(records, options) }
}

/** Opens the credentials alone, and closes them afterwards. */
export async function withCredentials(
  place: StoragePlace,
  use: (credentials: CredentialStore) => Promise<void>,
): Promise<void> {
  if (place.records === undefined || !keepsCredentials(place)) return use(folderCredentials(place.data))
  sealingKeyOf(place)
  const { store, place: where } = await recordsAt({ address: place.records, option: optionOf(place, 'records') })
  try {
    await store.ready?.().catch((cause: unknown) => {
      throw new Error(`the records at ${where} cannot be opened`, { cause })
    })
    await use(credentialsOf(place, store).credentials)
  } finally {
    await store.close()
  }
}

function sealingKeyOf({ sealingKeyFile }: StoragePlace): Uint8Array {
  const text = sealingKeyFile === undefined ? process.env[SEALING_KEY_VARIABLE] : readFileSync(sealingKeyFile, 'utf8')
  const hex = text?.trim() ?? ''
  if (SEALING_KEY_TEXT.test(hex)) return new Uint8Array(Buffer.from(hex, 'hex'))
  const where = sealingKeyFile === undefined ? SEALING_KEY_VARIABLE : sealingKeyFile
  const problem = hex === '' ? 'the sealing key is missing' : `the sealing key in ${where} is not 64 hex digits`
  throw new Error(
    `${problem}: shared records keep tokens and keys sealed. Make one with "openssl rand -hex 32" and give it to every server in --sealing-key-file or ${SEALING_KEY_VARIABLE}`,
  )
}
