import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { StowageError } from '../../src/errors.ts'
import type { ReadOptions, StorageBackend } from '../../src/storage/backend.ts'
import { imageOf, putBlob } from './failures.ts'
import { randomGraph, seeded } from './graphs.ts'
import { type Made, never, openStore, put, textOf } from './support.ts'

const GRAPH: readonly Made[] = randomGraph(seeded(51), { objects: 400, paddingBytes: 300 })
/** Its block is larger than those that are inflated on the calling thread. */
const LARGE: Made = { id: 'large', text: 'many words. '.repeat(20_000) }

type Read = (name: string, start: number, end: number, options?: ReadOptions) => Promise<Uint8Array>

/** The storage with reads of its own for blobs. */
function readingBy(inner: StorageBackend, read: (inner: Read) => Read): StorageBackend {
  const blobs = new Proxy(inner.blobs, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target)
      if (name === 'read') return read(target.read.bind(target))
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  return { ...inner, blobs }
}

async function textIn(store: Awaited<ReturnType<typeof openStore>>['store'], id: string): Promise<string | undefined> {
  const text = await store.text('demo', Buffer.from(id), { signal: never })
  return text === undefined ? undefined : Buffer.from(text).toString()
}

test('each object is read alone, from small and large blocks and from a pack inside its record', async () => {
  const { store } = await openStore()
  assert.equal(await textIn(store, 'a'), undefined)
  await put(store, 'demo', GRAPH)
  await put(store, 'demo', [{ id: 'a', text: 'in its record' }])
  await put(store, 'demo', [LARGE])
  for (const object of [...GRAPH, LARGE]) assert.equal(await textIn(store, object.id), textOf(object))
  assert.equal(await textIn(store, 'a'), textOf({ id: 'a', text: 'in its record' }))
  assert.equal(await textIn(store, 'nowhere'), undefined)
  await store.close()
})

test('a flipped bit anywhere in a pack never becomes a wrong text of a single object', async () => {
  const { store, backend } = await openStore()
  await put(store, 'demo', GRAPH)
  const [{ name, bytes }] = (await imageOf(backend)).blobs
  let noticed = 0
  for (let at = 100; at < bytes.length; at += bytes.length >> 8) {
    const damaged = Buffer.from(bytes)
    damaged[at] ^= 1 << (at % 8)
    await putBlob(backend, name, damaged)
    for (const object of [GRAPH[0], GRAPH[200]]) {
      try {
        assert.equal(await textIn(store, object.id), textOf(object))
      } catch (error) {
        assert.ok(error instanceof StowageError && error.code === 'corrupt_data', String(error))
        noticed++
      }
    }
  }
  assert.ok(noticed > 0)
  await store.close()
})

test('objects that are read at the same time do not share memory', async () => {
  const inner = memoryBackend()
  const reads: (() => void)[] = []
  const backend = readingBy(inner, (read) => async (name, start, end, { into } = {}) => {
    const bytes = await read(name, start, end)
    await new Promise<void>((resolve) => reads.push(resolve))
    into?.set(bytes)
    return into ?? bytes
  })
  const { store } = await openStore(backend)
  await put(store, 'demo', GRAPH)
  const some = [GRAPH[0], GRAPH[150], GRAPH[399]]
  const texts = some.map((object) => textIn(store, object.id))
  while (reads.length < some.length) await new Promise((resolve) => setImmediate(resolve))
  for (const goOn of reads.toReversed()) goOn()
  assert.deepEqual(await Promise.all(texts), some.map(textOf))
  await store.close()
})

test('memory of a failed read, which the storage may still write into, is not used again', async () => {
  const inner = memoryBackend()
  const abandoned: Uint8Array[] = []
  let fails = true
  const backend = readingBy(inner, (read) => async (name, start, end, { into } = {}) => {
    const bytes = await read(name, start, end)
    if (into !== undefined && fails) {
      abandoned.push(into)
      throw new Error('the disk does not answer')
    }
    into?.set(bytes)
    for (const late of abandoned) late.fill(7)
    return into ?? bytes
  })
  const { store } = await openStore(backend)
  await put(store, 'demo', GRAPH)
  await assert.rejects(textIn(store, GRAPH[0].id))
  assert.equal(abandoned.length, 1)
  fails = false
  assert.equal(await textIn(store, GRAPH[1].id), textOf(GRAPH[1]))
  assert.equal(await textIn(store, GRAPH[0].id), textOf(GRAPH[0]))
  await store.close()
})
