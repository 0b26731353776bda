import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { s3Blobs } from '../../adapters/s3/index.ts'
import { abortLeftovers } from '../../adapters/s3/uploads.ts'
import { MB } from '../../src/limits.ts'
import type { BlobStore } from '../../src/storage/backend.ts'
import { isStorageError } from '../../src/storage/storage-errors.ts'
import { type Fault, faultyProxy } from './faulty-proxy.ts'
import { s3TestClient, startS3Engine } from './s3-engine.ts'

const KILL_ROUNDS = Number(process.env.STOWAGE_KILL_ROUNDS ?? '6')
const engine = await startS3Engine({ after })
const PREFIX = 'faults/'
const large: Buffer = randomBytes(9 * MB)
const small: Buffer = randomBytes(1_000)

/** Decides about the requests of the case at hand, which are numbered from 0. */
const planned: { faultAt: (number: number) => Fault | undefined; seen: number } = { faultAt: () => undefined, seen: 0 }
const { url: endpoint } = await faultyProxy({ after }, engine.port, ({ method, url }) => {
  // The sweep of leftovers goes on beside the case.
  const isSweep = method === 'GET' && url?.includes('uploads=') === true
  return isSweep ? undefined : planned.faultAt(planned.seen++)
})
const blobs: BlobStore = s3Blobs({ ...engine.options, endpoint, prefix: PREFIX })
after(() => blobs.close())

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

// The first put checks the store, which takes requests of its own.
await blobs.put('first', once(small))

async function assertHolds(name: string, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += 4 * MB) {
    const end = Math.min(bytes.length, at + 4 * MB)
    assert.ok(Buffer.from(bytes.subarray(at, end)).equals(await blobs.read(name, at, end)), `${name} from byte ${at}`)
  }
}

/** The keys of multipart uploads that are neither completed nor aborted. */
async function openUploads(): Promise<string[]> {
  const client = s3TestClient(engine.options)
  const { body } = await client.send({ method: 'GET', query: { uploads: '', prefix: PREFIX } })
  client.close()
  return [
    ...Buffer.from(body)
      .toString()
      .matchAll(/<Upload>.*?<Key>(.*?)<\/Key>/gs),
  ].map(([, key]) => key)
}

/** How many requests `work` takes without a fault. */
async function requestsOf(work: () => Promise<unknown>): Promise<number> {
  Object.assign(planned, { faultAt: () => undefined, seen: 0 })
  await work()
  return planned.seen
}

const CUTS: Readonly<Record<string, Fault>> = {
  'halfway through': { midway: async () => undefined },
  'after the answer': { answered: async () => undefined },
}

for (const [moment, fault] of Object.entries(CUTS))
  test(`a connection that is cut ${moment} any one request changes no result`, async () => {
    const tag = moment.length
    const requests = await requestsOf(() => blobs.put(`${tag}/large`, once(large)))
    assert.equal(requests, 4, 'the beginning of the upload, two parts, the completion')
    for (let at = 0; at < requests; at++) {
      const name = `${tag}/large-${at}`
      Object.assign(planned, { faultAt: (number: number) => (number === at ? fault : undefined), seen: 0 })
      assert.deepEqual(await blobs.put(name, once(large)), { sizeBytes: large.length })
      await assertHolds(name, large)
      await assert.rejects(blobs.put(name, once(small)), (error) => isStorageError(error, 'BlobExistsError'))
    }
    Object.assign(planned, { faultAt: (number: number) => (number % 2 === 0 ? fault : undefined), seen: 0 })
    assert.deepEqual(await blobs.put(`${tag}/small`, once(small)), { sizeBytes: small.length })
    await assertHolds(`${tag}/small`, small)
    const names: string[] = []
    for await (const batch of blobs.list(`${tag}/`)) names.push(...batch.map(({ name }) => name))
    assert.equal(names.length, requests + 2)
    await blobs.remove(names)
    for await (const batch of blobs.list(`${tag}/`)) assert.deepEqual(batch, [])
    Object.assign(planned, { faultAt: () => undefined, seen: 0 })
    // The id of an upload whose beginning was not answered is known to nobody: the sweep aborts it a day later.
    assert.ok(
      (await openUploads()).every((key) => key === `${PREFIX}${tag}/large-0.b`),
      'no parts are left',
    )
  })

test('a kill of the engine in any request leaves a blob whole or absent, and no parts', async () => {
  const revive = async (): Promise<void> => {
    await engine.kill()
    await engine.start()
  }
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const name = `kill/${round}`
    // The parts and the completion in turn: the beginning of an upload has no parts.
    const at = 1 + (round % 3)
    const fault: Fault = round % 2 === 0 ? { midway: revive } : { answered: revive }
    Object.assign(planned, { faultAt: (number: number) => (number === at ? fault : undefined), seen: 0 })
    const isPut = await blobs.put(name, once(large)).then(
      () => true,
      () => false,
    )
    Object.assign(planned, { faultAt: () => undefined, seen: 0 })
    const found = await blobs.read(name, 0, 1).then(
      () => true,
      (error: unknown) => {
        assert.ok(isStorageError(error, 'BlobNotFoundError'))
        return false
      },
    )
    assert.ok(found || !isPut, `round ${round}: an acknowledged blob is gone`)
    if (found) await assertHolds(name, large)
    assert.deepEqual(
      (await openUploads()).filter((key) => key.includes('/kill/')),
      [],
      `round ${round}`,
    )
  }
})

test('the sweep aborts an upload whose writer died more than a day ago, and no other', async (t) => {
  if (process.env.STOWAGE_TEST_S3 === 'minio') return t.skip('MinIO lists no uploads below a prefix')
  const options = { ...engine.options, prefix: 'left/' }
  const client = s3TestClient(options)
  t.after(() => client.close())
  const key = `${options.prefix}dead.b`
  await client.send({ method: 'POST', key, query: { uploads: '' } })
  const signal = new AbortController().signal
  assert.equal(await abortLeftovers(client, signal), 0)
  const { url } = await faultyProxy(t, engine.port, () => ({ laterMs: 25 * 60 * 60_000 }))
  const later = s3TestClient({ ...options, endpoint: url })
  t.after(() => later.close())
  assert.equal(await abortLeftovers(later, signal), 1)
  const { body } = await client.send({ method: 'GET', query: { uploads: '', prefix: options.prefix } })
  assert.ok(!Buffer.from(body).toString().includes(key))
})

test('while the engine is away, calls end as storage_unavailable, and go on when it is back', async () => {
  Object.assign(planned, { faultAt: () => undefined, seen: 0 })
  await blobs.put('away/one', once(small))
  await engine.kill()
  await assert.rejects(blobs.read('away/one', 0, 10), { code: 'storage_unavailable' })
  await assert.rejects(blobs.put('away/two', once(small)), { code: 'storage_unavailable' })
  await engine.start()
  await assertHolds('away/one', small)
  assert.deepEqual(await blobs.put('away/two', once(small)), { sizeBytes: small.length })
})
