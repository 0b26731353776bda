import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import type { CryptoKey, JWTVerifyGetKey } from 'jose'
import { remoteKeys } from './remote-keys.ts'

/** A shared secret of 32 bytes or more, a public key, or the address of a key set (RFC 7517, section 5). */
export type TokenKey = Uint8Array | CryptoKey | URL

/**
 * The signature algorithms (RFC 7518, section 3.1, RFC 8037 and RFC 9864) that can be allowed. `none` is not among
 * them.
 */
const HASHES: ReadonlyMap<string, string> = new Map([
  ['HS256', 'SHA-256'],
  ['HS384', 'SHA-384'],
  ['HS512', 'SHA-512'],
])
const SHARED_SECRET: readonly string[] = [...HASHES.keys()]
const PUBLIC_KEY: readonly string[] = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]

const KEYS_MAX = 16
const SECRET_BYTES_MIN = 32
const PEM_START = '-----BEGIN'
const DER_SEQUENCE = 0x30
/** RFC 7518, section 3.3. */
const RSA_BITS_MIN = 2_048

/** Throws `TypeError` unless at least one algorithm is allowed and all are known. */
export function checkAlgorithms(algorithms: readonly string[]): string[] {
  const known = [...SHARED_SECRET, ...PUBLIC_KEY]
  if (algorithms.length === 0)
    throw new TypeError(`algorithms is empty; name those of your tokens: ${known.join(', ')}`)
  const unknown = algorithms.find((algorithm) => !known.includes(algorithm))
  if (unknown !== undefined)
    throw new TypeError(`algorithms holds ${JSON.stringify(unknown)}; allowed are ${known.join(', ')}`)
  return [...algorithms]
}

/**
 * Finders of the key for a token, one for each source, those first that need no network. Throws `TypeError` for a key
 * that could never verify a token or that is too weak.
 */
export function keyFinders(
  keys: TokenKey | readonly TokenKey[],
  algorithms: readonly string[],
): readonly JWTVerifyGetKey[] {
  const sources: readonly TokenKey[] = isList(keys) ? keys : [keys]
  if (sources.length === 0 || sources.length > KEYS_MAX)
    throw new TypeError(`keys holds ${sources.length} keys; it must be 1 to ${KEYS_MAX}`)
  const local: JWTVerifyGetKey[] = []
  const remote: JWTVerifyGetKey[] = []
  for (const source of sources) {
    if (source instanceof URL) remote.push(remoteKeys(checkedUrl(source, algorithms)))
    else if (source instanceof Uint8Array) local.push(secretFinder(checkedSecret(source, algorithms)))
    else local.push(keyFinder(checkedCryptoKey(source, algorithms)))
  }
  return [...local, ...remote]
}

function keyFinder(key: CryptoKey): JWTVerifyGetKey {
  return () => Promise.resolve(key)
}

/**
 * The secret becomes a key object once for each algorithm: doing so for each token would double the time of a request's
 * check.
 */
function secretFinder(secret: Uint8Array<ArrayBuffer>): JWTVerifyGetKey {
  const made = new Map<string, Promise<CryptoKey>>()
  return ({ alg }) => {
    const hash = HASHES.get(alg)
    if (hash === undefined) throw new TypeError('a shared secret cannot verify this algorithm')
    const key = made.get(alg) ?? crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash }, false, ['verify'])
    made.set(alg, key)
    return key
  }
}

function isList(keys: TokenKey | readonly TokenKey[]): keys is readonly TokenKey[] {
  return Array.isArray(keys)
}

function checkedSecret(secret: Uint8Array, algorithms: readonly string[]): Uint8Array<ArrayBuffer> {
  needsOne(algorithms, SHARED_SECRET, 'a Uint8Array is a shared secret')
  checkSecretBytes(secret.length)
  if (Buffer.from(secret.subarray(0, PEM_START.length)).toString('latin1') === PEM_START) {
    throw new TypeError(
      'a key in PEM form cannot be a shared secret: anyone who knows a public key could sign with it; import it as a CryptoKey first',
    )
  }
  if (isPublicOrPrivateKey(secret))
    throw new TypeError(
      'a key in DER form cannot be a shared secret: anyone who knows a public key could sign with it; import it as a CryptoKey first',
    )
  return new Uint8Array(secret)
}

/** Whether the bytes are an asymmetric key or a certificate in DER form, of any of the usual structures. */
function isPublicOrPrivateKey(bytes: Uint8Array): boolean {
  if (bytes[0] !== DER_SEQUENCE) return false
  const key = Buffer.from(bytes)
  const readings = [
    (): unknown => createPublicKey({ key, format: 'der', type: 'spki' }),
    (): unknown => createPublicKey({ key, format: 'der', type: 'pkcs1' }),
    (): unknown => createPrivateKey({ key, format: 'der', type: 'pkcs8' }),
    (): unknown => createPrivateKey({ key, format: 'der', type: 'pkcs1' }),
    (): unknown => createPrivateKey({ key, format: 'der', type: 'sec1' }),
    (): unknown => new X509Certificate(key),
  ]
  return readings.some((read) => {
    try {
      return read() !== undefined
    } catch {
      return false
    }
  })
}

function checkedCryptoKey(key: CryptoKey, algorithms: readonly string[]): CryptoKey {
  if (key?.type !== 'public' && key?.type !== 'secret') {
    throw new TypeError('keys holds something that is neither a Uint8Array, a public or secret CryptoKey, nor a URL')
  }
  if (!key.usages.includes('verify'))
    throw new TypeError('a CryptoKey in keys lacks the usage "verify"; import it with that usage')
  if (key.type === 'public') {
    needsOne(algorithms, PUBLIC_KEY, 'a public CryptoKey verifies signatures')
    checkRsaBits((key.algorithm as { modulusLength?: number }).modulusLength)
  } else {
    needsOne(algorithms, SHARED_SECRET, 'a secret CryptoKey is a shared secret')
    checkSecretBytes(((key.algorithm as { length?: number }).length ?? 0) / 8)
  }
  return key
}

function checkRsaBits(bits: number = RSA_BITS_MIN): void {
  if (bits < RSA_BITS_MIN)
    throw new TypeError(`an RSA key in keys has ${bits} bits; it must have ${RSA_BITS_MIN} or more`)
}

function checkSecretBytes(bytes: number): void {
  if (bytes < SECRET_BYTES_MIN)
    throw new TypeError(
      `a shared secret in keys has ${bytes} bytes; it must have ${SECRET_BYTES_MIN} or more, from a random source`,
    )
}

function checkedUrl(url: URL, algorithms: readonly string[]): URL {
  needsOne(algorithms, PUBLIC_KEY, 'a key set at a URL holds public keys')
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new TypeError(`a key set's URL starts with ${url.protocol}; it must be https: or http:`)
  return url
}

function needsOne(algorithms: readonly string[], usable: readonly string[], because: string): void {
  if (!algorithms.some((algorithm) => usable.includes(algorithm))) {
    throw new TypeError(`${because}, but algorithms (${algorithms.join(', ')}) holds none of ${usable.join(', ')}`)
  }
}
