import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HaveRoot } from '../../src/object/graph-store.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { gate, hooked, writesIds } from './failures.ts'
import { Oracle, randomGraph, referTo, seeded } from './graphs.ts'
import { assertSound, download, type Made, type Opened, openStore, put, until } from './support.ts'

interface Versions {
  readonly opened: Opened
  readonly oracle: Oracle
  /** Roots of versions, the oldest first; each shares most of its objects with the one before. */
  readonly roots: readonly string[]
}

/** Versions of one model: in each, some objects and everything above them are new. */
async function versions(objects: number, count: number): Promise<Versions> {
  const random = seeded(objects)
  const opened = await openStore()
  const oracle = new Oracle()
  let graph = randomGraph(random, { objects, paddingBytes: 300 })
  const roots = [graph[0].id]
  const upload = async (all: readonly Made[]): Promise<void> => {
    await put(opened.store, 'demo', all)
    oracle.add(all)
  }
  await upload(graph)
  for (let version = 1; version < count; version++) {
    graph = nextVersion(graph, version, random)
    roots.push(graph[0].id)
    await upload(graph)
  }
  return { opened, oracle, roots }
}

function nextVersion(graph: readonly Made[], version: number, random: (below: number) => number): Made[] {
  const changed = new Set(
    Array.from({ length: Math.ceil(graph.length / 100) }, () => graph[random(graph.length)].id).concat(graph[0].id),
  )
  const childrenOf = (object: Made): string[] =>
    (object['children'] as { referencedId: string }[]).map(({ referencedId }) => referencedId)
  for (const object of graph.toReversed()) if (childrenOf(object).some((id) => changed.has(id))) changed.add(object.id)
  const nameOf = (id: string): string => (changed.has(id) ? `${id.split('@')[0]}@${version}` : id)
  return graph.map((object) =>
    changed.has(object.id)
      ? { ...object, id: nameOf(object.id), children: referTo(childrenOf(object).map(nameOf)) }
      : object,
  )
}

function without(all: Iterable<string>, had: readonly ReadonlySet<string>[], root: string): string[] {
  return [...all].filter((id) => id === root || !had.some((ids) => ids.has(id)))
}

async function assertSubtracts(
  { opened, oracle }: Versions,
  root: string,
  have: readonly HaveRoot[],
  outcomes: readonly string[],
): Promise<void> {
  const had = have.filter((_, i) => outcomes[i] === 'subtracted').map(({ id }) => oracle.closure(id).ids)
  for (let pass = 0; pass < 2; pass++) {
    const got = await download(opened.store, 'demo', root, have)
    assert.deepEqual(
      got?.have,
      have.map(({ id }, i) => ({ id, outcome: outcomes[i] })),
    )
    assert.deepEqual(got?.lines.toSorted(), oracle.lines(without(oracle.closure(root).ids, had, root)))
    await opened.store.idle()
    if (pass === 1) assert.ok(got?.isPlanned)
    const whole = await download(opened.store, 'demo', root)
    assert.equal(got?.digest, whole?.digest, 'the digest names the closure, not what is left of it')
  }
}

test('objects of the client are left out, but never the root, in small and stored plans', async () => {
  for (const objects of [300, 1_100]) {
    const made = await versions(objects, 3)
    const [first, second, third] = made.roots
    await assertSubtracts(made, third, [{ id: first }], ['subtracted'])
    if (objects > 1_000) {
      const reopened = await made.opened.reopen()
      await assertSubtracts({ ...made, opened: reopened }, third, [{ id: first }], ['subtracted'])
      await reopened.store.close()
      continue
    }
    await assertSubtracts(made, third, [{ id: first }, { id: second }], ['subtracted', 'subtracted'])
    await assertSubtracts(made, third, [{ id: second }, { id: first }], ['subtracted', 'subtracted'])
    await assertSubtracts(made, first, [{ id: third }], ['subtracted'])
    await assertSubtracts(made, third, [{ id: third }], ['subtracted'])
    await assertSubtracts(made, third, [], [])
    const digest = (await download(made.opened.store, 'demo', first))?.digest
    await assertSubtracts(
      made,
      third,
      [
        { id: first, digest },
        { id: second, digest },
      ],
      ['subtracted', 'digest-mismatch'],
    )
    await assertSubtracts(made, third, [{ id: 'nowhere' }, { id: first }], ['unknown', 'subtracted'])
    await assertSound(made.opened.backend)
    await made.opened.store.close()
  }
})

test('without a digest, only objects of a closure complete since its root arrived are left out', async () => {
  const opened = await openStore()
  const oracle = new Oracle()
  const made: Versions = { opened, oracle, roots: [] }
  const upload = async (...objects: Made[]): Promise<void> => {
    await put(opened.store, 'demo', objects)
    oracle.add(objects)
  }
  await upload(
    { id: 'below' },
    { id: 'old', children: referTo(['below', 'late']) },
    { id: 'whole', children: referTo(['below']) },
  )
  await upload({ id: 'new', children: referTo(['old', 'whole', 'below']) })
  const before = (await download(opened.store, 'demo', 'old'))?.digest
  await assertSubtracts(made, 'new', [{ id: 'old' }], ['incomplete'])
  await assertSubtracts(made, 'new', [{ id: 'old', digest: before }], ['subtracted'])
  await upload({ id: 'late' })
  const after = (await download(opened.store, 'demo', 'old'))?.digest
  assert.notEqual(after, before)
  // Who has downloaded it before the last part came does not have that part.
  await assertSubtracts(made, 'new', [{ id: 'old' }], ['incomplete'])
  await assertSubtracts(made, 'new', [{ id: 'old', digest: before }], ['digest-mismatch'])
  await assertSubtracts(made, 'new', [{ id: 'old', digest: after }], ['subtracted'])
  await assertSubtracts(made, 'new', [{ id: 'whole' }], ['subtracted'])
  await opened.store.close()
})

test('a later claim changes the old closure', async () => {
  const opened = await openStore()
  const oracle = new Oracle()
  const objects: Made[] = [
    { id: 'old', __closure: { claimed: 1 } },
    { id: 'new', children: referTo(['old', 'claimed']) },
  ]
  for (const object of objects) await put(opened.store, 'demo', [object])
  oracle.add(objects)
  const made: Versions = { opened, oracle, roots: [] }
  await assertSubtracts(made, 'new', [{ id: 'old' }], ['subtracted'])
  await put(opened.store, 'demo', [{ id: 'claimed' }])
  oracle.add([{ id: 'claimed' }])
  await assertSubtracts(made, 'new', [{ id: 'old' }], ['incomplete'])
  await opened.store.close()
})

test('objects of other projects are never left out', async () => {
  const opened = await openStore()
  const objects: Made[] = [{ id: 'a', children: referTo(['b']) }, { id: 'b' }]
  await put(opened.store, 'demo', objects)
  await put(opened.store, 'other', [...objects, { id: 'c', children: referTo(['a']) }])
  const oracle = new Oracle()
  oracle.add(objects)
  await assertSubtracts({ opened, oracle, roots: [] }, 'a', [{ id: 'c' }], ['unknown'])
  await opened.store.close()
})

test('without a digest, nothing is left out for a root that was visible before something below it', async () => {
  const inner = memoryBackend()
  const applying = gate()
  let isApplying = false
  const slow = await openStore(
    hooked(inner, async (call, key, work) => {
      if (writesIds(call, key)) {
        isApplying = true
        await applying.opened
      }
      return work()
    }),
  )
  const opened = await openStore(inner)
  const child = put(slow.store, 'demo', [{ id: 'child' }])
  await until(() => isApplying)
  // The child has a lower number than the root, and nobody can see it yet.
  await put(opened.store, 'demo', [{ id: 'root', children: referTo(['child']) }])
  const early = await download(opened.store, 'demo', 'root')
  assert.deepEqual(early?.missing, ['child'])
  applying.open()
  await child
  await put(opened.store, 'demo', [{ id: 'newer', children: referTo(['root', 'child']) }])
  const bare = await download(opened.store, 'demo', 'newer', [{ id: 'root' }])
  assert.deepEqual(bare?.have, [{ id: 'root', outcome: 'incomplete' }])
  assert.equal(bare.lines.length, 3)
  // The newer root came when everything else was there.
  const newest = await download(opened.store, 'demo', 'newer', [{ id: 'newer' }])
  assert.deepEqual(newest?.have, [{ id: 'newer', outcome: 'subtracted' }])
  await Promise.all([slow.store.close(), opened.store.close()])
  await assertSound(inner)
})

test('without a digest, nothing is left out for a root that another object of its pack refers to, or that was there before', async () => {
  const inner = memoryBackend()
  const opened = await openStore(inner)
  const outcome = async (id: string): Promise<string | undefined> =>
    (await download(opened.store, 'demo', 'top', [{ id }]))?.have?.[0].outcome
  await put(opened.store, 'demo', [
    { id: 'top', children: referTo(['middle']) },
    { id: 'middle', children: referTo(['leaf']) },
    { id: 'leaf' },
  ])
  assert.equal(await outcome('middle'), 'incomplete')
  assert.equal(await outcome('top'), 'subtracted')
  // The record of the last object is written by another upload just before the pack is applied.
  let isFirst = true
  const late = await openStore(
    hooked(inner, async (call, key, work) => {
      if (writesIds(call, key) && key.endsWith('\0both\0') && isFirst) {
        isFirst = false
        await put(opened.store, 'demo', [{ id: 'both', from: 'the other' }])
      }
      return work()
    }),
  )
  const result = await put(late.store, 'demo', [{ id: 'both' }])
  assert.deepEqual([result.inserted, result.differing], [0, 1])
  assert.equal((await download(opened.store, 'demo', 'both'))?.lines.length, 1)
  await Promise.all([late.store.close(), opened.store.close()])
  await assertSound(inner)
})
