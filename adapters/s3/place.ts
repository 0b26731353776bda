const HOSTS_OF_THIS_MACHINE = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^(?:[A-Za-z0-9._-]+\/)*[A-Za-z0-9._-]*$/
const PREFIX_BYTES_MAX = 512
/** No name has a dot, so no blob meets a folder of its name on a store over plain files. */
const BLOB_SUFFIX = '.b'

/** Where the blobs lie. */
export interface S3Place {
  /** The address of the store. Default: that of AWS in the region. */
  readonly endpoint?: string | URL
  /** Default: `us-east-1`. Most stores other than AWS accept any. */
  readonly region?: string
  /** The bucket, which must exist. */
  readonly bucket: string
  /** The beginning of all keys, such as `stowage/`. Nothing else may write below it. Default: empty. */
  readonly prefix?: string
  /**
   * Whether the bucket stands in the path or before the host. Default: `host` for `amazonaws.com`, unless the bucket
   * has a dot, and `path` elsewhere.
   */
  readonly addressing?: 'path' | 'host'
  /** Lets `endpoint` be `http:` on another machine: everything is sent in the clear then. Default: false. */
  readonly isHttpAllowed?: boolean
}

/** Addresses of objects, and names of blobs. */
export class S3Addresses {
  readonly region: string
  readonly prefix: string
  readonly protocol: string
  /** For messages: without secrets. */
  readonly text: string
  readonly #base: string

  /** Throws `TypeError` for options that cannot work. */
  constructor({ endpoint, region = 'us-east-1', bucket, prefix = '', addressing, isHttpAllowed = false }: S3Place) {
    if (!BUCKET.test(bucket)) throw new TypeError(`${JSON.stringify(bucket)} is not the name of an S3 bucket`)
    checkPrefix(prefix)
    const url = endpointUrl(endpoint ?? `https://s3.${region}.amazonaws.com`)
    if (isInTheClear(url) && !isHttpAllowed)
      throw new TypeError(`${url.origin} would send all data in the clear: use https:, or set isHttpAllowed: true`)
    const isHost = (addressing ?? defaultAddressing(url, bucket)) === 'host'
    const folder = url.pathname.endsWith('/') ? url.pathname : `${url.pathname}/`
    this.#base = isHost ? `${url.protocol}//${bucket}.${url.host}${folder}` : `${url.origin}${folder}${bucket}/`
    this.region = region
    this.prefix = prefix
    this.protocol = url.protocol
    this.text = `bucket ${bucket} at ${url.origin}`
  }

  /** Without a key: the bucket itself. */
  urlOf(key: string, query: Readonly<Record<string, string>>): URL {
    const url = new URL(`${this.#base}${key}`)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return url
  }

  keyOf(name: string): string {
    return `${this.prefix}${name}${BLOB_SUFFIX}`
  }

  /** The name of the blob with this key; `undefined` for other objects. */
  nameOf(key: string): string | undefined {
    return key.startsWith(this.prefix) && key.endsWith(BLOB_SUFFIX)
      ? key.slice(this.prefix.length, -BLOB_SUFFIX.length)
      : undefined
  }
}

function endpointUrl(endpoint: string | URL): URL {
  const url = URL.canParse(String(endpoint)) ? new URL(endpoint) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    throw new TypeError(`the endpoint is ${JSON.stringify(String(endpoint))}; it must be an https: address`)
  }
  if (url.username !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('the endpoint must be an address without a user, a query or a fragment')
  return url
}

/** Whether everything that is sent to this address can be read on its way to another machine. */
export function isInTheClear({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !HOSTS_OF_THIS_MACHINE.test(hostname)
}

function checkPrefix(prefix: string): void {
  const segments = prefix.split('/')
  if (PREFIX.test(prefix) && prefix.length <= PREFIX_BYTES_MAX && !segments.includes('.') && !segments.includes('..'))
    return
  throw new TypeError(
    `the prefix ${JSON.stringify(prefix)} cannot begin keys: segments of A-Z, a-z, 0-9, ., _ and - separated by /, at most ${PREFIX_BYTES_MAX} bytes`,
  )
}

function defaultAddressing({ hostname }: URL, bucket: string): 'path' | 'host' {
  return hostname.endsWith('.amazonaws.com') && !bucket.includes('.') ? 'host' : 'path'
}
