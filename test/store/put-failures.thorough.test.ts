import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { StowageError } from '../../src/errors.ts'
import { divideMemory } from '../../src/memory/service-memory.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'
import { PATIENCE_MS, turns } from '../support/patience.ts'
import { referTo } from './graphs.ts'
import { faulty, gate, noFault } from './failures.ts'
import {
  idsOf,
  assertListed,
  assertSound,
  batchesOf,
  collected,
  download,
  heldOf,
  type Made,
  measureStorage,
  never,
  openStore,
  put,
  until,
  within,
} from './support.ts'

const noise = (i: number): string =>
  Array.from({ length: 90 }, (_, k) => (((i * 31 + k) * 2_654_435_761) >>> 0).toString(16)).join('')
/** More than fits into a record, so that there is a blob. */
const LARGE: readonly Made[] = [
  { id: 'root', children: referTo(Array.from({ length: 240 }, (_, i) => `o${i}`)) },
  ...Array.from({ length: 240 }, (_, i) => ({ id: `o${i}`, noise: noise(i) })),
]
const SMALL: readonly Made[] = LARGE.slice(1, 30)
const HELD: readonly Made[] = Array.from({ length: 30 }, (_, i) => ({
  id: `held${i}`,
  children: referTo(i < 29 ? [`held${i + 1}`] : []),
}))

async function isWholeOrAbsent(
  opened: Awaited<ReturnType<typeof openStore>>,
  objects: readonly Made[],
  message: string,
): Promise<void> {
  const held = await heldOf(opened.store, 'demo', idsOf(objects))
  assert.ok(
    held.size === 0 || held.size === objects.length,
    `${message}: ${held.size} of ${objects.length} are visible`,
  )
}

async function assertHeld(opened: Awaited<ReturnType<typeof openStore>>, objects: readonly Made[]): Promise<void> {
  await assertListed(opened.store, 'demo', objects)
}

test('a source that fails at any point leaves nothing', async () => {
  const batches = await collected(batchesOf(LARGE, 30))
  assert.ok(batches.length >= 8)
  for (let at = 0; at <= batches.length; at++) {
    const { store, backend } = await openStore()
    const broken = new Error(`broken at ${at}`)
    let isClosed = false
    const source = async function* (): AsyncGenerator<ObjectBatch> {
      try {
        yield* batches.slice(0, at)
        throw broken
      } finally {
        isClosed = true
      }
    }
    await assert.rejects(store.put('demo', source(), { signal: never }), (error) => error === broken)
    assert.ok(isClosed)
    assert.deepEqual(await measureStorage(backend), { bytes: 0, blobs: [], records: {} })
    assert.deepEqual(await heldOf(store, 'demo', ['root', 'o1']), new Set())
    await store.close()
  }
})

test('an abort at any point leaves nothing, ends at once and closes the source, even a hanging one', async () => {
  const batches = await collected(batchesOf(LARGE, 30))
  for (let at = 0; at <= batches.length; at++) {
    for (const isHanging of [false, true]) {
      const { store, backend } = await openStore()
      const controller = new AbortController()
      const reason = new Error('the client left')
      const source = async function* (): AsyncGenerator<ObjectBatch> {
        yield* batches.slice(0, at)
        setImmediate(() => controller.abort(reason))
        if (isHanging) await new Promise(() => undefined)
        await turns(2)
        yield* batches.slice(at)
      }
      await within(
        'an abort',
        assert.rejects(store.put('demo', source(), { signal: controller.signal }), (error) => error === reason),
      )
      assert.deepEqual(await measureStorage(backend), { bytes: 0, blobs: [], records: {} })
      assert.deepEqual(await put(store, 'demo', SMALL), {
        objects: SMALL.length,
        inserted: SMALL.length,
        differing: 0,
        differingIds: [],
      })
      await store.close()
    }
  }
})

test('an abort during any storage call leaves all or nothing', async () => {
  for (const objects of [SMALL, LARGE]) {
    for (let at = 0; ; at++) {
      const fault = noFault()
      const controller = new AbortController()
      const inner = memoryBackend()
      const backend = faulty(inner, fault)
      const opened = await openStore(inner, { backend })
      await put(opened.store, 'demo', HELD)
      const before = fault.calls
      Object.defineProperty(fault.log, 'push', {
        value: () => fault.calls - before > at && controller.abort(new Error('the client left')),
      })
      let isAnswered = false
      try {
        await opened.store.put('demo', batchesOf(objects, 30), { signal: controller.signal })
        isAnswered = true
      } catch (error) {
        assert.match(String(error), /the client left/)
      }
      await opened.store.idle()
      await isWholeOrAbsent(opened, objects, `abort at call ${at}`)
      const reopened = await opened.reopen({})
      if (isAnswered) await assertHeld(reopened, objects)
      await isWholeOrAbsent(reopened, objects, `abort at call ${at}, reopened`)
      await assertSound(inner)
      const { blobs } = await measureStorage(inner)
      if ((await heldOf(reopened.store, 'demo', ['o1'])).size === 0) assert.deepEqual(blobs, [])
      await reopened.store.close()
      if (!controller.signal.aborted) break
    }
  }
})

test('a storage fault at any call loses no acknowledged object, leaves none half stored, and passes', async () => {
  for (const objects of [SMALL, LARGE]) {
    for (const isDone of [false, true]) {
      for (let at = 0; ; at++) {
        const fault = noFault()
        const inner = memoryBackend()
        const opened = await openStore(inner, { backend: faulty(inner, fault) })
        await put(opened.store, 'demo', HELD)
        await opened.store.idle()
        Object.assign(fault, { calls: 0, at, isDone })
        let failure: unknown
        try {
          await within('an upload', put(opened.store, 'demo', objects, 30))
        } catch (error) {
          failure = error
        }
        const wasHit = fault.calls > at
        const message = `call ${at} (${fault.log.slice(-fault.calls)[at]}) failed, ${isDone ? 'done' : 'not done'}`
        if (failure !== undefined)
          assert.ok(failure instanceof StowageError && failure.code === 'storage_unavailable', message)
        else if (wasHit) await assertHeld(opened, objects)
        fault.at = undefined
        await opened.store.idle()
        await isWholeOrAbsent(opened, objects, message)
        await assertHeld(opened, HELD)
        await put(opened.store, 'demo', objects)
        await assertHeld(opened, objects)
        assert.equal((await download(opened.store, 'demo', 'held0'))?.ids.size, 30)
        const reopened = await opened.reopen({})
        await assertHeld(reopened, [...HELD, ...objects])
        assert.equal((await download(reopened.store, 'demo', 'held0'))?.ids.size, 30)
        await reopened.store.idle()
        await assertSound(inner)
        assert.equal((await measureStorage(inner)).records['w'], undefined, message)
        await reopened.store.close()
        if (!wasHit) break
      }
    }
  }
})

test('after a crash at any call, acknowledged objects are present and others are whole or absent', async () => {
  for (const objects of [SMALL, LARGE]) {
    for (const isDone of [false, true]) {
      for (let at = 0; ; at++) {
        const fault = noFault()
        const inner = memoryBackend()
        const crashing = await openStore(inner, { backend: faulty(inner, fault) })
        await put(crashing.store, 'demo', HELD)
        await crashing.store.idle()
        Object.assign(fault, { calls: 0, at, isDone, mode: 'crash' })
        const isAnswered = await put(crashing.store, 'demo', objects, 30).then(
          () => true,
          () => false,
        )
        const wasHit = fault.calls > at
        const reopened = await openStore(inner)
        const message = `crash at call ${at}, ${isDone ? 'done' : 'not done'}`
        await isWholeOrAbsent(reopened, objects, message)
        if (isAnswered) await assertHeld(reopened, objects)
        await assertHeld(reopened, HELD)
        await assertSound(inner)
        const again = await put(reopened.store, 'demo', objects)
        assert.equal(again.objects, objects.length)
        await assertHeld(reopened, objects)
        await assertSound(inner)
        await reopened.store.close()
        await crashing.store.close()
        if (!wasHit) break
      }
    }
  }
})

test('a commit whose answer is lost is recognized as made, and a repeated upload counts nothing twice', async () => {
  const fault = noFault()
  const inner = memoryBackend()
  const { store } = await openStore(inner, { backend: faulty(inner, fault) })
  await store.idle()
  const firstCall = fault.log.length
  const commitCall = 3
  // getMany of the objects, getMany of the project, the range of pending packs, the commit: it is done, and its answer is lost.
  Object.assign(fault, { calls: 0, at: commitCall, isDone: true })
  const first = await put(store, 'demo', SMALL)
  assert.equal(fault.log[firstCall + commitCall], 'commit')
  assert.equal(first.inserted, SMALL.length)
  fault.at = undefined
  const again = await put(store, 'demo', SMALL)
  assert.equal(again.inserted, 0)
  assert.equal((await measureStorage(inner)).records['k'], 1)
  const reopened = await openStore(inner)
  await assertHeld(reopened, SMALL)
  await assertSound(inner)
})

test('memory for uploads is released, whatever their outcome', async () => {
  const inner = memoryBackend()
  const fault = noFault()
  const { store } = await openStore(inner, {
    backend: faulty(inner, fault),
    memory: divideMemory(8 * 1_048_576, { waitMs: PATIENCE_MS }),
  })
  const broken = async function* (): AsyncGenerator<ObjectBatch> {
    yield* batchesOf(SMALL)
    throw new Error('broken')
  }
  for (let i = 0; i < 30; i++) {
    await assert.rejects(store.put('demo', broken(), { signal: never }), /broken/)
    await assert.rejects(store.put('demo', broken(), { signal: AbortSignal.abort(new Error('gone')) }), /gone/)
    Object.assign(fault, { calls: 0, at: i % 6 })
    await put(store, `demo${i}`, SMALL).catch(() => undefined)
    fault.at = undefined
  }
  await Promise.all(Array.from({ length: 12 }, (_, i) => put(store, 'demo', [{ id: `x${i}` }])))
  await store.close()
})

test('uploads beyond the memory queue, and are refused after a time limit', async () => {
  for (const [waitMs, outcome] of [
    [50, 'overloaded'],
    [PATIENCE_MS, 'stored'],
  ] as const) {
    const { store } = await openStore(memoryBackend(), { memory: divideMemory(8 * 1_048_576, { waitMs }) })
    const held = gate()
    let isRunning = false
    const slow = async function* (): AsyncGenerator<ObjectBatch> {
      yield* batchesOf([{ id: 'slow' }])
      isRunning = true
      await held.opened
    }
    const running = store.put('demo', slow(), { signal: never })
    await until(() => isRunning)
    let got: string | undefined
    const waiting = put(store, 'demo', SMALL)
      .then(
        () => 'stored',
        (error: StowageError) => error.code,
      )
      .then((text) => (got = text))
    if (outcome === 'overloaded') await waiting
    await turns()
    assert.equal(got, outcome === 'overloaded' ? outcome : undefined, 'while the other one is there')
    held.open()
    assert.equal((await running).inserted, 1)
    assert.equal(await waiting, outcome)
    await store.close()
  }
})

test('an upload whose tables exceed the whole budget is refused as too large', async () => {
  const { store, backend } = await openStore(memoryBackend(), { memory: divideMemory(6 * 1_048_576) })
  const endless = async function* (): AsyncGenerator<ObjectBatch> {
    for (let i = 0; i < 1_000; i++)
      yield* batchesOf(Array.from({ length: 1_000 }, (_, k) => ({ id: `${i}-${k}-${'x'.repeat(100)}` })))
  }
  await assert.rejects(store.put('demo', endless(), { signal: never }), {
    code: 'memory_limit_exceeded',
    statusCode: 413,
  })
  assert.deepEqual((await measureStorage(backend)).blobs, [])
  await put(store, 'demo', SMALL)
  await store.close()
})
