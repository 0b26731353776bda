import { createRemoteJWKSet, customFetch, errors, type FetchImplementation, type JWTVerifyGetKey } from 'jose'
import { StowageError } from '../errors.ts'

const RESPONSE_BYTES_MAX = 65_536
const RESPONSE_KEYS_MAX = 32
const TIMEOUT_MS = 5_000
/**
 * At least this long between two fetches that worked, so that tokens with made-up key ids cannot be turned into load on
 * the key server.
 */
const COOLDOWN_MS = 30_000
/** The same after a fetch that failed. */
const FAILURE_COOLDOWN_MS = 2_000
const CACHE_MS = 600_000

/**
 * Finds keys in a key set (RFC 7517, section 5) behind a URL: fetched when first needed, kept for ten minutes, fetched
 * again for an unknown key id. What the key server can make of it is bounded: 64 KB, 32 keys, 5 s, no redirects, one
 * fetch at a time. Throws `access_unavailable` while the set cannot be had.
 */
export function remoteKeys(url: URL): JWTVerifyGetKey {
  const find = createRemoteJWKSet(url, {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: COOLDOWN_MS,
    cacheMaxAge: CACHE_MS,
    [customFetch]: boundedFetch(),
  })
  return async (header, token) => {
    try {
      return await find(header, token)
    } catch (cause) {
      if (isFaultOfToken(cause)) throw cause
      throw new StowageError(
        'access_unavailable',
        'the key set that verifies tokens cannot be fetched now; try again later',
        { cause, headers: { 'Retry-After': String(FAILURE_COOLDOWN_MS / 1_000) } },
      )
    }
  }
}

function isFaultOfToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  )
}

function boundedFetch(): FetchImplementation {
  let notBefore = 0
  return async (url, options) => {
    if (performance.now() < notBefore)
      throw new Error(`the last fetch of the key set failed less than ${FAILURE_COOLDOWN_MS} ms ago`)
    try {
      const body = await boundedBody(await fetch(url, options))
      checkKeySet(body)
      return new Response(new Uint8Array(body))
    } catch (error) {
      notBefore = performance.now() + FAILURE_COOLDOWN_MS
      throw error
    }
  }
}

async function boundedBody(response: Response): Promise<Buffer> {
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the key server answered ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > RESPONSE_BYTES_MAX) throw new Error(`the key set is larger than ${RESPONSE_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function checkKeySet(body: Buffer): void {
  const keys: unknown = (JSON.parse(body.toString('utf8')) as { keys?: unknown } | null)?.keys
  if (
    !Array.isArray(keys) ||
    keys.length > RESPONSE_KEYS_MAX ||
    !keys.every((key) => typeof key === 'object' && key !== null && !Array.isArray(key))
  ) {
    throw new Error(`a key set must be {"keys": [...]} with at most ${RESPONSE_KEYS_MAX} keys, each an object`)
  }
}
