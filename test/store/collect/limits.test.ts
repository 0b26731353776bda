import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { MB } from '../../../src/limits.ts'
import { divideMemory } from '../../../src/memory/service-memory.ts'
import type { CollectionProgress } from '../../../src/object/collection.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { gate, hooked, putBlob } from '../failures.ts'
import { randomGraph, seeded } from '../graphs.ts'
import { eventually } from '../../support/patience.ts'
import { assertSound, heldOf, never, put } from '../support.ts'
import { smallest } from '../compact/support.ts'
import { node, OLDER_THAN, openCollecting, PROJECT } from './collecting.ts'

const KEPT = [node('kept', ['leaf']), node('leaf')]
const ZOMBIES = Array.from({ length: 300 }, (_, i) => node(`zombie${i}`, [], 'z'.repeat(500)))

async function packBlobOf({ blobs }: StorageBackend): Promise<string> {
  for await (const batch of blobs.list('')) for (const { name } of batch) if (!name.includes('plan-')) return name
  throw new Error('no pack has a blob')
}

test('a project with a damaged pack is not collected', async () => {
  const { store, stores, backend, roots, pass, collect, close } = await openCollecting(2)
  await put(store, PROJECT, KEPT)
  await put(store, PROJECT, randomGraph(seeded(1), { objects: 1_500 }))
  await put(store, PROJECT, ZOMBIES)
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  const name = await packBlobOf(backend)
  const bytes = await backend.blobs.read(name, 0, 100)
  await putBlob(backend, name, bytes)
  const report = await collect({}, stores[1])
  assert.deepEqual([report.skipped, report.condemned.objects], ['damaged', 0])
  assert.equal((await heldOf(store, PROJECT, ['zombie0', 'kept'])).size, 2)
  await close()
})

test('a collection reports its progress and ends when it is aborted, and the next one completes it', async () => {
  const aborting = new AbortController()
  const memory = smallest()
  const held = gate()
  let commits = 0
  const backend = hooked(memory, async (call, detail, work) => {
    if (call === 'commit' && detail.startsWith('o') && ++commits === 2) held.open()
    return work()
  })
  const { store, roots, pass, collect, close } = await openCollecting(1, backend)
  await put(store, PROJECT, [...KEPT, ...ZOMBIES])
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  void held.opened.then(() => aborting.abort(new Error('enough')))
  await assert.rejects(collect({ signal: aborting.signal }), /enough/)
  const ids = ZOMBIES.map(({ id }) => id)
  const { size } = await heldOf(store, PROJECT, ids)
  assert.ok(size > 0 && size < ids.length, `${size} left`)
  const told: CollectionProgress[] = []
  const report = await collect({ onProgress: (progress) => told.push(progress) })
  assert.equal(report.condemned.objects, size)
  assert.deepEqual([...new Set(told.map(({ phase }) => phase))], ['marking', 'condemning'])
  assert.deepEqual(told.at(-1), { phase: 'condemning', objects: 302, objectsTotal: 302 })
  await close()
})

test('a collection with little memory completes', async () => {
  const memory = divideMemory(6 * MB)
  const { store, roots, pass, collect, close } = await openCollecting(1, memoryBackend(), { memory })
  const graph = randomGraph(seeded(2), { objects: 12_000, isHex: true, paddingBytes: 20 })
  for (let at = 0; at < graph.length; at += 2_000) await put(store, PROJECT, graph.slice(at, at + 2_000))
  await put(store, PROJECT, ZOMBIES)
  roots.add(graph[0].id)
  await pass(OLDER_THAN + 1)
  let most = 0
  const onProgress = (): void => {
    most = Math.max(most, store.memory().requests.heldBytes)
  }
  assert.equal((await collect({ onProgress })).condemned.objects, ZOMBIES.length)
  assert.ok(most > 0 && most <= store.memory().requests.limitBytes, `${most} bytes`)
  // Plans are made ahead, too.
  await eventually(() => store.memory().requests.heldBytes === 0, 'all memory is given back')
  await close()
})

test('a merge that a dead server left unfinished is completed before the project is collected', async () => {
  const memory = memoryBackend()
  let isArmed = false
  let isDead = false
  const dying = hooked(memory, async (call, detail, work) => {
    if (isDead) throw new Error('the server is dead')
    const result = await work()
    if (isArmed && call === 'commit' && detail.startsWith('h')) isDead = true
    return result
  })
  const dead = await openCollecting(1, dying)
  const { store, backend, roots, pass, collect, close } = await openCollecting(1, memory)
  for (const object of [...KEPT, ...ZOMBIES.slice(0, 5)]) await put(store, PROJECT, [object])
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  isArmed = true
  const { compactor } = dead.store
  await assert.rejects(compactor.compact(PROJECT, () => Promise.resolve([]), { signal: never, all: true }))
  assert.equal((await collect()).condemned.objects, 5)
  assert.equal((await heldOf(store, PROJECT, ['kept', 'leaf', 'zombie0'])).size, 2)
  await assertSound(backend)
  await close()
})
