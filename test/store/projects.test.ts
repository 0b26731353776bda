import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { garbageKey, objectKeyMaker, tombstoneBlobName } from '../../src/store/records/keys.ts'
import { garbageEntry, garbageEntryAgain } from '../../src/store/records/projects.ts'
import { markLeftIds, sweepGarbage } from '../../src/store/upkeep/removal.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { readTombstone } from '../../src/store/upkeep/tombstone.ts'
import { gate, hooked } from './failures.ts'
import { randomGraph, referTo, seeded, splitRandomly } from './graphs.ts'
import {
  idsOf,
  heldCount,
  assertSound,
  batchesOf,
  collected,
  download,
  heldOf,
  lineOf,
  listed,
  type Made,
  measureStorage,
  never,
  type Opened,
  openStore,
  put,
  readLines,
  until,
  within,
} from './support.ts'
import { turns } from '../support/patience.ts'

const GRAPH: readonly Made[] = randomGraph(seeded(31), { objects: 1_100, missingPercent: 2, paddingBytes: 150 })
const ROOT: string = GRAPH[0].id

async function fill(opened: Opened, project: string): Promise<void> {
  for (const objects of splitRandomly(seeded(32), GRAPH, 5)) await put(opened.store, project, objects)
  await download(opened.store, project, ROOT)
  await opened.store.idle()
}

async function projectsOf({ store }: Opened): Promise<string[]> {
  return (await collected(store.projects())).flat().sort()
}

async function assertGone(opened: Opened, project: string): Promise<void> {
  assert.deepEqual(await heldOf(opened.store, project, idsOf(GRAPH)), new Set())
  assert.deepEqual(await listed(opened.store, project, [ROOT]), [])
  assert.equal(await download(opened.store, project, ROOT), undefined)
  assert.ok(!(await projectsOf(opened)).includes(project))
}

async function assertThere(opened: Opened, project: string): Promise<void> {
  assert.equal(await heldCount(opened.store, project, GRAPH), GRAPH.length)
  assert.equal((await download(opened.store, project, ROOT))?.ids.size, GRAPH.length)
}

/** Nothing of a removed project is left but its record and a tombstone. */
async function assertSwept(backend: StorageBackend): Promise<void> {
  const { blobs, records } = await measureStorage(backend)
  assert.ok(blobs.length === 1 && blobs[0].endsWith('/tombstone-00000001'), blobs.join())
  assert.deepEqual(records, { h: 1 })
}

test('projects are isolated: the same ids have their own texts, children and plans', async () => {
  const opened = await openStore()
  const projects = [
    'a',
    'ab',
    'a b',
    'a/b',
    '..',
    'A',
    'é',
    'e\u0301',
    '00000001',
    'p'.repeat(128),
    '__proto__',
    '\u{1f9f1}',
  ]
  for (const [i, project] of projects.entries()) {
    assert.deepEqual(
      await put(opened.store, project, [
        { id: 'same', project, children: referTo(['child']) },
        ...(i % 2 ? [{ id: 'child', project }] : []),
      ]),
      { objects: 1 + (i % 2), inserted: 1 + (i % 2), differing: 0, differingIds: [] },
    )
  }
  for (const store of [opened, await opened.reopen()]) {
    assert.deepEqual(await projectsOf(store), projects.toSorted())
    for (const [i, project] of projects.entries()) {
      const got = await download(store.store, project, 'same')
      assert.deepEqual(got?.lines[0], lineOf({ id: 'same', project, children: referTo(['child']) }))
      assert.deepEqual(got?.missing, i % 2 ? [] : ['child'])
      assert.deepEqual(await listed(store.store, project, ['child']), i % 2 ? [lineOf({ id: 'child', project })] : [])
    }
  }
  await assertSound(opened.backend)
})

test('a removed project is unreadable at once, others stay unchanged, and its space is reclaimed', async () => {
  const opened = await openStore()
  await put(opened.store, 'demo', [{ id: 'x' }])
  const before = await measureStorage(opened.backend)
  for (const project of ['dem', 'demo', 'demoo']) await fill(opened, project)
  await opened.store.remove('demo')
  await assertGone(opened, 'demo')
  for (const project of ['dem', 'demoo']) await assertThere(opened, project)
  await opened.store.idle()
  await assertGone(opened, 'demo')
  for (const project of ['dem', 'demoo']) await opened.store.remove(project)
  await opened.store.idle()
  const after = await measureStorage(opened.backend)
  assert.deepEqual(after.records, { h: 3 })
  assert.ok(after.blobs.every((name) => name.includes('/tombstone-')) && after.blobs.length === 3)
  assert.ok(after.bytes < before.bytes + 600, `${after.bytes} bytes are left`)
  await opened.store.remove('demo')
  await opened.store.remove('never-there')
  await assertSound(opened.backend)
  assert.deepEqual(opened.background, [])
  await opened.store.close()
})

test('a removed project can be filled again, even while it is swept', async () => {
  const sweeping = gate()
  let isHeld = false
  const opened = await openStore(
    hooked(memoryBackend(), async (call, _detail, work) => {
      if (isHeld && call === 'remove') await sweeping.opened
      return work()
    }),
  )
  for (let round = 0; round < 2; round++) {
    await fill(opened, 'demo')
    isHeld = round === 0
    await opened.store.remove('demo')
    await assertGone(opened, 'demo')
    assert.deepEqual(await put(opened.store, 'demo', [{ id: 'fresh', round }]), {
      objects: 1,
      inserted: 1,
      differing: 0,
      differingIds: [],
    })
    assert.deepEqual(await heldOf(opened.store, 'demo', ['fresh', ROOT]), new Set(['fresh']))
    isHeld = false
    sweeping.open()
    await opened.store.idle()
    assert.deepEqual(await listed(opened.store, 'demo', ['fresh', ROOT]), [lineOf({ id: 'fresh', round })])
    await opened.store.remove('demo')
    await opened.store.idle()
  }
  await fill(opened, 'demo')
  await assertThere(opened, 'demo')
  await assertSound(opened.backend)
  assert.deepEqual(opened.background, [])
  const reopened = await opened.reopen()
  await assertThere(reopened, 'demo')
  await reopened.store.close()
})

test('an upload to a project that is removed meanwhile is refused and leaves nothing', async () => {
  for (const point of ['source', 'insertMany'] as const) {
    for (const isSweptFirst of [false, true]) {
      const held = gate()
      let isHeld = false
      let isReached = false
      const inner = memoryBackend()
      const opened = await openStore(
        hooked(inner, async (call, key, work) => {
          if (isHeld && call === point && key.startsWith('o\0')) {
            isReached = true
            await held.opened
          }
          return work()
        }),
      )
      await put(opened.store, 'demo', [{ id: 'x' }])
      isHeld = true
      const source = async function* (): AsyncGenerator<ObjectBatch> {
        yield* batchesOf(GRAPH)
        isReached ||= point === 'source'
        if (point === 'source') await held.opened
      }
      const upload = opened.store.put('demo', source(), { signal: never }).then(
        () => 'acknowledged',
        (error: unknown) => (error as { code: string }).code,
      )
      await until(() => isReached)
      isHeld = point === 'insertMany'
      await opened.store.remove('demo')
      if (isSweptFirst) await opened.store.idle()
      held.open()
      // An upload whose commit came before the removal may still be acknowledged: then it was removed with the rest.
      const outcome = await upload
      assert.ok(
        outcome === 'project_removed' || (point === 'insertMany' && !isSweptFirst && outcome === 'acknowledged'),
        outcome,
      )
      await opened.store.idle()
      await assertGone(opened, 'demo')
      await assertSwept(inner)
      await assertSound(inner)
      await opened.store.close()
    }
  }
})

test('a plan in progress leaves nothing when its project is removed', async () => {
  for (const isSweptFirst of [false, true]) {
    const making = gate()
    const inner = memoryBackend()
    const opened = await openStore(
      hooked(inner, async (call, key, work) => {
        if (call === 'commit' && key.startsWith('p\0')) await making.opened
        return work()
      }),
    )
    await put(opened.store, 'demo', GRAPH)
    await download(opened.store, 'demo', ROOT)
    await opened.store.remove('demo')
    if (isSweptFirst) await turns(50)
    making.open()
    await opened.store.idle()
    await assertSwept(inner)
    await opened.store.close()
  }
})

test('a reader of a project that is removed gets all of it or an error', async () => {
  const opened = await openStore()
  await put(opened.store, 'demo', GRAPH.slice(0, 40))
  await put(opened.store, 'demo', GRAPH.slice(40, 80))
  await opened.store.close()
  for (let at = 0; at < 12; at++) {
    const inner = memoryBackend()
    let calls = -1
    const removing = gate()
    const reader = await openStore(
      hooked(inner, async (call, _detail, work) => {
        if (calls >= 0 && call === 'getMany' && calls++ === at) await removing.opened
        return work()
      }),
    )
    await put(reader.store, 'demo', GRAPH.slice(0, 40))
    await put(reader.store, 'demo', GRAPH.slice(40, 80))
    const remover = await openStore(inner)
    calls = 0
    let hasEnded = false
    const reading = download(reader.store, 'demo', ROOT).finally(() => (hasEnded = true))
    reading.catch(() => undefined)
    await until(() => calls > at || hasEnded)
    await remover.store.remove('demo')
    await remover.store.idle()
    removing.open()
    const got = await within('a download', reading).catch((error: unknown) => (error as { code: string }).code)
    if (typeof got === 'object') assert.ok(got.ids.size > 1)
    else assert.ok(got === undefined || got === 'not_found', got)
    await reader.store.close()
    await remover.store.close()
  }
})

test('a download that meets the sweep of its project reports the removal, not damage', async () => {
  for (const isPlanned of [false, true]) {
    const opened = await openStore(memoryBackend())
    if (isPlanned) await fill(opened, 'demo')
    // One pack, too large to lie inside its record: those are read from memory, whatever the sweep has done.
    else await put(opened.store, 'demo', GRAPH)
    const selection = await opened.store.closure('demo', ROOT, { signal: never })
    assert.ok(selection !== undefined)
    await opened.store.remove('demo')
    await opened.store.idle()
    await assert.rejects(readLines(selection), { code: 'not_found', message: /removed while it was read/ })
    selection.release()
    assert.deepEqual(opened.background, [])
    await opened.store.close()
  }
})

test('ids that the sweep of a removed project missed are removed when they are found', async () => {
  const { store, backend } = await openStore()
  await put(store, 'demo', GRAPH.slice(0, 3))
  await store.remove('demo')
  await store.idle()
  await put(store, 'demo', GRAPH.slice(3, 5))
  const key = objectKeyMaker('demo', 1)(Buffer.from('late'))
  await backend.records.insertMany([{ key, value: Buffer.from('of a server that slept') }])
  await markLeftIds(backend.records, never)
  await store.close()
  const reopened = await openStore(backend)
  await reopened.store.idle()
  assert.deepEqual(await backend.records.getMany([key, garbageKey('demo', 1)]), [undefined, undefined])
  assert.equal(await heldCount(reopened.store, 'demo', GRAPH.slice(3, 5)), 2)
  await reopened.store.close()
})

test('a sweep keeps a mark that was written while it ran', async () => {
  const { store, backend } = await openStore()
  await put(store, 'demo', GRAPH.slice(0, 3))
  await store.remove('demo')
  await store.idle()
  await backend.records.insertMany([garbageEntry('demo', 1)])
  const again = garbageEntryAgain({ projectId: 'demo', generation: 1 }, REAL_ENVIRONMENT)
  const hook = hooked(backend, async (call, name, work) => {
    // The sweep looks at the tombstone first.
    if (call === 'read' && name === tombstoneBlobName('demo', 1)) await backend.records.commit({ put: [again] })
    return work()
  })
  await sweepGarbage({ ...hook, nowMs: () => 0, environment: REAL_ENVIRONMENT }, never)
  assert.deepEqual(await backend.records.getMany([again.key]), [again.value])
  await sweepGarbage({ ...backend, nowMs: () => 0, environment: REAL_ENVIRONMENT }, never)
  assert.deepEqual(await backend.records.getMany([again.key]), [undefined])
  await store.close()
})

test('a tombstone that a crash cut short is rewritten', async () => {
  const opened = await openStore()
  const { blobs } = opened.backend
  const name = tombstoneBlobName('torn', 1)
  await put(opened.store, 'torn', GRAPH.slice(0, 3))
  await blobs.put(name, batchOf(Buffer.from('{"projectId":"to')))
  await opened.store.remove('torn')
  await opened.store.idle()
  const [[{ sizeBytes }]] = await collected(blobs.list(name))
  assert.deepEqual((await readTombstone(blobs, name, sizeBytes)).projectId, 'torn')
})

test('a check notes a tombstone that a crash cut short, and reports a damaged one as damage', async () => {
  const opened = await openStore()
  const { blobs } = opened.backend
  const name = tombstoneBlobName('torn', 1)
  const bytes = Buffer.from('{"projectId":"torn","generation":1,"removedAtMs":1}\nnot its checksum\n')
  await put(opened.store, 'torn', GRAPH.slice(0, 3))
  await opened.store.remove('torn')
  await opened.store.idle()
  const at = bytes.indexOf('removed')
  for (const [content, severity] of [
    [bytes.subarray(0, at), 'note'],
    [bytes, 'damage'],
    [Buffer.concat([bytes.subarray(0, at), Buffer.alloc(bytes.length - at)]), 'damage'],
  ] as const) {
    await blobs.remove([name])
    await blobs.put(name, batchOf(content))
    const findings = (await collected(checkStore(opened.backend))).filter(({ subject }) => subject === `blob ${name}`)
    assert.deepEqual(
      findings.map((finding) => finding.severity),
      [severity],
    )
  }
})

async function* batchOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
