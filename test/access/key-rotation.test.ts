import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { chownSync, readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { type Access, type Principal } from '../../src/access/access.ts'
import { tokenKeyRing } from '../../src/access/token-keys.ts'
import { storedAccess, issueToken, listTokens } from '../../src/access/token-store.ts'
import {
  damagedKeys,
  heldKeys,
  isValidAt,
  readKeys,
  removeEndedKeys,
  rotateKey,
} from '../../src/credentials/key-ring.ts'
import type { StowageError } from '../../src/errors.ts'
import { eventually } from '../support/patience.ts'
import { temporaryFolder } from '../support/folder.ts'

const HOUR_MS = 3_600_000

function dataFolder(context: TestContext): string {
  const folder = temporaryFolder(context)
  return join(folder, 'data')
}

function present(access: Access<unknown>, token: string): Promise<Principal | undefined> {
  const headers = new Headers({ authorization: `Bearer ${token}` })
  return Promise.resolve(access.authenticate({ headers, method: 'GET', path: '/', host: undefined }))
}

async function issued(folder: string, ttlSeconds = 7_200): Promise<string> {
  return (
    await issueToken(folderCredentials(folder), { projects: new Map([['demo', 'read']]), subject: 'ada', ttlSeconds })
  ).token
}

function isoIn(ms: number): string {
  return new Date(Date.now() + ms).toISOString()
}

test('a running service accepts a new key, and accepts tokens of the old one until its end date', async (context) => {
  const folder = dataFolder(context)
  let addedMs = 0
  const access = await storedAccess(folderCredentials(folder), { clock: { now: () => Date.now() + addedMs } })
  const before = await issued(folder)
  assert.ok(await present(access, before))
  const [current, previous] = await rotateKey(tokenKeyRing(folderCredentials(folder)), isoIn(HOUR_MS))
  assert.notEqual(current.id, previous.id)
  const after = await issued(folder)
  await eventually(async () => (await present(access, after)) !== undefined, 'the new key is taken up')
  assert.ok(await present(access, before), 'the old token holds')
  assert.ok(await present(await storedAccess(folderCredentials(folder)), before), 'over a restart, too')
  addedMs = HOUR_MS + 1_000
  assert.equal(await present(access, before), undefined)
  assert.ok(await present(access, after))
})

test('the token list shows that a token ends with its key', async (context) => {
  const folder = dataFolder(context)
  await issued(folder, 60)
  await issued(folder, 7_200)
  const end = isoIn(HOUR_MS)
  await rotateKey(tokenKeyRing(folderCredentials(folder)), end)
  await issued(folder, 7_200)
  const listed = await listTokens(folderCredentials(folder))
  assert.deepEqual(
    listed.map(({ state }) => state),
    ['valid', 'valid', 'valid'],
  )
  assert.equal(listed.filter(({ expiresAt }) => expiresAt === end).length, 1)
  const later = { now: () => Date.now() + HOUR_MS + 1_000 }
  assert.deepEqual((await listTokens(folderCredentials(folder), later)).map(({ state }) => state).sort(), [
    'expired',
    'expired',
    'valid',
  ])
})

test('a later rotation never lengthens the life of an older key', async (context) => {
  const ring = tokenKeyRing(folderCredentials(dataFolder(context)))
  const [soon, late] = [isoIn(HOUR_MS), isoIn(9 * HOUR_MS)]
  await rotateKey(ring, soon)
  const lengthened = await rotateKey(ring, late)
  assert.deepEqual(
    lengthened.map(({ validUntil }) => validUntil),
    [undefined, late, soon],
  )
  const now = new Date().toISOString()
  const ended = await rotateKey(ring, now)
  assert.deepEqual(
    ended.map((key) => isValidAt(key, Date.now())),
    [true, false, false, false],
  )
  await removeEndedKeys(ring)
  assert.deepEqual(
    (await heldKeys(ring)).map(({ id }) => id),
    [ended[0].id],
  )
  assert.deepEqual(await readKeys(ring), await heldKeys(ring), 'no first key is made while there is another')
})

test('of many concurrent rotations, the losing ones report it and change nothing', async (context) => {
  const ring = tokenKeyRing(folderCredentials(dataFolder(context)))
  await readKeys(ring)
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => rotateKey(ring, isoIn(HOUR_MS))))
  const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
  assert.ok(lost.every(({ reason }) => (reason as StowageError).code === 'conflict'))
  assert.equal((await heldKeys(ring)).length, 1 + outcomes.length - lost.length)
  for (const name of readdirSync(join(ring.credentials.place, 'access')))
    assert.equal(statSync(join(ring.credentials.place, 'access', name)).mode & 0o077, 0, name)
})

test(
  'keys of another user stay unchanged, because their server could not read a new one',
  { skip: process.getuid?.() !== 0 && 'only root can give a folder away' },
  async (context) => {
    const folder = dataFolder(context)
    const ring = tokenKeyRing(folderCredentials(folder))
    const before = await readKeys(ring)
    chownSync(join(folder, 'access'), 4_711, 4_711)
    await assert.rejects(rotateKey(ring, isoIn(HOUR_MS)), {
      code: 'invalid_request',
      message: /belong to the user with the id 4711; run the command as that user/,
    })
    assert.deepEqual(await heldKeys(ring), before)
  },
)

test('a key ring holds a bounded number of keys', async (context) => {
  const ring = tokenKeyRing(folderCredentials(dataFolder(context)))
  for (let count = 1; count < 16; count++) await rotateKey(ring, isoIn(HOUR_MS))
  await assert.rejects(rotateKey(ring, isoIn(HOUR_MS)), { code: 'conflict', message: /key has 16 keys/ })
  const access = await storedAccess(ring.credentials)
  assert.ok(await present(access, await issued(ring.credentials.place)))
})

test('unreadable keys refuse every token, and damage of any key is detected', async (context) => {
  const folder = dataFolder(context)
  const ring = tokenKeyRing(folderCredentials(folder))
  await rotateKey(ring, isoIn(HOUR_MS))
  const token = await issued(folder)
  const path = join(folder, 'access/key.2')
  const whole = readFileSync(path, 'utf8')
  const access = await storedAccess(folderCredentials(folder))
  unlinkSync(path)
  writeFileSync(path, whole.replace('key', 'kex'))
  await assert.rejects(present(access, token), (error: StowageError) => error.code === 'access_unavailable')
  const messages: string[] = []
  for await (const message of damagedKeys(ring)) messages.push(message)
  assert.equal(messages.length, 1)
  assert.match(messages[0], /key\.2 is not a key/)
  writeFileSync(path, whole)
  assert.ok(await present(access, token))
})
