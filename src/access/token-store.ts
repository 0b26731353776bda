import { randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Clock } from '../environment.ts'
import { StowageError } from '../errors.ts'
import { checkProjectId, quoted } from '../object/id.ts'
import { type Access, claimAuthorize, ALL_PROJECTS, type AccessRight } from './access.ts'
import type { CredentialStore } from '../credentials/credential-store.ts'
import { heldKeys, damagedKeys, type HeldKey, type KeyRing, readKeys } from '../credentials/key-ring.ts'
import { BEARER_REFUSALS, TOKEN_BYTES_MAX } from './bearer.ts'
import { jwtAccess } from './jwt.ts'
import { seal, unseal } from '../credentials/sealed.ts'
import { Refreshed } from '../async/refreshed.ts'
import { currentTokenKeys, tokenKeyRing } from './token-keys.ts'

/*
 * Of each token that was issued a record is kept, never the token itself, and a note of each that was revoked. Each is
 * created once and never changed, so that any number of processes can work here beside each other.
 */

const ISSUER = 'stowage'
const AUDIENCE = 'stowage'
const ALGORITHM = 'HS256'
const JTI = /^[0-9a-f]{32}$/
const TTL_SECONDS_MAX = 10 * 365 * 86_400
const SUBJECT_CHARACTERS_MAX = 256
/** A server notices a revocation or a new key within a second: it reads again when its knowledge is older than this. */
const FRESH_MS = 500
/** How long after its expiry a token is still listed. */
const KEPT_AFTER_EXPIRY_MS = 30 * 86_400_000
const TEMPORARY_KEPT_AFTER_EXPIRY_MS = 3_600_000

export interface TokenRequest {
  readonly projects: ReadonlyMap<string, AccessRight>
  /** The unit of limits per principal. Without a subject the token counts on its own, by its id. */
  readonly subject?: string
  readonly ttlSeconds: number
  /** For a backup: `readsSealedSecrets` of its principal. */
  readonly readsSealedSecrets?: boolean
  /** A command makes it for itself: it is not listed long after it has expired. */
  readonly isTemporary?: boolean
}

/** The record of an issued token. Times are ISO 8601, in UTC. */
export interface TokenRecord {
  readonly jti: string
  readonly subject: string
  readonly projects: Readonly<Record<string, AccessRight>>
  readonly issuedAt: string
  readonly expiresAt: string
  /** The key that signed it. Absent in records that were written before keys could be rotated: the first key. */
  readonly keyId?: string
  readonly readsSealedSecrets?: true
  readonly isTemporary?: true
}

/** `expiresAt` is when the token ends: by itself, or with the key that signed it. */
export interface ListedToken extends TokenRecord {
  readonly state: 'valid' | 'expired' | 'revoked'
}

/**
 * A token signed with the current key of the store, which is made if there is none yet. Throws `invalid_id` for a project id that cannot be one and
 * `invalid_request` for a lifetime of more than ten years or more projects than fit into 8 KB.
 */
export async function issueToken(
  credentials: CredentialStore,
  request: TokenRequest,
  clock: Clock = Date,
): Promise<{ token: string; record: TokenRecord }> {
  checkRequest(request)
  await credentials.open()
  const [current] = await readKeys(tokenKeyRing(credentials))
  await forgetLongExpired(credentials, clock)
  const issuedSeconds = Math.floor(clock.now() / 1_000)
  const expiresSeconds = issuedSeconds + request.ttlSeconds
  const jti = randomBytes(16).toString('hex')
  const record: TokenRecord = {
    jti,
    subject: request.subject ?? `token-${jti.slice(0, 8)}`,
    projects: Object.fromEntries(request.projects),
    issuedAt: isoOf(issuedSeconds),
    expiresAt: isoOf(expiresSeconds),
    keyId: current.id,
    ...(request.readsSealedSecrets === true && { readsSealedSecrets: true }),
    ...(request.isTemporary === true && { isTemporary: true }),
  }
  const claim = { projects: record.projects, ...(record.readsSealedSecrets && { sealedSecrets: true }) }
  const token = await new SignJWT({ stowage: claim })
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(record.subject)
    .setJti(record.jti)
    .setIssuedAt(issuedSeconds)
    .setExpirationTime(expiresSeconds)
    .sign(current.key)
  if (token.length > TOKEN_BYTES_MAX)
    throw new StowageError(
      'invalid_request',
      `the token would have ${token.length} bytes; the limit is ${TOKEN_BYTES_MAX}; name fewer projects`,
    )
  await credentials.create('tokens', record.jti, seal(JSON.stringify(record)))
  return { token, record }
}

/**
 * All tokens that were issued, the oldest first. Those that expired more than 30 days ago are not listed; temporary ones
 * go after an hour.
 */
export async function listTokens(credentials: CredentialStore, clock: Clock = Date): Promise<readonly ListedToken[]> {
  const revoked = new Set(await credentials.names('revoked'))
  const keys = await heldKeys(tokenKeyRing(credentials))
  const tokens: ListedToken[] = []
  for (const [jti, text] of await credentials.readAll('tokens')) {
    const record = parsedRecord(credentials, jti, text)
    const ends = { ...record, expiresAt: endOf(record, keys) }
    tokens.push({ ...ends, state: stateOf(ends, revoked.has(jti), clock) })
  }
  return tokens.sort((a, b) => (a.issuedAt < b.issuedAt ? -1 : 1))
}

/** Repeatable. Throws `not_found` for a token that was not issued here. */
export async function revokeToken(credentials: CredentialStore, jti: string): Promise<void> {
  if (!JTI.test(jti) || (await readRecord(credentials, jti)) === undefined) {
    throw new StowageError(
      'not_found',
      `${credentials.place} has no token ${quoted(jti)}; "stowage token list" shows its tokens`,
    )
  }
  await credentials.create('revoked', jti, `${isoOf(Math.floor(Date.now() / 1_000))}\n`)
}

/**
 * Accepts the tokens that `issueToken` made for this store, until they expire or are revoked, or the key ends that
 * signed them, by whichever process. Throws `corrupt_data`.
 */
export async function storedAccess(
  credentials: CredentialStore,
  options: { readonly clock?: Clock; readonly onRefused?: (reason: string) => void } = {},
): Promise<Access<unknown>> {
  await credentials.open()
  const keys = await currentTokenKeys(credentials, { freshMs: FRESH_MS, clock: options.clock ?? Date })
  const revoked = new Refreshed(async () => new Set(await credentials.names('revoked')), FRESH_MS)
  const accessWith = (valid: readonly HeldKey[]): Access<unknown> =>
    jwtAccess({
      ...options,
      keys: valid.map(({ key }) => key),
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: [ALGORITHM],
      isRevoked: async (jti) => (await revoked.get()).has(jti),
    })
  let known: { readonly ids: string; readonly access: Access<unknown> } | undefined
  return {
    authenticate: async (request) => {
      const valid = await keys()
      const ids = valid.map(({ id }) => id).join()
      if (known?.ids !== ids) known = { ids, access: accessWith(valid) }
      return known.access.authenticate(request)
    },
    authorize: claimAuthorize,
    refusals: BEARER_REFUSALS,
  }
}

/** The faults of the credentials of a store, one message each. Nothing is created or changed. */
export async function* damagedCredentials(
  credentials: CredentialStore,
  keyRings: readonly KeyRing[],
): AsyncGenerator<string> {
  for (const ring of keyRings) yield* damagedKeys(ring)
  for (const jti of await credentials.names('tokens')) {
    try {
      await readRecord(credentials, jti)
    } catch (error) {
      yield (error as Error).message
    }
  }
}

function checkRequest({ projects, subject = '', ttlSeconds }: TokenRequest): void {
  if (projects.size === 0) throw new StowageError('invalid_request', 'a token needs at least one project')
  for (const projectId of projects.keys()) if (projectId !== ALL_PROJECTS) checkProjectId(projectId)
  if (!Number.isSafeInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > TTL_SECONDS_MAX) {
    throw new StowageError(
      'invalid_request',
      `a token's lifetime is ${ttlSeconds} s; it must be whole seconds from 1 to ${TTL_SECONDS_MAX} (ten years)`,
    )
  }
  if (subject.length > SUBJECT_CHARACTERS_MAX || /[\p{Cc}\p{Surrogate}]/u.test(subject)) {
    throw new StowageError(
      'invalid_request',
      `the subject ${quoted(subject)} must have at most ${SUBJECT_CHARACTERS_MAX} characters, without control characters and lone surrogates`,
    )
  }
}

async function forgetLongExpired(credentials: CredentialStore, clock: Clock): Promise<void> {
  for (const [jti, text] of await credentials.readAll('tokens')) {
    const record = parsedRecord(credentials, jti, text)
    const keptMs = record.isTemporary ? TEMPORARY_KEPT_AFTER_EXPIRY_MS : KEPT_AFTER_EXPIRY_MS
    if (Date.parse(record.expiresAt) + keptMs > clock.now()) continue
    await credentials.remove('revoked', jti)
    await credentials.remove('tokens', jti)
  }
}

/** `undefined` if another process has removed it since it was listed. */
async function readRecord(credentials: CredentialStore, jti: string): Promise<TokenRecord | undefined> {
  const text = await credentials.read('tokens', jti)
  return text === undefined ? undefined : parsedRecord(credentials, jti, text)
}

function parsedRecord(credentials: CredentialStore, jti: string, text: string): TokenRecord {
  const json = unseal(text)
  if (json === undefined)
    throw new StowageError(
      'corrupt_data',
      `${credentials.describe('tokens', jti)} has changed since the token was issued; restore or remove it`,
    )
  return JSON.parse(json) as TokenRecord
}

/** A key that is gone has ended before. */
function endOf({ keyId, issuedAt, expiresAt }: TokenRecord, keys: readonly HeldKey[]): string {
  const key = keys.find(({ id, number }) => (keyId === undefined ? number === 1 : id === keyId))
  const keyEnd = key === undefined ? issuedAt : (key.validUntil ?? expiresAt)
  return Date.parse(keyEnd) < Date.parse(expiresAt) ? keyEnd : expiresAt
}

function stateOf(record: TokenRecord, isRevoked: boolean, clock: Clock): ListedToken['state'] {
  if (isRevoked) return 'revoked'
  return Date.parse(record.expiresAt) <= clock.now() ? 'expired' : 'valid'
}

function isoOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString()
}
