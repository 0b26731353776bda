import { InvalidArgumentError } from 'commander'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import { tellingWait, type TellWait } from './waiting.ts'

/* The addresses of the halves of a storage: `postgres:` or `level:` for records, `s3:` or `file:` for blobs. */

/** A half as a command names it. Nothing is opened before it is used. */
export interface Half<S> {
  readonly store: S
  /** For messages: without a password. */
  readonly place: string
}

/** A cache on the local disk, for blobs that are far away. */
export interface BlobCachePlace {
  readonly path: string
  readonly sizeBytesMax: number
  readonly onError: (error: unknown) => void
}

/** How a half is opened. */
export interface OpeningOptions {
  readonly cache?: BlobCachePlace
  /** Receives a note if the opening takes long. Default: standard error. */
  readonly onWait?: TellWait
}

/** An address and the option that gave it, which messages name. */
export interface GivenAddress {
  readonly address: string
  /** Such as `--blobs` or `--to-blobs`. */
  readonly option: string
}

export const RECORDS_EXAMPLE = 'postgres://user@host/database or level:<folder>'
export const BLOBS_EXAMPLE = 's3://bucket/prefix?endpoint=https://host or file:<folder>'

const POSTGRES = /^postgres(?:ql)?:\/\//
const RECORDS = /^(?:postgres(?:ql)?:\/\/|level:)./
const BLOBS = /^(?:s3:\/\/|file:)./
/** What the query of an `s3:` address may say. */
const S3_PARAMETERS: readonly string[] = ['endpoint', 'region', 'addressing', 'http']
const ADDRESSINGS = ['path', 'host'] as const

/** Whether several servers may share the records of this address. */
export function isPostgres(address: string): boolean {
  return POSTGRES.test(address)
}

/** Parses the value of an option. */
export function recordsAddress(text: string): string {
  if (!RECORDS.test(text)) throw new InvalidArgumentError(`It must be an address: ${RECORDS_EXAMPLE}.`)
  return text
}

/** Parses the value of an option. */
export function blobsAddress(text: string): string {
  if (!BLOBS.test(text)) throw new InvalidArgumentError(`It must be an address: ${BLOBS_EXAMPLE}.`)
  return text
}

/** The records of an address. With `onSalvaged`, a damaged LevelDB is opened with everything that can be saved. */
export async function recordsAt(
  { address, option }: GivenAddress,
  { onSalvaged, onWait }: { readonly onSalvaged?: (what: string) => void } & Pick<OpeningOptions, 'onWait'> = {},
): Promise<Half<RecordStore>> {
  if (!isPostgres(address)) {
    const path = address.slice('level:'.length)
    return { store: (await import('../../../adapters/level/index.ts')).levelRecords({ path, onSalvaged }), place: path }
  }
  const url = urlOf({ address, option }, RECORDS_EXAMPLE)
  const schema = url.searchParams.get('schema') ?? undefined
  // The other parameters are for the client of PostgreSQL.
  url.searchParams.delete('schema')
  const { postgresRecords } = await import('../../../adapters/postgres/index.ts')
  const { START_TIMEOUT_MS } = await import('../../../adapters/postgres/connection-options.ts')
  const records = named(option, () => postgresRecords({ connectionString: url.href, schema }))
  return { store: tellingWait(records, START_TIMEOUT_MS, onWait), place: withoutPassword(address) }
}

export async function blobsAt(given: GivenAddress, { cache, onWait }: OpeningOptions = {}): Promise<Half<BlobStore>> {
  const { address, option } = given
  if (!address.startsWith('s3:')) {
    const path = address.slice('file:'.length)
    return { store: (await import('../../../adapters/filesystem/index.ts')).filesystemBlobs({ path }), place: path }
  }
  const { hostname, pathname, searchParams } = urlOf(given, BLOBS_EXAMPLE)
  for (const name of searchParams.keys())
    if (!S3_PARAMETERS.includes(name))
      throw new Error(`${option} has the parameter ${JSON.stringify(name)}; it may have ${S3_PARAMETERS.join(', ')}`)
  const folder = pathname.slice(1)
  const { s3Blobs } = await import('../../../adapters/s3/index.ts')
  const { CALL_MS_MAX } = await import('../../../adapters/s3/s3-client.ts')
  const place = {
    bucket: hostname,
    prefix: folder === '' || folder.endsWith('/') ? folder : `${folder}/`,
    endpoint: searchParams.get('endpoint') ?? undefined,
    region: searchParams.get('region') ?? undefined,
    addressing: chosen(option, searchParams, 'addressing', ADDRESSINGS),
    isHttpAllowed: chosen(option, searchParams, 'http', ['allowed']) === 'allowed',
  }
  if (!place.isHttpAllowed) await refuseHttp(option, place.endpoint)
  const inS3 = named(option, () => tellingWait(s3Blobs(place), CALL_MS_MAX, onWait))
  return { store: cache === undefined ? inS3 : await withCache(inS3, cache), place: `s3://${hostname}/${folder}` }
}

/** The adapter refuses it too, and names an option of its own. */
async function refuseHttp(option: string, endpoint: string | undefined): Promise<void> {
  const { isInTheClear } = await import('../../../adapters/s3/place.ts')
  if (endpoint === undefined || !URL.canParse(endpoint) || !isInTheClear(new URL(endpoint))) return
  const { origin } = new URL(endpoint)
  throw new Error(`${option}: ${origin} would send all data in the clear: use https:, or add &http=allowed`)
}

/** The address as messages may show it: without a password, and without parameters, which may hold another. */
export function withoutPassword(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined
  // Where a password has characters that end it for a URL, its rest is taken for the host or the path.
  if (url === undefined || (url.username === '' && address.includes('@')))
    return address.replace(/^([a-z0-9]+:\/\/[^/:@]*):.*@/s, '$1@').replace(/\?.*$/s, '')
  return address.replace(/^([a-z0-9]+:\/\/[^/:@]*):[^/?#]*@/, '$1@').replace(/[?#].*$/s, '')
}

/** The value of a parameter. Throws for one that it cannot have. */
function chosen<T extends string>(
  option: string,
  parameters: URLSearchParams,
  name: string,
  choices: readonly T[],
): T | undefined {
  const text = parameters.get(name)
  if (text === null) return undefined
  const value = choices.find((choice) => choice === text)
  if (value !== undefined) return value
  throw new Error(`${option} has ${name}=${JSON.stringify(text)}; it must be ${choices.join(' or ')}`)
}

/** Errors about an address name the option that gave it. */
function named<T>(option: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new Error(`${option}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

async function withCache(blobs: BlobStore, { path, sizeBytesMax, onError }: BlobCachePlace): Promise<BlobStore> {
  const { cachedBlobs } = await import('../../../adapters/cache/index.ts')
  return cachedBlobs(blobs, { path, sizeBytesMax, onError })
}

function urlOf({ address, option }: GivenAddress, example: string): URL {
  if (URL.canParse(address)) return new URL(address)
  throw new Error(
    `${option}: ${JSON.stringify(withoutPassword(address))} is not an address; it must be like ${example}`,
  )
}
