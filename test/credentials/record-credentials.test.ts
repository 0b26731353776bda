import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { type Access, type Principal } from '../../src/access/access.ts'
import { tokenKeyRing } from '../../src/access/token-keys.ts'
import { damagedCredentials, issueToken, listTokens, revokeToken, storedAccess } from '../../src/access/token-store.ts'
import { storedSecretKeys } from '../../src/automation-server/secret-keys.ts'
import { rotateKey } from '../../src/credentials/key-ring.ts'
import { recordCredentials } from '../../src/credentials/record-credentials.ts'
import { SealedRecords } from '../../src/credentials/sealed-records.ts'
import { SignInCodes } from '../../src/pages/server/sign-in-codes.ts'
import { storedSessionKeys } from '../../src/pages/session-keys.ts'
import { storedSignInCodes } from '../../src/pages/stored-codes.ts'
import type { RecordStore } from '../../src/storage/backend.ts'
import { eventually } from '../support/patience.ts'

const SEALING_KEY = new Uint8Array(32).fill(7)
const READER = { projects: new Map([['demo', 'read']] as const), subject: 'ada', ttlSeconds: 3_600 }

function credentialsIn(records: RecordStore, sealingKey = SEALING_KEY): ReturnType<typeof recordCredentials> {
  return recordCredentials(records, { sealingKey, place: 'postgres://db/stowage' })
}

function present(access: Access<unknown>, token: string): Promise<Principal | undefined> {
  const headers = new Headers({ authorization: `Bearer ${token}` })
  return Promise.resolve(access.authenticate({ headers, method: 'GET', path: '/', host: undefined }))
}

async function everything(records: RecordStore): Promise<{ key: Uint8Array; value: Uint8Array }[]> {
  const all = []
  for await (const entries of records.range({ gte: Uint8Array.of(0), lt: Uint8Array.of(255) })) all.push(...entries)
  return all
}

test('any server of one storage accepts a token that another issued, until any of them revokes it', async () => {
  const { records } = memoryBackend()
  const [one, two] = [credentialsIn(records), credentialsIn(records)]
  const accesses = [await storedAccess(one), await storedAccess(two)]
  const { token, record } = await issueToken(one, READER)
  for (const access of accesses) assert.equal((await present(access, token))?.subject, 'ada')
  await revokeToken(two, record.jti)
  for (const access of accesses)
    await eventually(async () => (await present(access, token)) === undefined, 'the token is refused everywhere')
  assert.deepEqual(
    (await listTokens(one)).map(({ jti, state }) => [jti, state]),
    [[record.jti, 'revoked']],
  )
})

test('servers that start at once agree on one key of each purpose, and use a rotated one', async () => {
  const { records } = memoryBackend()
  const servers = Array.from({ length: 8 }, () => credentialsIn(records))
  const sessionKeys = await Promise.all(servers.map((server) => storedSessionKeys(server)))
  for (const keys of sessionKeys) assert.deepEqual(keys, sessionKeys[0])
  const secretKeys = await Promise.all(servers.map((server) => storedSecretKeys(server).read()))
  for (const keys of secretKeys) assert.deepEqual(keys, secretKeys[0])
  const access = await storedAccess(servers[0])
  await rotateKey(tokenKeyRing(servers[1]), new Date(Date.now() + 3_600_000).toISOString())
  const { token } = await issueToken(servers[2], READER)
  await eventually(async () => (await present(access, token)) !== undefined, 'the new key is taken up')
})

test('of several creations of one name one succeeds, and all find its text', async () => {
  const { records } = memoryBackend()
  const servers = Array.from({ length: 4 }, () => credentialsIn(records))
  const created = await Promise.all(servers.map((server, index) => server.create('keys', 'key', `text ${index}`)))
  assert.equal(created.filter(Boolean).length, 1)
  for (const server of servers) assert.equal(await server.read('keys', 'key'), `text ${created.indexOf(true)}`)
})

test('the records show no key and no token, and another sealing key opens nothing', async () => {
  const { records } = memoryBackend()
  const credentials = credentialsIn(records)
  await issueToken(credentials, READER)
  const stored = Buffer.concat((await everything(records)).map(({ value }) => value)).toString('latin1')
  assert.doesNotMatch(stored, /ada|demo/)
  const other = credentialsIn(records, new Uint8Array(32).fill(8))
  await assert.rejects(storedAccess(other), { code: 'corrupt_data', message: /another key/ })
  await assert.rejects(listTokens(other), { code: 'corrupt_data', message: /keys\/key in postgres:\/\/db/ })
})

test('a value that was changed or moved to another name is refused and named', async () => {
  const { records } = memoryBackend()
  const credentials = credentialsIn(records)
  await issueToken(credentials, READER)
  const [first, second] = [await issueToken(credentials, READER), await issueToken(credentials, READER)].map(
    ({ record }) => record.jti,
  )
  const entries = await everything(records)
  const of = (jti: string): { key: Uint8Array; value: Uint8Array } => {
    const found = entries.find(({ key }) => Buffer.from(key).includes(jti))
    assert.ok(found)
    return found
  }
  await records.commit({ put: [{ key: of(first).key, value: of(second).value }] })
  const messages: string[] = []
  for await (const message of damagedCredentials(credentials, [])) messages.push(message)
  assert.equal(messages.length, 1)
  assert.match(messages[0], new RegExp(`tokens/${first} .* has changed`))
})

test('a sealing key of another length is refused', () => {
  const { records } = memoryBackend()
  assert.throws(() => credentialsIn(records, new Uint8Array(16)), {
    name: 'RangeError',
    message: 'the sealing key has 16 bytes; it must have 32',
  })
})

test('a sign-in code works once, on any server, within five minutes', async () => {
  const { records } = memoryBackend()
  let nowMs = Date.now()
  const servers = [1, 2, 3].map(() => {
    const sealed = new SealedRecords(records, { sealingKey: SEALING_KEY, place: 'postgres://db/stowage' })
    return new SignInCodes({ now: () => nowMs }, storedSignInCodes(sealed))
  })
  const code = await servers[0].issue('the token')
  const redeemed = await Promise.all(servers.map((server) => server.redeem(code)))
  assert.deepEqual(
    redeemed.filter((token) => token !== undefined),
    ['the token'],
  )
  const late = await servers[1].issue('late')
  nowMs += 300_001
  assert.equal(await servers[2].redeem(late), undefined)
  await servers[0].issue('another')
  await servers[0].issue('yet another')
  nowMs += 300_001
  await servers[1].issue('the last')
  assert.equal((await everything(records)).length, 1, 'codes that have ended are removed')
})
