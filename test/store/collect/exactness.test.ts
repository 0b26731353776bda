import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { randomGraph, seeded } from '../graphs.ts'
import { assertSound, type Made, never, openStore, put } from '../support.ts'
import { counted, OLDER_THAN, openCollecting, PROJECT, totalsOf, UNDO } from './collecting.ts'

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
