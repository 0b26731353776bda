import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, test, type TestContext } from 'node:test'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { StowageError } from '../../src/errors.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import type { StorageBackend } from '../../src/storage/index.ts'
import { keyBounds } from '../../src/store/records/keys.ts'
import { Lease, LEASE_MS } from '../../src/store/upkeep/lease.ts'
import { eventually } from '../support/patience.ts'
import { assertListed, assertSound, type Made, type Opened, openStore, put, undying } from '../store/support.ts'
import { CaseEngines } from './case-place.ts'
import { CuttingProxy } from './cutting-proxy.ts'
import { type Fault, faultyProxy } from './faulty-proxy.ts'
import { startToxiproxy } from './toxiproxy.ts'

/* A server whose way to PostgreSQL or to the S3 store breaks, is slow or leads nowhere. */

const PROJECT = 'demo'
/** Every nth message and request is cut; the long run cuts all. */
const CUT_EVERY = Number(process.env.STOWAGE_CUT_EVERY ?? '3')
const SLOW_UPLOADS = Number(process.env.STOWAGE_SLOW_UPLOADS ?? '10')
const LATENCY_MS = 50
const MESSAGES_BETWEEN_RESETS = 31
const CALL_TIMEOUT_MS = 2_000
/** Of one attempt, of which a call makes several. */
const ATTEMPT_TIMEOUT_MS = 500
/** Less than a pack of the objects, and more than the headers before it. */
const STALL_AFTER_BYTES = 30_000
/** Together they have a blob of their own: records hold packs of up to 48 KB. */
const OBJECTS = 200
const DIGESTS = 6

const engines = await CaseEngines.start({ after })

function made(name: string): readonly Made[] {
  const digests = (id: string): readonly string[] =>
    Array.from({ length: DIGESTS }, (_, at) => createHash('sha512').update(`${id} ${at}`).digest('base64'))
  return Array.from({ length: OBJECTS }, (_, at) => ({ id: `${name}-${at}`, data: digests(`${name}-${at}`) }))
}

async function opened(t: TestContext, backend: StorageBackend): Promise<Opened> {
  const server = await openStore(backend)
  t.after(async () => {
    await server.store.close()
    await backend.close()
  })
  return server
}

/** Uploads until it is acknowledged, as a client does that repeats what failed. Returns how often it failed. */
async function putUntilDone({ store }: Opened, objects: readonly Made[]): Promise<number> {
  for (let failures = 0; ; failures++) {
    try {
      await put(store, PROJECT, objects)
      return failures
    } catch (error) {
      assert.ok(error instanceof StowageError && error.isRetryable, String(error))
    }
  }
}

async function packsOf(backend: StorageBackend): Promise<number> {
  let packs = 0
  for await (const entries of backend.records.range(keyBounds('pack', PROJECT))) packs += entries.length
  return packs
}

test('a connection to PostgreSQL that is cut at any message loses no upload, and commits none twice', async (t) => {
  const proxy = await CuttingProxy.start(t, engines.postgres.port)
  const open = engines.newPlace()
  const direct = open()
  t.after(() => direct.close())
  const server = await opened(t, open({ postgresPort: proxy.port }))
  await put(server.store, PROJECT, made('first'))
  let failures = 0
  let cuts = 0
  for (let message = 1; ; message += CUT_EVERY) {
    const name = `cut-${message}`
    const before = await packsOf(direct)
    const cut = proxy.cutAt(message)
    failures += await putUntilDone(server, made(name))
    const wasCut = cut.end()
    assert.equal((await packsOf(direct)) - before, 1, name)
    await assertListed(server.store, PROJECT, made(name))
    if (!wasCut) break
    cuts++
  }
  t.diagnostic(`${cuts} cuts, ${failures} uploads that failed once`)
  assert.ok(cuts > 1)
  await eventually(async () => {
    for await (const entries of direct.records.range(keyBounds('pending'))) if (entries.length > 0) return false
    return true
  }, 'everything is applied')
  await assertSound(undying(direct))
})

test('a request to the S3 store that is cut halfway, or after its answer, loses no upload', async (t) => {
  const planned: { faultAt: number; fault: Fault; seen: number } = { faultAt: -1, fault: {}, seen: 0 }
  const { url } = await faultyProxy(t, engines.s3.port, () =>
    planned.seen++ === planned.faultAt ? planned.fault : undefined,
  )
  const open = engines.newPlace()
  const direct = open()
  t.after(() => direct.close())
  const server = await opened(t, open({ s3Endpoint: url }))
  let cuts = 0
  for (const [moment, fault] of [
    ['midway', { midway: async () => undefined }],
    ['answered', { answered: async () => undefined }],
  ] as const) {
    for (let at = 0; ; at++) {
      Object.assign(planned, { faultAt: at, fault, seen: 0 })
      const before = await packsOf(direct)
      await putUntilDone(server, made(`${moment}-${at}`))
      const wasCut = planned.seen > at
      assert.equal((await packsOf(direct)) - before, 1)
      await assertListed(server.store, PROJECT, made(`${moment}-${at}`))
      if (!wasCut) break
      cuts++
    }
  }
  planned.faultAt = -1
  assert.ok(cuts >= 2, `${cuts} cuts`)
  await assertSound(undying(direct))
})

test('50 ms more, and connections that are reset again and again, lose nothing', async (t) => {
  const slow = await startToxiproxy(t, engines)
  await slow.slowDown(LATENCY_MS)
  const postgres = await CuttingProxy.start(t, slow.postgres)
  const s3 = await CuttingProxy.start(t, slow.s3)
  const open = engines.newPlace()
  const between = { postgresPort: postgres.port, s3Endpoint: `http://127.0.0.1:${s3.port}` }
  const server = await opened(t, open(between))
  for (const proxy of [postgres, s3]) proxy.cutEvery(MESSAGES_BETWEEN_RESETS)
  const names = Array.from({ length: SLOW_UPLOADS }, (_, at) => `slow-${at}`)
  const failures = await Promise.all(names.map((name) => putUntilDone(server, made(name))))
  const failed = failures.reduce((sum, count) => sum + count, 0)
  t.diagnostic(`${postgres.cuts} and ${s3.cuts} resets, ${failed} uploads that failed once`)
  assert.ok(postgres.cuts > 0 && s3.cuts > 0)
  const direct = open()
  const reader = await opened(t, direct)
  for (const name of names) await assertListed(reader.store, PROJECT, made(name))
  await assertSound(undying(direct))
})

test('a network that stalls ends calls within their limit, and the server goes on when it is back', async (t) => {
  const proxy = await CuttingProxy.start(t, engines.postgres.port)
  const open = engines.newPlace()
  const server = await opened(t, open({ postgresPort: proxy.port, callTimeoutMs: CALL_TIMEOUT_MS }))
  await put(server.store, PROJECT, made('before'))
  proxy.stall()
  await assert.rejects(put(server.store, PROJECT, made('during')), { code: 'storage_unavailable' })
  await assert.rejects(assertListed(server.store, PROJECT, made('before')), { code: 'storage_unavailable' })
  proxy.resume()
  await putUntilDone(server, made('during'))
  for (const name of ['before', 'during']) await assertListed(server.store, PROJECT, made(name))
})

test('an S3 store that stalls in the middle of a read or a write ends the calls, and the server goes on', async (t) => {
  const proxy = await CuttingProxy.start(t, engines.s3.port)
  const open = engines.newPlace()
  const direct = await opened(t, open())
  await put(direct.store, PROJECT, made('before'))
  const s3Endpoint = `http://127.0.0.1:${proxy.port}`
  const server = await opened(t, open({ s3Endpoint, s3AttemptTimeoutMs: ATTEMPT_TIMEOUT_MS }))
  proxy.stall(STALL_AFTER_BYTES)
  const isUnavailable = { code: 'storage_unavailable' }
  await Promise.all([
    assert.rejects(put(server.store, PROJECT, made('during')), isUnavailable),
    assert.rejects(assertListed(server.store, PROJECT, made('before')), isUnavailable),
  ])
  assert.ok(proxy.stalledMidway > 1, `${proxy.stalledMidway} stalls`)
  proxy.resume()
  await putUntilDone(server, made('during'))
  for (const { store } of [server, direct])
    for (const name of ['before', 'during']) await assertListed(store, PROJECT, made(name))
  await assertSound(undying(direct.backend))
})

test('a server whose network stalls past its lease finds its commit refused when it is back', async (t) => {
  const proxy = await CuttingProxy.start(t, engines.postgres.port)
  const open = engines.newPlace()
  const backends = [open({ postgresPort: proxy.port, callTimeoutMs: CALL_TIMEOUT_MS }), open()].map(asGuarded)
  t.after(() => Promise.all(backends.map((backend) => backend.close())))
  const clocks = backends.map(() => ({ nowMs: 0 }))
  const [first, second] = backends.map(
    ({ records }, at) => new Lease(records, 'work', { ...REAL_ENVIRONMENT, monotonicMs: () => clocks[at].nowMs }),
  )
  await eventually(async () => {
    await first.look()
    return first.fence !== undefined
  }, 'the first server holds the lease')
  const { fence } = first
  assert.ok(fence !== undefined)
  const entry = { key: Buffer.from('x'), value: Buffer.from('x') }
  proxy.stall()
  await assert.rejects(backends[0].records.commit({ put: [entry], expect: [fence] }), { code: 'storage_unavailable' })
  await second.look()
  clocks[1].nowMs += LEASE_MS
  await second.look()
  assert.ok(second.fence !== undefined, 'the second server holds the lease')
  proxy.resume()
  await eventually(async () => {
    const outcome = await backends[0].records
      .commit({ put: [entry], expect: [fence] })
      .catch((error: StowageError) => assert.equal(error.code, 'storage_unavailable'))
    return outcome?.ok === false
  }, 'PostgreSQL refuses it')
  assert.deepEqual(await backends[1].records.getMany([entry.key]), [undefined])
})
