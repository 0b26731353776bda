import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from 'pg'
import { s3Blobs } from '../../adapters/s3/index.ts'
import { createClient, type Project } from '../../src/client/index.ts'
import { buildModel } from '../support/model.ts'
import { startServer, stowage } from '../cli/command.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type ClusterServer, startOne, startStorage } from './cluster.ts'
import { s3TestClient } from './s3-engine.ts'

/* A folder becomes a cluster of three servers; its storage is checked, damaged and rebuilt beside them. */

const SERVERS = 3
const OBJECTS = 1_000
const PREFIX = 'models/'

const states = [0, 1, 2].map((revision) => buildModel({ objects: OBJECTS, revision, changed: revision === 0 ? 0 : 50 }))

/** A digest of each version as a server sends it: of the lines, sorted, because their order depends on the packs. */
async function versionsAt(url: string, token: string, of = states): Promise<readonly string[]> {
  const headers = { Accept: 'text/plain', Authorization: `Bearer ${token}` }
  return Promise.all(
    of.map(async ({ rootId }) => {
      const answer = await fetch(`${url}/objects/house/${rootId}`, { headers })
      assert.equal(answer.status, 200, await answer.clone().text())
      return hash('sha256', (await answer.text()).split('\n').sort().join('\n'))
    }),
  )
}

function houseAt(url: string, token: string): Project {
  return createClient({ url, token }).project('house')
}

/** Writes to each server in turn until `until` settles, and tells what was answered. */
async function writeUntil(
  until: Promise<unknown>,
  servers: readonly ClusterServer[],
  token: string,
): Promise<ReadonlyMap<string, number>> {
  const answers = new Map<string, number>()
  let isOver = false
  const ended = until.finally(() => (isOver = true))
  for (let write = 0; !isOver; write++) {
    const { url } = servers[write % servers.length]
    const body = new FormData()
    body.append('batch', new Blob([JSON.stringify([{ id: `written-${write}` }])], { type: 'application/json' }))
    const headers = { Authorization: `Bearer ${token}` }
    const answer = await fetch(`${url}/objects/other`, { method: 'POST', headers, body })
    const said = answer.ok ? 'taken' : ((await answer.json()) as { readonly code: string }).code
    if (answer.status === 503) assert.ok(answer.headers.get('Retry-After'), said)
    answers.set(said, (answers.get(said) ?? 0) + 1)
  }
  await ended
  return answers
}

test('a folder becomes a cluster, whose storage is checked, damaged and rebuilt beside its servers', async (t) => {
  const storage = await startStorage(t)
  const { postgres, s3, place, env } = storage
  const folder = join(temporaryFolder(t), 'data')
  const toCluster = ['--to-records', place[1], '--to-blobs', place[3]]
  const copy = () => stowage(['copy', '--from', folder, ...toCluster, '--json', '--quiet'], env)
  const check = () => stowage(['check', ...place], env)

  const issued = await stowage(['token', '--data', folder, '--project', '*', '--access', 'write'])
  const token = issued.stdout.trim()
  const old = await startServer(t, ['--data', folder, '--json'])
  const { url } = JSON.parse(old.line) as { readonly url: string }
  const house = houseAt(url, token)
  const { id: modelId } = await house.models.create({ name: 'House' })
  for (const { objects, rootId } of states) {
    await house.upload(objects.map(({ id, json }) => ({ id, json })))
    await house.versions.create(modelId, { rootObjectId: rootId, message: rootId })
  }
  const expected = await versionsAt(url, token)
  const { items: versions } = await house.versions.list(modelId)
  const held = await copy()
  assert.equal(held.code, 1)
  assert.match(held.stderr, /a server has the folder open: stop it first/)
  await old.stop()

  const servers: ClusterServer[] = []
  await t.test('the copy is complete, and three servers serve it to the old tokens', async () => {
    const copied = await copy()
    assert.equal(copied.code, 0, copied.stderr)
    const again = await copy()
    assert.match(again.stderr, /keys or tokens are already in postgres:\/\/.* and s3:\/\//)
    for (let count = 0; count < SERVERS; count++) servers.push(await startOne(t, storage))
    for (const server of servers) {
      assert.deepEqual(await versionsAt(server.url, token), expected)
      assert.deepEqual((await houseAt(server.url, token).versions.list(modelId)).items, versions)
    }
  })

  await t.test('check finds nothing while servers write, and finds a damaged blob', async () => {
    const checking = check()
    const answers = await writeUntil(checking, servers, token)
    assert.deepEqual([...answers.keys()], ['taken'])
    const sound = await checking
    assert.equal(sound.code, 0, sound.stdout + sound.stderr)

    const blobs = s3Blobs({ ...s3.options, prefix: PREFIX })
    let largest = { name: '', sizeBytes: 0 }
    for await (const batch of blobs.list('')) {
      for (const blob of batch) if (blob.sizeBytes > largest.sizeBytes && !blob.name.includes('plan')) largest = blob
    }
    const whole = await blobs.read(largest.name, 0, largest.sizeBytes)
    await blobs.close()
    const client = s3TestClient(s3.options)
    const put = (body: Uint8Array) => client.send({ method: 'PUT', key: `${PREFIX}${largest.name}.b`, body: [body] })
    const damaged = Uint8Array.from(whole)
    damaged[Math.floor(whole.length / 3)] ^= 1
    await put(damaged)
    const found = await check()
    assert.equal(found.code, 4, found.stdout + found.stderr)
    assert.match(found.stdout, new RegExp(`damage: project "house", pack ${largest.name.split('/')[1]}`))
    await put(whole)
    client.close()
  })

  await t.test('reindex holds the servers off, and they go on by themselves', async () => {
    const database = new Client({ connectionString: postgres.url() })
    await database.connect()
    await database.query(`DELETE FROM models.records WHERE get_byte(key, 0) = ascii('o')`)
    await database.end()
    const reindexing = stowage(['reindex', ...place, '--drain', '1s'], env)
    const answers = await writeUntil(reindexing, servers, token)
    const reindexed = await reindexing
    assert.equal(reindexed.code, 0, reindexed.stdout + reindexed.stderr)
    assert.ok((answers.get('maintenance') ?? 0) > 0, JSON.stringify([...answers]))
    for (const server of servers) {
      // The server goes on when it has looked again.
      await houseAt(server.url, token).upload([{ id: 'after' }])
      assert.deepEqual(await versionsAt(server.url, token), expected)
    }
    const sound = await check()
    assert.equal(sound.code, 0, sound.stdout + sound.stderr)
  })

  await t.test('records that were lost are made anew under the id of the bucket', async () => {
    for (const { running } of servers) await running.stop()
    const database = new Client({ connectionString: postgres.url() })
    await database.connect()
    await database.query('DROP SCHEMA models CASCADE')
    await database.end()
    assert.match((await check()).stderr, /do not belong together/)
    const reindexed = await stowage(['reindex', ...place, '--drain', '0'], env)
    assert.equal(reindexed.code, 4, reindexed.stderr)
    assert.match(reindexed.stdout, /took that of the blobs/)
    const server = await startOne(t, storage)
    const fresh = await stowage(['token', ...place, '--project', '*', '--access', 'read'], env)
    // The later versions came in packs so small that they lay inside their records.
    const [first] = await versionsAt(server.url, fresh.stdout.trim(), states.slice(0, 1))
    assert.equal(first, expected[0])
  })
})
