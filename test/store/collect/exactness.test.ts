import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { asGuarded } from '../../../src/storage/guard.ts'
import { OutdatedViewError } from '../../../src/store/records/pack-catalog.ts'
import { hooked } from '../failures.ts'
import { randomGraph, seeded } from '../graphs.ts'
import { assertSound, type Made, never, openStore, put, undying } from '../support.ts'
import { counted, jsonBytesOf, node, OLDER_THAN, openCollecting, PROJECT, totalsOf, UNDO } from './collecting.ts'

/** Longer than blobs are kept that nothing names any more. */
const DAYS = 160

/** Bytes of packs. */
async function packBytes({ blobs }: StorageBackend): Promise<number> {
  let bytes = 0
  for await (const batch of blobs.list(''))
    for (const { name, sizeBytes } of batch) if (!name.includes('/plan-')) bytes += sizeBytes
  return bytes
}

test('a dry run reports objects and JSON exactly, and bytes on disk approximately', async () => {
  const { store, backend, roots, pass, collect, close } = await openCollecting()
  const random = seeded(5)
  for (let version = 0; version < 4; version++) {
    const objects: Made[] = randomGraph(random, {
      objects: 1_200,
      prefix: `v${version}-`,
      isHex: true,
      paddingBytes: 400,
    })
    await put(store, PROJECT, objects)
    roots.add(objects[0].id)
  }
  await collect()
  const [, , kept] = roots
  for (const root of roots) if (root !== kept) roots.delete(root)
  await pass(OLDER_THAN + 1)
  const before = { totals: await totalsOf(backend), bytes: await packBytes(backend) }
  const dry = await collect({ dryRun: true })
  assert.equal(dry.condemned.byCause.oldVersion.objects, dry.condemned.objects)
  assert.deepEqual((await collect()).condemned, dry.condemned)
  await pass(UNDO + 1)
  assert.deepEqual((await collect({ dryRun: true })).freed, dry.condemned)
  assert.deepEqual((await collect()).freed, dry.condemned)
  const after = await totalsOf(backend)
  assert.deepEqual(
    {
      objects: (before.totals?.objects ?? 0) - (after?.objects ?? 0),
      jsonBytes: (before.totals?.jsonBytes ?? 0) - (after?.jsonBytes ?? 0),
    },
    counted(dry.condemned),
  )
  await store.compactor.compact(PROJECT, () => Promise.resolve([]), { signal: never, all: true })
  for (let i = 0; i < 2; i++) {
    await pass(DAYS)
    const again = await openStore(backend)
    await again.store.idle()
    await again.store.close()
  }
  const goneBytes = before.bytes - (await packBytes(backend))
  assert.ok(
    Math.abs(goneBytes - dry.condemned.storedBytes) < goneBytes / 20,
    `${dry.condemned.storedBytes} told, ${goneBytes} gone`,
  )
  await assertSound(backend)
  await close()
})

test('what is freed is what the project holds less; copies of objects that were uploaded again are told apart', async () => {
  const { store, backend, roots, pass, collect, close } = await openCollecting()
  const going = Array.from({ length: 70 }, (_, i) => node(`going-${i}`))
  await put(store, PROJECT, [node('kept')])
  await put(store, PROJECT, going)
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  assert.equal((await collect()).condemned.objects, 70)
  await pass(UNDO + 1)
  const again = going.slice(0, 21)
  await put(store, PROJECT, again)
  const before = await totalsOf(backend)
  const dry = await collect({ dryRun: true })
  assert.deepEqual(await totalsOf(backend), before)
  const real = await collect()
  const after = await totalsOf(backend)
  assert.deepEqual(counted(real.freed), { objects: 49, jsonBytes: jsonBytesOf(going.slice(21)) })
  assert.deepEqual(counted(real.freed), {
    objects: (before?.objects ?? 0) - (after?.objects ?? 0),
    jsonBytes: (before?.jsonBytes ?? 0) - (after?.jsonBytes ?? 0),
  })
  assert.deepEqual(counted(real.replacedCopies), { objects: 21, jsonBytes: jsonBytesOf(again) })
  assert.deepEqual({ ...real, dryRun: true }, dry)
  await assertSound(backend)
  await close()
})

test('a dry run that begins again counts nothing twice', async () => {
  const memory = asGuarded(memoryBackend())
  // The first look-up marks, the next one counts.
  let [lookUps, outdatedAt] = [0, Infinity]
  const backend = hooked(memory, (call, key, work) => {
    if (call !== 'getMany' || !key.includes('second') || ++lookUps !== outdatedAt) return work()
    throw new OutdatedViewError()
  })
  const { store, roots, pass, collect, close } = await openCollecting(1, undying(backend))
  for (const id of ['first', 'second']) await put(store, PROJECT, [node(id)])
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  assert.equal((await collect()).condemned.objects, 2)
  await pass(UNDO + 1)
  outdatedAt = lookUps + 2
  assert.equal((await collect({ dryRun: true })).freed.objects, 2)
  assert.equal(lookUps, outdatedAt + 2, 'the dry run began again')
  await close()
})
