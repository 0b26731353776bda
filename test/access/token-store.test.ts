import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { decodeJwt } from 'jose'
import { type Access, claimAuthorize, type Principal, type AccessRight } from '../../src/access/access.ts'
import { seal } from '../../src/credentials/sealed.ts'
import {
  storedAccess,
  damagedCredentials,
  issueToken,
  listTokens,
  revokeToken,
  type TokenRequest,
} from '../../src/access/token-store.ts'
import { tokenKeyRing } from '../../src/access/token-keys.ts'
import type { StowageError } from '../../src/errors.ts'
import { eventually } from '../support/patience.ts'
import { temporaryFolder } from '../support/folder.ts'

const DAY_MS = 86_400_000

function dataFolder(context: TestContext): string {
  return join(temporaryFolder(context), 'data')
}

function request(projects: Record<string, AccessRight> = { demo: 'write' }, ttlSeconds = 60): TokenRequest {
  return { projects: new Map(Object.entries(projects)), subject: 'ada', ttlSeconds }
}

async function present(access: Access<unknown>, token: string): Promise<Principal | undefined> {
  return access.authenticate({
    headers: new Headers({ authorization: `Bearer ${token}` }),
    method: 'GET',
    path: '/',
    host: undefined,
  })
}

test('only the folder that issued a token accepts it, with its rights', async (context) => {
  const [folder, other] = [dataFolder(context), dataFolder(context)]
  const { token, record } = await issueToken(
    folderCredentials(folder),
    request({ a: 'read', b: 'write', ['__proto__']: 'read' }),
  )
  const principal = await present(await storedAccess(folderCredentials(folder)), token)
  assert.ok(principal)
  assert.deepEqual([principal.subject, principal.tokenId], ['ada', record.jti])
  const rights = ['a', 'b', '__proto__', 'c'].map((id) => [
    claimAuthorize(principal, id, 'read'),
    claimAuthorize(principal, id, 'write'),
  ])
  assert.deepEqual(rights, [
    [true, false],
    [true, true],
    [true, false],
    [false, false],
  ])
  assert.equal(await present(await storedAccess(folderCredentials(other)), token), undefined)
})

test(
  'only the owner can read the key, and the token itself is not stored',
  { skip: process.platform === 'win32' },
  async (context) => {
    const folder = dataFolder(context)
    const { token } = await issueToken(folderCredentials(folder), request())
    const mode = (path: string): number => statSync(join(folder, path)).mode & 0o777
    assert.deepEqual(['', 'access', 'access/tokens', 'access/revoked'].map(mode), [0o700, 0o700, 0o700, 0o700])
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
    assert.equal(files.length, 2, 'the key and what was issued')
    for (const file of files) {
      assert.equal(statSync(file).mode & 0o777, 0o600)
      assert.ok(!readFileSync(file, 'utf8').includes(token.split('.')[2]), 'a signature')
    }
  },
)

test('many concurrent first uses agree on one key and lose no entry', async (context) => {
  const folder = dataFolder(context)
  const issued = await Promise.all(Array.from({ length: 20 }, () => issueToken(folderCredentials(folder), request())))
  const access = await storedAccess(folderCredentials(folder))
  for (const { token } of issued) assert.ok(await present(access, token))
  const listed = await listTokens(folderCredentials(folder))
  assert.deepEqual(listed.map(({ jti }) => jti).sort(), issued.map(({ record }) => record.jti).sort())
  assert.deepEqual(readdirSync(join(folder, 'access')).sort(), ['key', 'revoked', 'tokens'])
})

test('a revocation takes effect soon, even for a token that was just accepted', async (context) => {
  const folder = dataFolder(context)
  const [kept, revoked] = await Promise.all([
    issueToken(folderCredentials(folder), request()),
    issueToken(folderCredentials(folder), request()),
  ])
  const access = await storedAccess(folderCredentials(folder))
  assert.ok(await present(access, revoked.token))
  await revokeToken(folderCredentials(folder), revoked.record.jti)
  await revokeToken(folderCredentials(folder), revoked.record.jti)
  await eventually(async () => (await present(access, revoked.token)) === undefined, 'the revocation is seen')
  assert.ok(await present(access, kept.token))
  assert.deepEqual(
    new Map((await listTokens(folderCredentials(folder))).map(({ jti, state }) => [jti, state])),
    new Map([
      [kept.record.jti, 'valid'],
      [revoked.record.jti, 'revoked'],
    ]),
  )
})

test('unreadable revocations refuse every token', async (context) => {
  const folder = dataFolder(context)
  const { token } = await issueToken(folderCredentials(folder), request())
  const access = await storedAccess(folderCredentials(folder))
  rmSync(join(folder, 'access/revoked'), { recursive: true })
  for (let round = 0; round < 2; round++)
    await assert.rejects(present(access, token), (error: StowageError) => error.code === 'access_unavailable')
})

test('only ids of issued tokens can be revoked', async (context) => {
  const folder = dataFolder(context)
  await issueToken(folderCredentials(folder), request())
  for (const jti of ['', 'x', '../key', '0'.repeat(32), '0'.repeat(31), `${'0'.repeat(32)}\n`]) {
    await assert.rejects(
      revokeToken(folderCredentials(folder), jti),
      (error: StowageError) => error.code === 'not_found',
      JSON.stringify(jti),
    )
  }
  assert.deepEqual(readdirSync(join(folder, 'access/revoked')), [])
})

test('tokens expire to the second, and the next issue removes entries that expired long ago', async (context) => {
  const folder = dataFolder(context)
  let nowMs = Date.UTC(2030, 0, 1)
  const clock = { now: () => nowMs }
  const { token, record } = await issueToken(folderCredentials(folder), request({ demo: 'read' }, 60), clock)
  await revokeToken(folderCredentials(folder), record.jti)
  const second = await issueToken(folderCredentials(folder), request({ demo: 'read' }, 60), clock)
  assert.equal(decodeJwt(token).exp, nowMs / 1_000 + 60)
  assert.deepEqual([record.issuedAt, record.expiresAt], ['2030-01-01T00:00:00.000Z', '2030-01-01T00:01:00.000Z'])
  const access = await storedAccess(folderCredentials(folder), { clock })
  nowMs += 59_999
  assert.ok(await present(access, second.token))
  nowMs += 1
  assert.equal(await present(access, second.token), undefined)
  assert.deepEqual((await listTokens(folderCredentials(folder), clock)).map(({ state }) => state).sort(), [
    'expired',
    'revoked',
  ])
  nowMs += 31 * DAY_MS
  const third = await issueToken(folderCredentials(folder), request(), clock)
  assert.deepEqual(
    (await listTokens(folderCredentials(folder), clock)).map(({ jti }) => jti),
    [third.record.jti],
  )
  assert.deepEqual(readdirSync(join(folder, 'access/revoked')), [])
})

test('invalid token requests are refused', async (context) => {
  const folder = dataFolder(context)
  const many = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [`a project with a long name ${index}`, 'read' as const]),
  )
  const wrong: readonly (readonly [Partial<TokenRequest>, string])[] = [
    [{ projects: new Map() }, 'invalid_request'],
    [request({ '': 'read' }), 'invalid_id'],
    [request({ 'a\nb': 'read' }), 'invalid_id'],
    [request({ ['x'.repeat(129)]: 'read' }), 'invalid_id'],
    [request(many), 'invalid_request'],
    [{ ttlSeconds: 0 }, 'invalid_request'],
    [{ ttlSeconds: 1.5 }, 'invalid_request'],
    [{ ttlSeconds: 4e8 }, 'invalid_request'],
    [{ subject: 'a\nb' }, 'invalid_request'],
    [{ subject: 'x'.repeat(257) }, 'invalid_request'],
    [{ subject: '\ud800' }, 'invalid_request'],
  ]
  for (const [change, code] of wrong) {
    await assert.rejects(
      issueToken(folderCredentials(folder), { ...request(), ...change }),
      (error: StowageError) => error.code === code,
      JSON.stringify(change).slice(0, 80),
    )
  }
  assert.deepEqual(await listTokens(folderCredentials(folder)), [])
})

test('a damaged key is an error and never a weaker key', async (context) => {
  const folder = dataFolder(context)
  await issueToken(folderCredentials(folder), request())
  const path = join(folder, 'access/key')
  const whole = readFileSync(path, 'utf8')
  assert.match(whole, /^[0-9a-f]{64}\n[0-9a-f]{8}\n$/)
  assert.deepEqual(await damagedFiles(folder), [])
  const otherDigit = (whole[5] === '0' ? '1' : '0') + whole.slice(6)
  for (const text of [
    '',
    '00\n',
    '0'.repeat(64),
    `${'0'.repeat(63)}g\n`,
    `${whole}\n`,
    `${whole.slice(0, 5)}${otherDigit}`,
    seal('0'.repeat(63)),
  ]) {
    writeFileSync(path, text)
    await assert.rejects(
      storedAccess(folderCredentials(folder)),
      (error: StowageError) => error.code === 'corrupt_data' && error.message.includes(path),
    )
    await assert.rejects(
      issueToken(folderCredentials(folder), request()),
      (error: StowageError) => error.code === 'corrupt_data',
    )
    assert.equal((await damagedFiles(folder)).length, 1)
  }
})

test('any flipped bit in a token record is an error', async (context) => {
  const folder = dataFolder(context)
  const { record } = await issueToken(folderCredentials(folder), request())
  const path = join(folder, 'access/tokens', record.jti)
  const whole = readFileSync(path)
  for (const at of whole.keys()) {
    const flipped = Buffer.from(whole)
    flipped[at] ^= 1 << (at % 8)
    writeFileSync(path, flipped)
    assert.equal((await damagedFiles(folder)).length, 1)
    if (at % 20 === 0)
      await assert.rejects(
        listTokens(folderCredentials(folder)),
        (error: StowageError) => error.code === 'corrupt_data' && error.message.includes(path),
      )
  }
})

async function damagedFiles(folder: string): Promise<readonly string[]> {
  const messages: string[] = []
  for await (const message of damagedCredentials(folderCredentials(folder), [tokenKeyRing(folderCredentials(folder))]))
    messages.push(message)
  return messages
}
