import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { CredentialStore } from '../../credentials/credential-store.ts'
import { folderCredentials } from '../../credentials/folder-credentials.ts'
import { recordCredentials } from '../../credentials/record-credentials.ts'
import { SealedRecords, type SealedRecordsOptions } from '../../credentials/sealed-records.ts'
import type { BlobStore, RecordStore, StorageBackend } from '../../storage/backend.ts'
import { adoptingBackend, combinedBackend } from '../../storage/combined-backend.ts'
import { dataOption, folderName } from './options.ts'

/** Where a command finds its storage: in a data folder, or in two halves, which several servers may share. */
export interface StoragePlace {
  readonly data: string
  /** The option that names the folder, for errors; `--data` if it is not given. */
  readonly dataOption?: string
  readonly records?: string
  readonly blobs?: string
  readonly sealingKeyFile?: string
}

/** Two halves that were named by their addresses. */
export interface SharedPlace extends StoragePlace {
  readonly records: string
  readonly blobs: string
}

/** A cache on the local disk, for blobs that are far away. */
export interface BlobCachePlace {
  readonly path: string
  readonly sizeBytesMax: number
  readonly onError: (error: unknown) => void
}

/** A half as a command names it. Nothing is opened before it is used. */
interface Half<S> {
  readonly store: S
  /** For messages: without a password. */
  readonly place: string
}

const SEALING_KEY_VARIABLE = 'STOWAGE_SEALING_KEY'
const SEALING_KEY_TEXT = /^[0-9a-fA-F]{64}$/
const POSTGRES = /^postgres(?:ql)?:\/\//
const RECORDS_EXAMPLE = 'postgres://user@host/database or level:<folder>'
const BLOBS_EXAMPLE = 's3://bucket/prefix?endpoint=https://host or file:<folder>'

/** The options of one of two storages that a command uses: `--from`, `--from-records` and so on. */
export function addSidePlace(command: Command, side: 'from' | 'to', folder: string): Command {
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
  return records !== undefined && POSTGRES.test(records)
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
  return new Option(`--${name} <address>`, what)
    .env(variable)
    .argParser(addressOf(/^(?:postgres(?:ql)?:\/\/|level:)./, RECORDS_EXAMPLE))
}

function blobsOption(name: string, variable: string, what: string): Option {
  return new Option(`--${name} <address>`, what)
    .env(variable)
    .argParser(addressOf(/^(?:s3:\/\/|file:)./, BLOBS_EXAMPLE))
}

/** Whether both halves are named. Throws where only one is. */
export function isShared(place: StoragePlace): place is SharedPlace {
  const { records, blobs } = place
  if ((records === undefined) === (blobs === undefined)) return records !== undefined
  const [given, missing] = records === undefined ? ['--blobs', '--records'] : ['--records', '--blobs']
  throw new Error(`${given} needs ${missing}: a storage has records and blobs`)
}

/** The storage of two halves, not opened yet. Throws where an address cannot be one. */
export async function sharedBackend(
  { records, blobs }: SharedPlace,
  cache?: BlobCachePlace,
): Promise<{ readonly backend: StorageBackend; readonly place: string }> {
  const halves = [await recordsAt(records), await blobsAt(blobs, cache)] as const
  const backend = combinedBackend({ records: halves[0].store, blobs: halves[1].store })
  return { backend, place: `${halves[0].place} and ${halves[1].place}` }
}

/** The same for a reindex, which opens damaged records, and records that were lost. Notes go to `onSalvaged`. */
export async function damagedSharedBackend(
  { records, blobs }: SharedPlace,
  onSalvaged: (what: string) => void,
): Promise<StorageBackend> {
  const halves = [await recordsAt(records, onSalvaged), await blobsAt(blobs, undefined)] as const
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
  if (place.records === undefined || !POSTGRES.test(place.records)) return use(folderCredentials(place.data))
  sealingKeyOf(place)
  const { store, place: where } = await recordsAt(place.records)
  try {
    await store.ready?.().catch((cause: unknown) => {
      throw new Error(`the records at ${where} cannot be opened`, { cause })
    })
    await use(credentialsOf(place, store).credentials)
  } finally {
    await store.close()
  }
}

async function recordsAt(address: string, onSalvaged?: (what: string) => void): Promise<Half<RecordStore>> {
  if (!POSTGRES.test(address)) {
    const path = address.slice('level:'.length)
    return { store: (await import('../../../adapters/level/index.ts')).levelRecords({ path, onSalvaged }), place: path }
  }
  const url = urlOf(address)
  const schema = url.searchParams.get('schema') ?? undefined
  url.searchParams.delete('schema')
  const { postgresRecords } = await import('../../../adapters/postgres/index.ts')
  return { store: postgresRecords({ connectionString: url.href, schema }), place: withoutPassword(address) }
}

/** What the query of an `s3:` address may say. */
const S3_PARAMETERS: readonly string[] = ['endpoint', 'region', 'addressing', 'http']

async function blobsAt(address: string, cache: BlobCachePlace | undefined): Promise<Half<BlobStore>> {
  if (!address.startsWith('s3:')) {
    const path = address.slice('file:'.length)
    return { store: (await import('../../../adapters/filesystem/index.ts')).filesystemBlobs({ path }), place: path }
  }
  const { hostname, pathname, searchParams } = urlOf(address)
  for (const name of searchParams.keys())
    if (!S3_PARAMETERS.includes(name))
      throw new Error(`--blobs has the parameter ${JSON.stringify(name)}; it may have ${S3_PARAMETERS.join(', ')}`)
  const addressing = searchParams.get('addressing') ?? undefined
  if (addressing !== undefined && addressing !== 'path' && addressing !== 'host')
    throw new Error(`--blobs has addressing=${JSON.stringify(addressing)}; it must be path or host`)
  const folder = pathname.slice(1)
  const { s3Blobs } = await import('../../../adapters/s3/index.ts')
  const inS3 = s3Blobs({
    bucket: hostname,
    prefix: folder === '' || folder.endsWith('/') ? folder : `${folder}/`,
    endpoint: searchParams.get('endpoint') ?? undefined,
    region: searchParams.get('region') ?? undefined,
    addressing,
    isHttpAllowed: searchParams.get('http') === 'allowed',
  })
  return { store: cache === undefined ? inS3 : await withCache(inS3, cache), place: `s3://${hostname}/${folder}` }
}

async function withCache(blobs: BlobStore, { path, sizeBytesMax, onError }: BlobCachePlace): Promise<BlobStore> {
  const { cachedBlobs } = await import('../../../adapters/cache/index.ts')
  return cachedBlobs(blobs, { path, sizeBytesMax, onError })
}

function addressOf(form: RegExp, example: string): (text: string) => string {
  return (text) => {
    if (!form.test(text)) throw new InvalidArgumentError(`It must be an address: ${example}.`)
    return text
  }
}

function urlOf(address: string): URL {
  if (URL.canParse(address)) return new URL(address)
  throw new Error(`${JSON.stringify(withoutPassword(address))} is not an address; it must be like ${RECORDS_EXAMPLE}`)
}

function withoutPassword(address: string): string {
  return address.replace(/^([a-z0-9]+:\/\/[^/:@]*):[^@]*@/, '$1@').replace(/\?.*$/s, '')
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
