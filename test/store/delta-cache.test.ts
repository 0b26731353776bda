import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { inflateFragmentsSync } from '../../src/compression/inflate.ts'
import { MemoryBudget } from '../../src/memory/memory-budget.ts'
import { divideMemory } from '../../src/memory/service-memory.ts'
import { hooked } from './failures.ts'
import { node, OLDER_THAN, openCollecting, PROJECT } from './collect/collecting.ts'
import { referTo } from './graphs.ts'
import { collected, type Made, never, openStore, put } from './support.ts'
import type { PackStore } from '../../src/store/pack-store.ts'

/** Texts that are long and alike, so that a delta is worthwhile. */
function made(id: string, version: number, children: readonly string[] = []): Made {
  const words = Array.from({ length: 200 }, (_, at) => `word ${at}`).join(' ')
  return { id, text: `${words}, version ${version}`, children: referTo(children) }
}

const CHILDREN = Array.from({ length: 40 }, (_, at) => `child ${at}`)
const OLD = [made('old', 1, CHILDREN), ...CHILDREN.map((id) => made(id, 1))]
const NEW_CHILDREN = CHILDREN.with(7, 'child other').concat('child that is not there yet')
const NEW = [made('new', 2, NEW_CHILDREN), made('child other', 2)]

/** What a client that has the older root receives, as it is sent. */
async function sent(store: PackStore, project: string, newer: string, older: string): Promise<string> {
  const had = await store.closure(project, older, { signal: never })
  const digest = had?.closureDigest
  had?.release()
  const memory = new MemoryBudget(50_000_000).open({ signal: never })
  const have = [{ id: older, digest }]
  const selection = await store.closure(project, newer, { signal: never, have, deltas: true, memory })
  assert.deepEqual(selection?.have, [{ id: older, outcome: 'subtracted' }])
  const batches = await collected(selection.fragments({ signal: never }))
  selection.release()
  memory.release()
  const texts = batches.flat().map((fragment) => {
    if ('lines' in fragment) return fragment.lines
    const raw = inflateFragmentsSync(fragment.deflated, fragment.rawBytes)
    assert.equal(crc32(raw), fragment.crc32)
    return raw
  })
  return Buffer.concat(texts).toString()
}

test('a repeated delta reads nothing until something that it depends on changes', async () => {
  const inner = memoryBackend()
  let reads = 0
  const hooks = hooked(inner, (_call, _detail, work) => work())
  const read: typeof inner.blobs.read = (name, start, end, options) => {
    reads++
    return inner.blobs.read(name, start, end, options)
  }
  const many = Array.from({ length: 400 }, (_, at) => made(`other ${at}`, at))
  const { store } = await openStore({ ...hooks, blobs: { ...hooks.blobs, read } })
  await put(store, 'demo', [...OLD, ...many])
  await put(store, 'demo', [...NEW, ...many.map(({ id }) => made(`${id}'`, 1))])
  const first = await sent(store, 'demo', 'new', 'old')
  assert.match(first, /^new\t\[/)
  assert.match(first, /child other\t\[/)
  assert.ok(reads > 0)
  reads = 0
  assert.equal(await sent(store, 'demo', 'new', 'old'), first)
  assert.equal(reads, 0)
  await put(store, 'demo', [made('child that is not there yet', 3)])
  const grown = await sent(store, 'demo', 'new', 'old')
  assert.match(grown, /child that is not there yet\t/)
  await store.remove('demo')
  await put(store, 'demo', [...OLD, ...NEW.map((object) => ({ ...object, more: 'text' }))])
  assert.match(await sent(store, 'demo', 'new', 'old'), /more/)
  await store.close()
})

test('a delta sends the text with which a condemned object came again', async () => {
  const collecting = await openCollecting(1)
  const [store] = collecting.stores
  await put(store, PROJECT, [node('child'), node('old', ['child'])])
  await put(store, PROJECT, [node('fresh'), node('new', ['child', 'fresh'])])
  await put(store, PROJECT, [node('kept')])
  collecting.roots.add('kept')
  await collecting.collect()
  await collecting.pass(OLDER_THAN + 1)
  await collecting.collect()
  assert.doesNotMatch(await sent(store, PROJECT, 'new', 'old'), /another text/)
  await put(store, PROJECT, [node('fresh', [], 'another text')])
  assert.match(await sent(store, PROJECT, 'new', 'old'), /another text/)
  await collecting.close()
})

test('deltas too large for the cache are sent but not cached', async () => {
  const { store } = await openStore(memoryBackend(), { memory: { ...divideMemory(), deltasBytes: 100 } })
  await put(store, 'demo', OLD)
  await put(store, 'demo', NEW)
  const first = await sent(store, 'demo', 'new', 'old')
  assert.equal(await sent(store, 'demo', 'new', 'old'), first)
  await store.close()
})
