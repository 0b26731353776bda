import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { readFile } from 'node:fs/promises'
import { stowage } from '../cli/command.ts'
import { writeModel } from '../cli/model-file.ts'
import { temporaryFolder } from '../support/folder.ts'
import { eventually } from '../support/patience.ts'
import { startBalancer, startCluster } from './cluster.ts'

const SERVERS = 3
const OBJECTS = 3_000
const BROWSER = {
  accept: 'text/html',
  'sec-fetch-site': 'none',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}

async function sorted(path: string): Promise<readonly string[]> {
  return (await readFile(path, 'utf8')).split('\n').sort()
}

/** The cookie of a browser that follows the link to the balancer. No server takes the link again. */
async function signedIn(balancer: string, link: string): Promise<string> {
  const { pathname, search, searchParams } = new URL(link)
  const body = new URLSearchParams({ code: searchParams.get('code') ?? '' })
  const send = () =>
    fetch(`${balancer}${pathname}`, { method: 'POST', body, headers: { origin: balancer }, redirect: 'manual' })
  assert.match(await (await fetch(`${balancer}${pathname}${search}`, { headers: BROWSER })).text(), /works once/)
  const answer = await send()
  assert.equal(answer.status, 303)
  for (let again = 0; again < SERVERS; again++) assert.notEqual((await send()).status, 303)
  return answer.headers.getSetCookie()[0].split(';')[0]
}

test('three servers over PostgreSQL and S3 are one service', async (t) => {
  const cluster = await startCluster(t, SERVERS)
  const { servers, token, place, env } = cluster
  const folder = temporaryFolder(t)
  const model = join(folder, 'model.txt')
  const root = await writeModel(model, { objects: OBJECTS })
  const at = (url: string): readonly string[] => ['--url', url, '--project', 'house', '--quiet']
  const withToken = { ...env, STOWAGE_TOKEN: token }

  await t.test('what one server acknowledged, every other serves', async () => {
    const up = await stowage(['upload', model, ...at(servers[0].url)], withToken)
    assert.equal(up.code, 0, up.stderr)
    for (const { url } of servers.slice(1)) {
      const copy = join(folder, `copy-${new URL(url).port}.txt`)
      const down = await stowage(['download', root, ...at(url), '-o', copy], withToken)
      assert.equal(down.code, 0, down.stderr)
      assert.deepEqual(await sorted(copy), await sorted(model))
    }
  })

  const url = await startBalancer(t, cluster)
  await t.test('a whole model goes up and down through a balancer that sends each request elsewhere', async () => {
    const other = join(folder, 'other.txt')
    const otherRoot = await writeModel(other, { objects: OBJECTS, seed: 7 })
    const up = await stowage(['upload', other, ...at(url), '--batch-bytes', '100000'], withToken)
    assert.equal(up.code, 0, up.stderr)
    for (let round = 0; round < SERVERS; round++) {
      const copy = join(folder, `balanced-${round}.txt`)
      const down = await stowage(['download', otherRoot, ...at(url), '-o', copy], withToken)
      assert.equal(down.code, 0, down.stderr)
      assert.deepEqual(await sorted(copy), await sorted(other))
    }
  })

  await t.test(
    'a link that one server made signs in on any other, and the pages of all know who is signed in',
    async () => {
      for (const { signInUrl = '' } of servers) {
        const cookie = await signedIn(url, signInUrl)
        for (const page of [...servers.map((server) => server.url), ...Array<string>(SERVERS).fill(url)]) {
          const answer = await fetch(`${page}/web/projects/house`, {
            headers: { ...BROWSER, cookie },
            redirect: 'manual',
          })
          assert.deepEqual([answer.status, (await answer.text()).includes('house')], [200, true], page)
        }
      }
      const nobody = await fetch(`${url}/web/projects/house`, { headers: BROWSER, redirect: 'manual' })
      assert.notEqual(nobody.status, 200)
    },
  )

  await t.test('tokens are issued and revoked for all servers at once', async () => {
    const issued = await stowage(['token', ...place, '--project', 'house', '--access', 'read', '--json'], env)
    assert.equal(issued.code, 0, issued.stderr)
    const { token: other, jti } = JSON.parse(issued.stdout) as { readonly token: string; readonly jti: string }
    const statusAt = async (url: string): Promise<number> =>
      (await fetch(`${url}/objects/house/${root}/single`, { headers: { Authorization: `Bearer ${other}` } })).status
    for (const { url } of servers) assert.equal(await statusAt(url), 200)
    assert.equal((await stowage(['token', 'revoke', jti, ...place], env)).code, 0)
    for (const { url } of servers) await eventually(async () => (await statusAt(url)) === 401, 'the token is refused')
  })

  await t.test('keys rotate on a running cluster', async () => {
    const rotated = await stowage(['key', 'rotate', ...place, '--json'], env)
    assert.equal(rotated.code, 0, rotated.stderr)
    const issued = await stowage(['token', ...place, '--project', 'house', '--access', 'read'], env)
    const headers = { Authorization: `Bearer ${issued.stdout.trim()}` }
    for (const { url } of servers)
      await eventually(
        async () => (await fetch(`${url}/objects/house/${root}/single`, { headers })).status === 200,
        'a token of the new key is accepted',
      )
  })

  await t.test('a project is listed and removed beside the servers', async () => {
    const listed = await stowage(['project', 'list', ...place], env)
    assert.deepEqual(listed.stdout.trim().split('\n'), ['house'], listed.stderr)
    const removed = await stowage(['project', 'remove', 'house', '--yes', ...place], env)
    assert.equal(removed.code, 0, removed.stderr)
    for (const { url } of servers) {
      const headers = { Authorization: `Bearer ${token}` }
      assert.equal((await fetch(`${url}/objects/house/${root}/single`, { headers })).status, 404)
    }
  })

  await t.test(
    'servers say that they are not ready while PostgreSQL or the S3 store is away, and live on',
    async () => {
      const statusOf = async (path: string): Promise<ReadonlySet<number>> =>
        new Set(await Promise.all(servers.map(async ({ url }) => (await fetch(`${url}${path}`)).status)))
      const become = (expected: number, when: string): Promise<void> =>
        eventually(
          async () => isDeepStrictEqual(await statusOf('/healthz'), new Set([expected])),
          `${expected} ${when}`,
        )
      await become(200, 'at first')
      for (const [name, stop, start] of [
        ['PostgreSQL', () => cluster.postgres.stop(), () => cluster.postgres.restart()],
        ['the S3 store', () => cluster.s3.kill(), () => cluster.s3.start()],
      ] as const) {
        await stop()
        const sinceMs = performance.now()
        await become(503, `without ${name}`)
        t.diagnostic(`without ${name}, all servers answered 503 after ${Math.round(performance.now() - sinceMs)} ms`)
        assert.deepEqual(await statusOf('/healthz/live'), new Set([200]))
        await start()
        await become(200, `with ${name}`)
      }
    },
  )

  await t.test('a server with another sealing key does not start, and one without says so', async () => {
    const other = await stowage(['serve', '--port', '0', ...place], { ...env, STOWAGE_SEALING_KEY: 'f'.repeat(64) })
    assert.notEqual(other.code, 0)
    assert.match(other.stderr, /sealed with another key/)
    const none = await stowage(['serve', '--port', '0', ...place], { ...env, STOWAGE_SEALING_KEY: '' })
    assert.notEqual(none.code, 0)
    assert.match(none.stderr, /the sealing key is missing.*openssl rand -hex 32/)
  })
})
