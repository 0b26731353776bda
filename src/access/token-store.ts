import { randomBytes } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import type { Clock } from '../environment.ts'
import { StowageError } from '../errors.ts'
import { checkProjectId, quoted } from '../object/id.ts'
import { type Access, EVERY_PROJECT, type Right } from './access.ts'
import { TOKEN_BYTES_MAX } from './bearer.ts'
import { createExclusively, ensurePrivateFolder, TEMPORARY_PREFIX } from '../data-folder/exclusive-file.ts'
import { jwtAccess } from './jwt.ts'
import { seal, unseal } from '../data-folder/sealed.ts'

/*
 * The half of a data folder that says who may use it:
 *
 *   access/key             the secret that signs tokens, made on first use
 *   access/tokens/<jti>    what was issued, one file for each token, never the token itself
 *   access/revoked/<jti>   which of them no longer hold
 *
 * Every file is created once and never changed, so that any number of processes can work here beside each other.
 */

const ISSUER = 'stowage'
const AUDIENCE = 'stowage'
const ALGORITHM = 'HS256'
const SECRET_BYTES = 32
const KEY_TEXT = /^[0-9a-f]{64}$/
const JTI = /^[0-9a-f]{32}$/
const TTL_SECONDS_MAX = 10 * 365 * 86_400
const SUBJECT_CHARACTERS_MAX = 256
/** A server sees a revocation within a second: it looks again when what it knows is older than this. */
const REVOCATIONS_FRESH_MS = 500
/** How long after its expiry a token is still listed. */
const KEPT_AFTER_EXPIRY_MS = 30 * 86_400_000

export interface TokenRequest {
  readonly projects: ReadonlyMap<string, Right>
  /** Bounds for each principal count by it. Without one the token counts by itself, and is called after its id. */
  readonly subject?: string
  readonly ttlSeconds: number
}

/** What is kept about a token that was issued. Times are ISO 8601, in UTC. */
export interface TokenRecord {
  readonly jti: string
  readonly subject: string
  readonly projects: Readonly<Record<string, Right>>
  readonly issuedAt: string
  readonly expiresAt: string
}

export interface ListedToken extends TokenRecord {
  readonly state: 'valid' | 'expired' | 'revoked'
}

/**
 * A token signed with the folder's own key, which is made if there is none yet. Throws `invalid_id` for a project id that cannot be one and
 * `invalid_request` for a lifetime of more than ten years or more projects than fit into 8 KB.
 */
export async function issueToken(
  dataFolder: string,
  request: TokenRequest,
  clock: Clock = Date,
): Promise<{ token: string; record: TokenRecord }> {
  checkRequest(request)
  const secret = await folderSecret(dataFolder)
  await forgetLongExpired(dataFolder, clock)
  const issuedSeconds = Math.floor(clock.now() / 1_000)
  const expiresSeconds = issuedSeconds + request.ttlSeconds
  const jti = randomBytes(16).toString('hex')
  const record: TokenRecord = {
    jti,
    subject: request.subject ?? `token-${jti.slice(0, 8)}`,
    projects: Object.fromEntries(request.projects),
    issuedAt: isoOf(issuedSeconds),
    expiresAt: isoOf(expiresSeconds),
  }
  const token = await new SignJWT({ stowage: { projects: record.projects } })
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(record.subject)
    .setJti(record.jti)
    .setIssuedAt(issuedSeconds)
    .setExpirationTime(expiresSeconds)
    .sign(secret)
  if (token.length > TOKEN_BYTES_MAX)
    throw new StowageError(
      'invalid_request',
      `the token would have ${token.length} bytes; name fewer projects, so that it has ${TOKEN_BYTES_MAX} at most`,
    )
  await createExclusively(tokenPath(dataFolder, record.jti), seal(JSON.stringify(record)))
  return { token, record }
}

/** All tokens that were issued, but for those that expired more than 30 days ago, the oldest first. */
export async function listTokens(dataFolder: string, clock: Clock = Date): Promise<readonly ListedToken[]> {
  const revoked = new Set(await namesIn(revokedFolder(dataFolder)))
  const tokens: ListedToken[] = []
  for (const jti of await namesIn(tokensFolder(dataFolder))) {
    const record = await readRecord(dataFolder, jti)
    if (record !== undefined) tokens.push({ ...record, state: stateOf(record, revoked.has(jti), clock) })
  }
  return tokens.sort((a, b) => (a.issuedAt < b.issuedAt ? -1 : 1))
}

/** Repeatable. Throws `not_found` for a token that was not issued here. */
export async function revokeToken(dataFolder: string, jti: string): Promise<void> {
  if (!JTI.test(jti) || (await readRecord(dataFolder, jti)) === undefined) {
    throw new StowageError(
      'not_found',
      `no token with the id ${quoted(jti)} was issued here; "stowage token list" shows those that were`,
    )
  }
  await ensurePrivateFolder(revokedFolder(dataFolder))
  await createExclusively(join(revokedFolder(dataFolder), jti), `${isoOf(Math.floor(Date.now() / 1_000))}\n`)
}

/** Accepts the tokens that `issueToken` made for this folder, until they expire or are revoked, by whichever process. */
export async function accessFromFolder(
  dataFolder: string,
  options: { readonly clock?: Clock; readonly onRefused?: (reason: string) => void } = {},
): Promise<Access<unknown>> {
  const keys = await folderSecret(dataFolder)
  return jwtAccess({
    ...options,
    keys,
    issuer: ISSUER,
    audience: AUDIENCE,
    algorithms: [ALGORITHM],
    isRevoked: revocations(revokedFolder(dataFolder)),
  })
}

/** What is wrong with the files that say who may use a folder, one message each. Nothing is made or changed. */
export async function* damagedAccessFiles(dataFolder: string): AsyncGenerator<string> {
  for (const name of ['key', 'secrets-key', 'session-key']) {
    const keyPath = join(accessFolder(dataFolder), name)
    const text = await readIfThere(keyPath)
    try {
      if (text !== undefined) keyOf(keyPath, text)
    } catch (error) {
      yield (error as Error).message
    }
  }
  for (const jti of await namesIn(tokensFolder(dataFolder))) {
    try {
      await readRecord(dataFolder, jti)
    } catch (error) {
      yield (error as Error).message
    }
  }
}

/** Reads the folder when it is asked, at most once in `REVOCATIONS_FRESH_MS`; everybody who asks meanwhile waits for the same reading. */
function revocations(folder: string): (jti: string) => Promise<boolean> {
  let known: Promise<ReadonlySet<string>> | undefined
  let readAtMs = 0
  return async (jti) => {
    if (known === undefined || performance.now() - readAtMs > REVOCATIONS_FRESH_MS) {
      readAtMs = performance.now()
      known = readdir(folder).then((names) => new Set(names))
    }
    try {
      return (await known).has(jti)
    } catch (error) {
      known = undefined
      throw error
    }
  }
}

async function folderSecret(dataFolder: string): Promise<Uint8Array> {
  await ensurePrivateFolder(tokensFolder(dataFolder))
  await ensurePrivateFolder(revokedFolder(dataFolder))
  const path = join(accessFolder(dataFolder), 'key')
  return keyOf(path, (await readIfThere(path)) ?? (await newKey(path)))
}

function keyOf(path: string, text: string): Uint8Array {
  const hex = unseal(text) ?? ''
  if (KEY_TEXT.test(hex)) return new Uint8Array(Buffer.from(hex, 'hex'))
  throw new StowageError(
    'corrupt_data',
    `${path} is not a key; it must be a line of 64 hex digits and one of their CRC-32 (restore it, or remove it to get a new one: everything that the old one signed or sealed is lost)`,
  )
}

async function newKey(path: string): Promise<string> {
  await createExclusively(path, seal(randomBytes(SECRET_BYTES).toString('hex')))
  return readFile(path, 'utf8')
}

function checkRequest({ projects, subject = '', ttlSeconds }: TokenRequest): void {
  if (projects.size === 0) throw new StowageError('invalid_request', 'a token needs at least one project')
  for (const projectId of projects.keys()) if (projectId !== EVERY_PROJECT) checkProjectId(projectId)
  if (!Number.isSafeInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > TTL_SECONDS_MAX) {
    throw new StowageError(
      'invalid_request',
      `a token's lifetime is ${ttlSeconds} s; it must be whole seconds from 1 to ${TTL_SECONDS_MAX} (ten years)`,
    )
  }
  if (subject.length > SUBJECT_CHARACTERS_MAX || /[\p{Cc}\p{Surrogate}]/u.test(subject)) {
    throw new StowageError(
      'invalid_request',
      `the subject ${quoted(subject)} must have ${SUBJECT_CHARACTERS_MAX} characters at most, and neither control characters nor lone surrogates`,
    )
  }
}

async function forgetLongExpired(dataFolder: string, clock: Clock): Promise<void> {
  for (const jti of await namesIn(tokensFolder(dataFolder))) {
    const record = await readRecord(dataFolder, jti)
    if (record === undefined || Date.parse(record.expiresAt) + KEPT_AFTER_EXPIRY_MS > clock.now()) continue
    await rm(join(revokedFolder(dataFolder), jti), { force: true })
    await rm(tokenPath(dataFolder, jti), { force: true })
  }
}

/** `undefined` where another process has removed it since it was listed. */
async function readRecord(dataFolder: string, jti: string): Promise<TokenRecord | undefined> {
  const path = tokenPath(dataFolder, jti)
  const text = await readIfThere(path)
  if (text === undefined) return undefined
  const json = unseal(text)
  if (json === undefined)
    throw new StowageError('corrupt_data', `${path} has changed since the token was issued; restore or remove it`)
  return JSON.parse(json) as TokenRecord
}

function stateOf(record: TokenRecord, isRevoked: boolean, clock: Clock): ListedToken['state'] {
  if (isRevoked) return 'revoked'
  return Date.parse(record.expiresAt) <= clock.now() ? 'expired' : 'valid'
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).filter((name) => !name.startsWith(TEMPORARY_PREFIX))
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}

function isAbsent(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

function isoOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString()
}

function accessFolder(dataFolder: string): string {
  return join(dataFolder, 'access')
}

function tokensFolder(dataFolder: string): string {
  return join(accessFolder(dataFolder), 'tokens')
}

function revokedFolder(dataFolder: string): string {
  return join(accessFolder(dataFolder), 'revoked')
}

function tokenPath(dataFolder: string, jti: string): string {
  return join(tokensFolder(dataFolder), jti)
}
