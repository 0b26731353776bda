import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { headKey } from '../../../src/store/records/keys.ts'
import { gate, hooked } from '../failures.ts'
import { assertSound, collected, download, idOfLine, never, openStore, put } from '../support.ts'
import { assertHolds, compact, exported, history, PROJECT, smallest, uploaded } from './support.ts'

const SMALL = history({ versions: 9, objects: 120, changed: 6 })

test('packs of many uploads are merged into one, and every version stays unchanged', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(SMALL, backend)
  const report = await compact(opened.store, SMALL)
  assert.equal(report.packsBefore, SMALL.uploads.length)
  assert.equal(report.packsAfter, 1)
  assert.equal(report.merges, 1)
  assert.equal(report.stopped, null)
  assert.ok(report.storedBytesAfter < report.storedBytesBefore)
  await assertHolds(opened.store, SMALL)
  assert.deepEqual((await exported(opened.store)).toSorted(), SMALL.oracle.lines(SMALL.oracle.objects.keys()))
  const usage = await opened.store.usages.usage(PROJECT, SMALL.roots, { signal: never })
  assert.equal(usage.objects, SMALL.oracle.objects.size)
  assert.equal(usage.unreferencedObjects, 0)
  assert.equal(usage.storedBytes, report.storedBytesAfter)
  const again = await compact(opened.store, SMALL)
  assert.equal(again.merges, 0)
  await assertSound(backend)
  const reopened = await opened.reopen()
  await assertHolds(reopened.store, SMALL)
  assert.deepEqual(reopened.background, [])
  await reopened.store.close()
})

test('a merged pack is merged again only when two epochs have begun since', async () => {
  const opened = await uploaded(SMALL)
  const { store } = opened
  assert.equal((await compact(store, SMALL, { all: true })).packsAfter, 1)
  await put(store, PROJECT, [{ id: 'later' }])
  const counts: number[] = []
  for (const epoch of [0, 1, 2]) {
    if (epoch > 0) await store.epochs.advance()
    await store.epochs.current() // the store remembers the epoch for a while
    counts.push((await compact(store, SMALL, { all: true })).packsAfter)
  }
  assert.deepEqual(counts, [2, 2, 1])
  await assertHolds(store, SMALL)
  await store.close()
})

test('everything can be read during a merge, on this and on another server', async () => {
  const backend = smallest()
  const opened = await uploaded(SMALL, backend)
  const other = await openStore(backend)
  let calls = 0
  const merging = await openStore(
    hooked(backend, async (call, _detail, work) => {
      const isChange = call === 'commit' || call === 'put'
      if (isChange && calls++ % 3 === 0) {
        for (const { store } of [opened, other]) await assertHolds(store, SMALL, { closures: 2 })
        const fresh = await openStore(backend)
        await fresh.store.close()
      }
      return work()
    }),
  )
  const report = await compact(merging.store, SMALL)
  assert.equal(report.packsAfter, 1)
  assert.ok(calls > 10, `${calls} changes`)
  for (const { store } of [opened, other, merging]) {
    await assertHolds(store, SMALL)
    await store.close()
  }
  await assertSound(backend)
})

test('downloads that began before a merge complete unchanged', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(SMALL, backend)
  const selections = await Promise.all(
    SMALL.roots.map(({ rootObjectId }) => opened.store.closure(PROJECT, rootObjectId, { signal: never })),
  )
  await compact(opened.store, SMALL)
  for (const [i, selection] of selections.entries()) {
    assert.ok(selection !== undefined)
    const lines: string[] = []
    for await (const bytes of selection.lines({ signal: never })) lines.push(Buffer.from(bytes).toString())
    selection.release()
    const { ids } = SMALL.oracle.closure(SMALL.roots[i].rootObjectId)
    assert.deepEqual(lines.join('').split('\n').slice(0, -1).toSorted(), SMALL.oracle.lines(ids))
  }
  await opened.store.close()
})

test('an export contains each object once, even if a merge commits during it', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(SMALL, backend)
  let pages = 0
  const lines = await exported(opened.store, async () => {
    if (++pages === 3) assert.equal((await compact(opened.store, SMALL)).merges, 1)
  })
  assert.ok(pages > 3)
  assert.deepEqual(lines.toSorted(), SMALL.oracle.lines(SMALL.oracle.objects.keys()))
  await opened.store.close()
})

test('have and deltas are correct after a merge', async () => {
  const opened = await uploaded(SMALL)
  const before = await download(opened.store, PROJECT, 'root-8')
  await compact(opened.store, SMALL)
  const whole = SMALL.oracle.closure('root-9').ids
  const undated = await download(opened.store, PROJECT, 'root-9', [{ id: 'root-8' }])
  assert.deepEqual(undated?.ids, whole, 'what arrived after the root can no longer be told from what came before')
  const current = await download(opened.store, PROJECT, 'root-8')
  assert.equal(current?.digest, before?.digest, 'a merge changes no digest')
  const rest = await download(opened.store, PROJECT, 'root-9', [{ id: 'root-8', digest: before?.digest ?? '' }])
  const lacking = new Set([...whole].filter((id) => !current?.ids.has(id)))
  assert.deepEqual(rest?.ids, lacking)
  const have = [{ id: 'root-8', digest: current?.digest ?? '' }]
  const deltas = await opened.store.closure(PROJECT, 'root-9', { signal: never, have, deltas: true })
  assert.ok(deltas !== undefined)
  const lines = Buffer.concat(await collected(deltas.lines({ signal: never }))).toString()
  deltas.release()
  assert.deepEqual(new Set(lines.split('\n').slice(0, -1).map(idOfLine)), lacking)
  assert.ok(lines.includes('\t["root-8",'), 'the root is sent as a delta')
  await opened.store.close()
})

test('a download that looked at the project before a merge is answered, whatever plans were made after it', async () => {
  const [seen, go] = [gate(), gate()]
  const head = Buffer.from(headKey(PROJECT)).toString()
  let isHeld = false
  const backend = hooked(memoryBackend(), async (call, key, work) => {
    const done = await work()
    if (isHeld && call === 'getMany' && key === head) {
      isHeld = false
      seen.open()
      await go.opened
    }
    return done
  })
  const { store } = await uploaded(SMALL, backend)
  const before = await download(store, PROJECT, 'root-8')
  isHeld = true
  const rest = download(store, PROJECT, 'root-9', [{ id: 'root-8', digest: before?.digest ?? '' }])
  await seen.opened
  await compact(store, SMALL)
  await assertHolds(store, SMALL)
  go.open()
  const { ids } = SMALL.oracle.closure('root-9')
  assert.deepEqual((await rest)?.ids, new Set([...ids].filter((id) => before?.ids.has(id) === false)))
  await store.close()
})

test('objects that arrived after a root are sent to a client that names only the root', async () => {
  const opened = await openStore()
  await put(opened.store, PROJECT, [{ id: 'early', children: [{ referencedId: 'late' }] }])
  await put(opened.store, PROJECT, [{ id: 'late' }])
  await put(opened.store, PROJECT, [{ id: 'newer', children: [{ referencedId: 'early' }] }])
  await compact(opened.store, { roots: [] }, { all: true })
  const got = await download(opened.store, PROJECT, 'newer', [{ id: 'early' }])
  assert.deepEqual(got?.ids, new Set(['newer', 'early', 'late']))
  await opened.store.close()
})

test('uploads during a merge are kept', async () => {
  const backend = smallest()
  const opened = await uploaded(SMALL, backend)
  const added: string[] = []
  const merging = await openStore(
    hooked(backend, async (call, _detail, work) => {
      if (call === 'commit' && added.length < 12) {
        const id = `during-${added.length}`
        added.push(id)
        await put(opened.store, PROJECT, [{ id, of: { referencedId: 'root-9' } }, { id: 'root-9' }])
      }
      return work()
    }),
  )
  await compact(merging.store, SMALL)
  assert.ok(added.length > 5)
  for (const id of added) {
    const got = await download(merging.store, PROJECT, id)
    assert.deepEqual(got?.ids, new Set([id, ...SMALL.oracle.closure('root-9').ids]))
  }
  await assertHolds(opened.store, SMALL)
  await assertSound(backend)
  await opened.store.close()
  await merging.store.close()
})
