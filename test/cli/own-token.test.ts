import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Access, claimAuthorize, type Principal } from '../../src/access/access.ts'
import { issueToken, listTokens, storedAccess } from '../../src/access/token-store.ts'
import { withReadingToken } from '../../src/cli/client/own-token.ts'
import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import { temporaryFolder } from '../support/folder.ts'

const MINUTE_MS = 60_000

test('the token of a command may read, is renewed, and nothing of it is left', async (t) => {
  const folder = temporaryFolder(t)
  const credentials = folderCredentials(folder)
  let nowMs = Date.UTC(2030, 0, 1)
  const clock = { now: () => nowMs }
  const principalWith = async (access: Access<unknown>, token: string): Promise<Principal | undefined> =>
    access.authenticate({
      headers: new Headers({ authorization: `Bearer ${token}` }),
      method: 'GET',
      path: '/',
      host: undefined,
    })
  const access = await storedAccess(credentials, { clock })
  const issued = new Set<string>()
  await withReadingToken(
    credentials,
    'test',
    async (token) => {
      for (let minute = 0; minute < 60; minute++) {
        const [now, again] = await Promise.all([token(), token()])
        assert.equal(again, now)
        issued.add(now)
        const principal = await principalWith(access, now)
        assert.ok(principal, `refused after ${minute} minutes`)
        assert.equal(principal.readsSealedSecrets, true)
        const rights = (['read', 'write'] as const).map((right) => claimAuthorize(principal, 'any project', right))
        assert.deepEqual(rights, [true, false])
        nowMs += MINUTE_MS
      }
    },
    clock,
  )
  assert.ok(issued.size > 5 && issued.size < 20, `${issued.size} tokens`)
  const after = await storedAccess(credentials, { clock })
  for (const token of issued) assert.equal(await principalWith(after, token), undefined)
  nowMs += 120 * MINUTE_MS
  const other = await issueToken(credentials, { projects: new Map([['demo', 'read']]), ttlSeconds: 60 }, clock)
  assert.deepEqual(
    (await listTokens(credentials, clock)).map(({ jti }) => jti),
    [other.record.jti],
  )
  assert.deepEqual(readdirSync(join(folder, 'access', 'revoked')), [])
})

test('the token of a command that fails is revoked', async (t) => {
  const credentials = folderCredentials(temporaryFolder(t))
  const failing = withReadingToken(credentials, 'test', async (token) => {
    await token()
    throw new Error('the work failed')
  })
  await assert.rejects(failing, /the work failed/)
  assert.deepEqual(
    (await listTokens(credentials)).map(({ state, projects }) => ({ state, projects })),
    [{ state: 'revoked', projects: { '*': 'read' } }],
  )
})
