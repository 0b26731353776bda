import { errors, type JWTPayload, jwtVerify, type JWTVerifyGetKey, type JWTVerifyOptions } from 'jose'
import type { Clock } from '../environment.ts'
import { isServiceError, StowageError } from '../errors.ts'
import { type Access, claimAuthorize, type Principal } from './access.ts'
import { BEARER_REFUSALS, bearerToken } from './bearer.ts'
import { projectsOfClaim, readsSealedSecrets } from './claim.ts'
import { checkAlgorithms, keyFinders, type TokenKey } from './keys.ts'
import { type VerifiedToken, VerifiedTokens } from './verified-tokens.ts'

const TOLERANCE_SECONDS_MAX = 300

/** Which tokens `jwtAccess` takes (RFC 7519, RFC 8725). */
export interface JwtAccessOptions {
  /** The keys that verify signatures; several during a change of keys. */
  readonly keys: TokenKey | readonly TokenKey[]
  /** The required value of `iss`. */
  readonly issuer: string
  /** The required value of `aud`, alone or in its list. */
  readonly audience: string
  /** The signature algorithms that are accepted, such as `['RS256']`. */
  readonly algorithms: readonly string[]
  /**
   * Asked for each request with the token's `jti`; when it is given, a token without `jti` is refused, since it could
   * not be revoked.
   */
  readonly isRevoked?: (jti: string) => boolean | Promise<boolean>
  /** How far the signer's clock may be off, in `exp`, `nbf` and `iat`. 0 by default, 300 at most. */
  readonly clockToleranceSeconds?: number
  /** The wall clock; that of the system by default. */
  readonly clock?: Clock
  /**
   * Told why a token was refused, for logs: the client only learns that it was. Never gets the token or a part of it.
   */
  readonly onRefused?: (reason: string) => void
}

/**
 * Bearer tokens that are JWTs (RFC 7519): the signature, `exp` (required), `nbf`, `iat`, `iss` and `aud` must hold. Rights come from the claim
 * `{"stowage":{"projects":{"<id>":"read"|"write","*":"read"|"write"}}}`, and `"sealedSecrets":true` beside them is
 * `readsSealedSecrets` of the principal; a token without a well-formed one is accepted and grants nothing (403).
 * A token that was verified is known by its SHA-256 until it expires or its key goes; `isRevoked` is asked for it each time.
 * Throws `TypeError` for options that would accept too much or nothing, such as a shared secret of less than 32 bytes. `authenticate` throws
 * `access_unavailable` (503) while keys or revocations cannot be had.
 */
export function jwtAccess(options: JwtAccessOptions): Access<unknown> {
  const verifier = createVerifier(options)
  const authenticate = async ({ headers }: { readonly headers: Headers }): Promise<Principal | undefined> => {
    const token = bearerToken(headers)
    if (token === undefined) return undefined
    try {
      return await verifier(token)
    } catch (error) {
      if (isServiceError(error)) throw error
      options.onRefused?.(reasonOf(error))
      return undefined
    }
  }
  return { authenticate, authorize: claimAuthorize, refusals: BEARER_REFUSALS }
}

type Verifier = (token: string) => Promise<Principal>

/**
 * Refuses by any error that is not a `StowageError`: whatever a token makes `jose` throw, `TypeError` for a key of the
 * wrong kind included.
 */
function createVerifier(options: JwtAccessOptions): Verifier {
  const { issuer, audience, isRevoked, clock = Date, clockToleranceSeconds: tolerance = 0 } = options
  checkText('issuer', issuer)
  checkText('audience', audience)
  if (!(tolerance >= 0 && tolerance <= TOLERANCE_SECONDS_MAX)) {
    throw new TypeError(`clockToleranceSeconds is ${tolerance}; it must be 0 to ${TOLERANCE_SECONDS_MAX}`)
  }
  const algorithms = checkAlgorithms(options.algorithms)
  const finders = keyFinders(options.keys, algorithms)
  const requiredClaims = isRevoked === undefined ? ['exp'] : ['exp', 'jti']
  const verify = async (token: string): Promise<VerifiedToken> => {
    const nowMs = clock.now()
    const verified = await verifyWithAny(token, finders, {
      algorithms,
      issuer,
      audience,
      requiredClaims,
      clockTolerance: tolerance,
      currentDate: new Date(nowMs),
    })
    const { payload } = verified
    checkShapes(payload, Math.floor(nowMs / 1_000) + tolerance)
    const untilMs = Math.floor((payload.exp as number) + tolerance) * 1_000
    return { principal: principalOf(payload), fromMs: nowMs, untilMs, isKeyHeld: verified.isKeyHeld }
  }
  const verifiedTokens = new VerifiedTokens(verify, clock)
  return async (token) => {
    const principal = await verifiedTokens.principalOf(token)
    if (isRevoked !== undefined && (await askRevoked(isRevoked, principal.tokenId as string)))
      throw new Refusal('it was revoked')
    return principal
  }
}

function checkText(name: string, value: unknown): void {
  if (typeof value !== 'string' || value === '')
    throw new TypeError(`${name} is ${JSON.stringify(value)}; it must be a string that is not empty`)
}

interface Verified {
  readonly payload: JWTPayload
  /** Whether the key that verified it is still the one for it. */
  readonly isKeyHeld: () => Promise<boolean>
}

async function verifyWithAny(
  token: string,
  finders: readonly JWTVerifyGetKey[],
  options: JWTVerifyOptions,
): Promise<Verified> {
  let failure: unknown
  for (const find of finders) {
    try {
      return await verifyWith(token, find, options)
    } catch (error) {
      if (isServiceError(error) || isFaultOfClaims(error)) throw error
      failure = error
    }
  }
  throw failure
}

async function verifyWith(token: string, find: JWTVerifyGetKey, options: JWTVerifyOptions): Promise<Verified> {
  let findAgain: (() => ReturnType<JWTVerifyGetKey>) | undefined
  const noted: JWTVerifyGetKey = (header, input) => {
    findAgain = () => find(header, input)
    return find(header, input)
  }
  try {
    const { payload, key } = await jwtVerify(token, noted, options)
    return { payload, isKeyHeld: async () => (await findAgain?.()) === key }
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    const candidates: JWTVerifyGetKey[] = []
    for await (const key of error) candidates.push(() => Promise.resolve(key))
    return verifyWithAny(token, candidates, options)
  }
}

/** The signature was good: no other key can make a difference. */
function isFaultOfClaims(error: unknown): boolean {
  return error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed
}

class Refusal extends Error {}

/**
 * Checks that `jose` omits: a token from the future, an expiry that never comes (`1e400`), and names that are not text.
 */
function checkShapes(payload: JWTPayload, latestSeconds: number): void {
  if (!Number.isFinite(payload.exp)) throw new Refusal('its exp is not a finite number')
  if (payload.iat !== undefined && !(payload.iat <= latestSeconds)) throw new Refusal('its iat is in the future')
  for (const name of ['sub', 'jti'] as const) {
    if (payload[name] !== undefined && typeof payload[name] !== 'string')
      throw new Refusal(`its ${name} is not a string`)
  }
}

async function askRevoked(isRevoked: NonNullable<JwtAccessOptions['isRevoked']>, jti: string): Promise<boolean> {
  try {
    return await isRevoked(jti)
  } catch (cause) {
    throw new StowageError('access_unavailable', 'the list of revoked tokens cannot be read now; try again later', {
      cause,
      headers: { 'Retry-After': '1' },
    })
  }
}

function principalOf(payload: JWTPayload): Principal {
  const { sub: subject = '', jti, stowage: claim } = payload
  return {
    subject,
    projects: projectsOfClaim(claim),
    ...(jti === undefined ? {} : { tokenId: jti }),
    ...(readsSealedSecrets(claim) && { readsSealedSecrets: true }),
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Refusal) return `the token is refused: ${error.message}`
  if (error instanceof errors.JWTExpired) return 'the token is refused: it has expired'
  if (error instanceof errors.JWTClaimValidationFailed)
    return `the token is refused: its ${error.claim} is ${error.reason === 'missing' ? 'missing' : 'not as required'}`
  if (error instanceof errors.JOSEAlgNotAllowed)
    return 'the token is refused: its algorithm is not one of those allowed'
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid)
    return 'the token is refused: it is not a well-formed JWT'
  return 'the token is refused: no key verifies its signature'
}
