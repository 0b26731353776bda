import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { projectFolder } from '../../../src/store/records/keys.ts'
import { checkStore } from '../../../src/store/upkeep/check.ts'
import { batchesOf, collected, listed, never, openStore } from '../support.ts'
import { compact, history, PROJECT } from './support.ts'

const HISTORY = history({ versions: 6, objects: 300, changed: 60, paddingBytes: 2_000 })

/** Flips a bit in the blocks of the first pack that is a blob; resolves to its name. */
async function damaged({ blobs }: StorageBackend): Promise<string> {
  const [info] = (await collected(blobs.list(projectFolder(PROJECT)))).flat()
  const bytes = await blobs.read(info.name, 0, info.sizeBytes)
  bytes[2_000] ^= 4
  await blobs.remove([info.name])
  await blobs.put(
    info.name,
    (async function* () {
      yield bytes
    })(),
  )
  return info.name
}

test('a damaged pack is skipped and reported once, and the others are merged', async () => {
  const backend = memoryBackend()
  const filling = await openStore(backend, { planBytesMax: 1 })
  for (const objects of HISTORY.uploads) await filling.store.put(PROJECT, batchesOf(objects), { signal: never })
  await filling.store.idle()
  await filling.store.close()
  const name = await damaged(backend)

  const { store, background } = await openStore(backend)
  const report = await compact({ compactor: store.compactor }, HISTORY, { all: true })
  assert.deepEqual([report.merges, report.packsBefore, report.packsAfter], [1, 6, 2])
  assert.equal(background.length, 1)
  assert.match(String(background[0]), /is damaged, so it is not merged: block \d+: the stored bytes do not match/)
  const packId = name.slice(name.lastIndexOf('/') + 1)
  assert.deepEqual([report.damagedPacks, report.damaged.map((pack) => pack.packId)], [1, [packId]])
  assert.match(report.damaged[0].message, /^block \d+: the stored bytes do not match/)
  const again = await compact({ compactor: store.compactor }, HISTORY, { all: true })
  assert.deepEqual([again.merges, again.packsAfter, background.length], [0, 2, 1])
  assert.deepEqual(again.damaged, report.damaged, 'it is named each time')

  const others = HISTORY.uploads.slice(1).flat()
  const held = (await Promise.all(others.map(({ id }) => listed(store, PROJECT, [id])))).flat()
  assert.deepEqual(held.toSorted(), HISTORY.oracle.lines(others.map(({ id }) => id)))
  await store.close()
  const findings = await collected(checkStore(backend))
  const damage = findings.filter(({ severity }) => severity === 'damage')
  assert.deepEqual(new Set(damage.map(({ subject }) => subject)), new Set([`pack ${packId}`]))
})

test('a merge reports no damage when its packs are removed with their project', async () => {
  const backend = memoryBackend()
  const filling = await openStore(backend, { planBytesMax: 1 })
  for (const objects of HISTORY.uploads) await filling.store.put(PROJECT, batchesOf(objects), { signal: never })
  await filling.store.idle()

  let removal: Promise<void> | undefined
  const { blobs } = backend
  const read: typeof blobs.read = async (...args) => {
    removal ??= filling.store.remove(PROJECT).then(() => filling.store.idle())
    await removal
    return blobs.read(...args)
  }
  const [put, remove, list] = [blobs.put.bind(blobs), blobs.remove.bind(blobs), blobs.list.bind(blobs)]
  const { readBytesPreferred } = blobs
  const others = { readBytesPreferred, read, put, remove, list, close: () => Promise.resolve() }
  const { store, background } = await openStore({
    records: backend.records,
    blobs: others,
    close: () => Promise.resolve(),
  })
  const report = await compact({ compactor: store.compactor }, { roots: [] }, { all: true })
  assert.ok(removal !== undefined, 'the merge read a pack')
  assert.deepEqual([report.merges, report.damagedPacks, background], [0, 0, []])
  await store.close()
  await filling.store.close()
})
