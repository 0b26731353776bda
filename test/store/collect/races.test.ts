import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StowageError } from '../../../src/errors.ts'
import { assertSound, download, heldOf, listed, never, put } from '../support.ts'
import { gate, hooked } from '../failures.ts'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { asGuarded } from '../../../src/storage/guard.ts'
import { jsonBytesOf, node, OLDER_THAN, openCollecting, PROJECT, TERMS, UNDO } from './collecting.ts'

const KEPT = [node('kept', ['kept-leaf']), node('kept-leaf')]
const GOING = [node('going', ['going-leaf']), node('going-leaf', [], 'x'.repeat(500))]
const GOING_IDS = GOING.map(({ id }) => id)

/** A project in which `GOING` is condemned. */
async function condemned(count = 1): Promise<Awaited<ReturnType<typeof openCollecting>>> {
  const collecting = await openCollecting(count)
  const { store, roots, pass, collect } = collecting
  await put(store, PROJECT, KEPT)
  await put(store, PROJECT, GOING)
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  assert.equal((await collect()).condemned.objects, 2)
  return collecting
}

test('a young object keeps everything below it', async () => {
  const { store, roots, pass, collect, close } = await openCollecting()
  await put(store, PROJECT, KEPT)
  await put(store, PROJECT, GOING)
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  await put(store, PROJECT, [node('young', ['going-leaf'])])
  const report = await collect()
  assert.equal(report.condemned.objects, 1, 'nothing leads to the parent')
  assert.deepEqual(await heldOf(store, PROJECT, [...GOING_IDS, 'young']), new Set(['going-leaf', 'young']))
  assert.equal(report.young.objects, 2)
  await close()
})

test('an upload that refers to a condemned object revives it', async () => {
  const { store, pass, collect, close } = await condemned()
  await put(store, PROJECT, [node('young', ['going-leaf'])])
  await pass(UNDO + 1)
  const report = await collect()
  assert.deepEqual([report.revived.objects, report.freed.objects], [1, 1])
  assert.deepEqual(await heldOf(store, PROJECT, [...GOING_IDS, 'young']), new Set(['going-leaf', 'young']))
  await close()
})

test('a condemned object that is uploaded again is written anew, and counts once', async () => {
  const { store, backend, roots, pass, collect, close } = await condemned()
  const again = [node('going', ['going-leaf'], 'another text'), GOING[1]]
  assert.deepEqual(await put(store, PROJECT, again), { objects: 2, inserted: 2, differing: 0, differingIds: [] })
  roots.add('going')
  const usage = await store.usages.usage(PROJECT, [], { signal: never })
  assert.deepEqual([usage.objects, usage.jsonBytes], [4, jsonBytesOf([...KEPT, ...again])])
  await pass(UNDO + 1)
  const report = await collect()
  assert.deepEqual([report.replacedCopies.objects, report.freed.objects], [2, 0])
  assert.equal((await collect()).replacedCopies.objects, 0, 'replaced copies are counted once')
  await pass(OLDER_THAN + UNDO + 2)
  await collect()
  assert.deepEqual((await download(store, PROJECT, 'going'))?.ids, new Set(GOING_IDS))
  assert.deepEqual(await listed(store, PROJECT, ['going']), [`going\t${JSON.stringify(again[0])}`])
  await assertSound(backend)
  await close()
})

test('a pin on condemned objects revives them', async () => {
  const { store, backend, roots, pass, collect, close } = await condemned()
  await store.pins.add(PROJECT, { rootObjectId: 'going' })
  assert.equal((await heldOf(store, PROJECT, GOING_IDS)).size, 2)
  roots.add('going')
  await pass(OLDER_THAN + UNDO + 2)
  assert.deepEqual((await collect()).freed.objects, 0)
  assert.deepEqual((await download(store, PROJECT, 'going'))?.ids, new Set(GOING_IDS))
  await assertSound(backend)
  await close()
})

test('a stored plan that names freed objects is not used any more', async () => {
  const { store, backend, roots, pass, collect, close } = await openCollecting()
  const leaves = Array.from({ length: 1_500 }, (_, i) => node(`leaf${i}`))
  await put(store, PROJECT, [
    node('kept'),
    node(
      'middle',
      leaves.map(({ id }) => id),
    ),
    ...leaves,
  ])
  await put(store, PROJECT, [node('top', ['middle'])])
  const { isPlanned, ids } = (await download(store, PROJECT, 'top')) ?? {}
  assert.deepEqual([isPlanned, ids?.size], [true, leaves.length + 2])
  await store.idle()
  await pass(OLDER_THAN + 1)
  roots.add('kept')
  await collect()
  await pass(UNDO + 1)
  assert.equal((await collect()).freed.objects, leaves.length + 2)
  await put(store, PROJECT, [node('top', ['middle'])])
  const again = await openCollecting(1, backend)
  for (const one of [store, again.store]) assert.deepEqual((await download(one, PROJECT, 'top'))?.missing, ['middle'])
  await collect()
  await again.close()
  await close()
})

test('a version that is created while its objects are being condemned keeps them', async () => {
  const memory = asGuarded(memoryBackend())
  const atObjects = gate()
  const reached = gate()
  let isArmed = false
  const backend = hooked(memory, async (call, detail, work) => {
    if (isArmed && call === 'commit' && detail.startsWith('o')) {
      isArmed = false
      reached.open()
      await atObjects.opened
    }
    return work()
  })
  const one = await openCollecting(1, backend)
  const other = await openCollecting(1, memory)
  await put(one.store, PROJECT, [...KEPT, ...GOING])
  one.roots.add('kept')
  await one.pass(OLDER_THAN + 1)
  isArmed = true
  const collecting = one.collect()
  await reached.opened
  // The packs say that they are in doubt, their records do not yet: the check finds nothing to revive.
  const epoch = await other.store.collector.revive(PROJECT, 'going', { signal: never })
  one.roots.add('going')
  atObjects.open()
  assert.equal((await collecting).condemned.objects, 2)
  assert.equal(epoch.number, OLDER_THAN + 1)
  await one.pass(UNDO + 1)
  assert.deepEqual((await one.collect()).freed.objects, 0)
  assert.equal((await heldOf(one.store, PROJECT, GOING_IDS)).size, 2, 'the next collection revives what it reaches')
  for (const each of [one, other]) await each.close()
})

test('a pin is refused when its objects are condemned and freed between its check and its commit', async () => {
  const memory = asGuarded(memoryBackend())
  let before: (() => Promise<void>) | undefined
  const backend = hooked(memory, async (call, detail, work) => {
    const act = call === 'commit' && detail.startsWith('r') ? before : undefined
    before = act === undefined ? before : undefined
    await act?.()
    return work()
  })
  const pinning = await openCollecting(1, backend)
  const { store, roots, pass, collect, close } = await openCollecting(1, memory)
  await put(store, PROJECT, [...KEPT, ...GOING])
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  before = async () => {
    assert.equal((await collect()).condemned.objects, 2)
    await pass(UNDO + 1)
    assert.equal((await collect()).freed.objects, 2)
  }
  await assert.rejects(
    pinning.store.pins.add(PROJECT, { rootObjectId: 'going' }),
    (error: StowageError) => error.code === 'objects_missing',
  )
  assert.deepEqual(await store.pins.list(PROJECT), [])
  await close()
  await pinning.close()
})

test('condemned objects can be restored until they are freed', async () => {
  const { store, backend, pass, collect, close } = await condemned()
  const signal = never
  const restored = await store.collector.restore(PROJECT, { signal })
  assert.deepEqual([restored?.objects, restored?.jsonBytes], [2, jsonBytesOf(GOING)])
  assert.equal((await heldOf(store, PROJECT, GOING_IDS)).size, 2)
  await pass(OLDER_THAN)
  assert.equal((await collect()).condemned.objects, 0, 'what was restored is young')
  await pass(1)
  assert.equal((await collect()).condemned.objects, 2)
  await pass(UNDO + 1)
  assert.equal((await collect()).freed.objects, 2)
  assert.equal((await store.collector.restore(PROJECT, { signal }))?.objects, 0)
  assert.equal((await listed(store, PROJECT, GOING_IDS)).length, 0)
  await assertSound(backend)
  await close()
})

test('a project without roots is never collected, but frees what was chosen', async () => {
  const { store, readRoots, pass, collect, close } = await openCollecting()
  await put(store, PROJECT, [...KEPT, ...GOING, node('top', ['kept'])])
  await pass(100)
  const report = await collect()
  assert.deepEqual([report.skipped, report.condemned.objects, report.held.objects], ['noRoots', 0, 5])
  const chosen = await store.collector.condemn(PROJECT, ['going', 'kept', 'nothing'], readRoots, TERMS)
  assert.deepEqual([chosen?.condemned.objects, chosen?.keptIds, chosen?.missing], [2, ['kept'], 1])
  await pass(UNDO + 1)
  assert.equal((await collect()).freed.objects, 2)
  assert.deepEqual(
    await heldOf(store, PROJECT, ['top', 'kept', 'kept-leaf', ...GOING_IDS]),
    new Set(['top', 'kept', 'kept-leaf']),
  )
  await close()
})

test('two servers that collect at the same time do the work once', async () => {
  const { stores, backend, roots, store, pass, collect, close } = await openCollecting(2)
  await put(store, PROJECT, KEPT)
  for (let i = 0; i < 30; i++) await put(store, PROJECT, [node(`z${i}`, [`y${i}`]), node(`y${i}`)])
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  const both = await Promise.all(stores.map((one) => collect({}, one)))
  assert.equal(both[0].condemned.objects + both[1].condemned.objects, 60)
  await pass(UNDO + 1)
  const freed = await Promise.all(stores.map((one) => collect({}, one)))
  assert.equal(freed[0].freed.objects + freed[1].freed.objects, 60)
  const usage = await stores[1].usages.usage(PROJECT, [], { signal: never })
  assert.deepEqual([usage.objects, usage.jsonBytes], [2, jsonBytesOf(KEPT)])
  await assertSound(backend)
  await close()
})

test('a project that is removed while it is collected is left alone', async () => {
  const { store, backend, pass, readRoots, close } = await condemned()
  await pass(UNDO + 1)
  let isRemoved = false
  const removing = async (): ReturnType<typeof readRoots> => {
    if (!isRemoved) await store.remove(PROJECT)
    isRemoved = true
    await put(store, PROJECT, KEPT)
    return readRoots()
  }
  await store.collector.collect(PROJECT, removing, TERMS)
  assert.equal((await heldOf(store, PROJECT, ['kept', 'kept-leaf'])).size, 2)
  await store.idle()
  await assertSound(backend)
  await close()
})

test('a download contains an object once, even if it is uploaded again while the objects are chosen', async () => {
  const memory = asGuarded(memoryBackend())
  let look: (() => Promise<unknown>) | undefined
  const backend = hooked(memory, async (call, detail, work) => {
    const answer = await work()
    // The first round of look-ups that asks for the leaf: other paths lead to it in later rounds.
    if (call === 'getMany' && detail.includes('going-leaf') && look !== undefined) {
      const act = look
      look = undefined
      await act()
    }
    return answer
  })
  const one = await openCollecting(1, backend)
  const other = await openCollecting(1, memory)
  await put(one.store, PROJECT, KEPT)
  await put(one.store, PROJECT, GOING)
  one.roots.add('kept')
  await one.pass(OLDER_THAN + 1)
  assert.equal((await one.collect()).condemned.objects, 2)
  await put(one.store, PROJECT, [node('top', ['going-leaf', 'middle'])])
  await put(one.store, PROJECT, [node('middle', ['low'])])
  await put(one.store, PROJECT, [node('low', ['going-leaf'])])
  look = () => put(other.store, PROJECT, [GOING[1]])
  const { ids } = (await download(one.store, PROJECT, 'top')) ?? {}
  assert.equal(look, undefined, 'the leaf was looked up')
  assert.deepEqual(ids, new Set(['top', 'middle', 'low', 'going-leaf']))
  for (const each of [one, other]) await each.close()
})

test('usage counts objects that are uploaded again below a root that already has a plan', async () => {
  const { store, pass, close } = await condemned()
  assert.deepEqual((await download(store, PROJECT, 'going'))?.ids, new Set(GOING_IDS))
  await put(store, PROJECT, [GOING[1]])
  await pass(1)
  const root = { kind: 'version', id: 'v', groupId: 'm', rootObjectId: 'going' } as const
  const usage = await store.usages.usage(PROJECT, [root], { signal: never })
  assert.equal(usage.roots[0].objects, GOING.length)
  assert.equal(usage.unreferencedObjects, KEPT.length)
  await close()
})
