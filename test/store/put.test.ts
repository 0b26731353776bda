import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Oracle, randomGraph, referTo, seeded, shuffled, splitRandomly } from './graphs.ts'
import {
  assertListed,
  assertSound,
  download,
  heldOf,
  lineOf,
  listed,
  type Made,
  measureStorage,
  openStore,
  put,
} from './support.ts'

function numbered(count: number, prefix = 'o', padding = ''): Made[] {
  return Array.from({ length: count }, (_, i) => ({ id: `${prefix}${i}`, number: i, padding }))
}

test('an upload is stored with all its texts and counted', async () => {
  const { store, backend } = await openStore()
  const objects = numbered(2_500)
  assert.deepEqual(await put(store, 'demo', objects), {
    objects: 2_500,
    inserted: 2_500,
    differing: 0,
    differingIds: [],
  })
  await assertListed(store, 'demo', objects)
  assert.deepEqual(await heldOf(store, 'demo', ['o0', 'o2499', 'o2500', '']), new Set(['o0', 'o2499']))
  assert.deepEqual(await heldOf(store, 'other', ['o0']), new Set())
  await store.idle()
  await assertSound(backend)
  await store.close()
})

test('the first text of an id wins, within and across uploads, and each id counts once', async () => {
  const { store, backend } = await openStore()
  const same: Made = { id: 'a', text: 1 }
  const other: Made = { id: 'a', text: 2 }
  const b: Made = { id: 'b' }
  assert.deepEqual(await put(store, 'demo', [same, same, other, b]), {
    objects: 2,
    inserted: 2,
    differing: 1,
    differingIds: ['a'],
  })
  assert.deepEqual(await listed(store, 'demo', ['a']), [lineOf(same)])
  assert.deepEqual(await put(store, 'demo', [other, b, b]), {
    objects: 2,
    inserted: 0,
    differing: 1,
    differingIds: ['a'],
  })
  assert.deepEqual(await put(store, 'demo', [{ id: 'a', text: 10 }, { id: 'c' }]), {
    objects: 2,
    inserted: 1,
    differing: 1,
    differingIds: ['a'],
  })
  assert.deepEqual(await listed(store, 'demo', ['a', 'b', 'c']), [lineOf(same), lineOf(b), lineOf({ id: 'c' })])
  await assertSound(backend)
  await store.close()
})

test('a repeated upload writes nothing', async () => {
  const { store, backend } = await openStore()
  const objects = numbered(5_000, 'o', 'x'.repeat(20))
  await put(store, 'demo', objects)
  await store.idle()
  const before = await measureStorage(backend)
  for (const again of [objects, objects.toReversed(), objects.slice(7)]) {
    assert.deepEqual(await put(store, 'demo', again), {
      objects: again.length,
      inserted: 0,
      differing: 0,
      differingIds: [],
    })
  }
  await store.idle()
  assert.deepEqual(await measureStorage(backend), before)
  await store.close()
})

test('an empty upload creates no project', async () => {
  const { store, backend } = await openStore()
  assert.deepEqual(await put(store, 'demo', []), { objects: 0, inserted: 0, differing: 0, differingIds: [] })
  assert.deepEqual((await measureStorage(backend)).records, {})
  await store.close()
})

test('a hundred clients that upload the same object at once store one value, and each can read it', async () => {
  const { store, backend } = await openStore()
  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_, client) => {
      const result = await put(store, 'demo', [{ id: 'same', from: client }, { id: `own${client}` }])
      const lines = await listed(store, 'demo', ['same', `own${client}`])
      return { ...result, lines }
    }),
  )
  const values = new Set(answers.flatMap(({ lines }) => lines.filter((line) => line.startsWith('same\t'))))
  assert.equal(values.size, 1)
  assert.ok(answers.every(({ lines }) => lines.length === 2))
  assert.equal(
    answers.reduce((sum, { inserted }) => sum + inserted, 0),
    101,
  )
  assert.equal(
    answers.reduce((sum, { differing }) => sum + differing, 0),
    99,
  )
  await assertSound(backend)
  assert.equal((await measureStorage(backend)).records['w'], undefined)
  await store.close()
})

test('concurrent uploads with mostly the same ids give each id one owner', async () => {
  const random = seeded(5)
  const { store, backend, background } = await openStore()
  const graph = randomGraph(random, { objects: 2_000, paddingBytes: 60 })
  const uploads = Array.from({ length: 10 }, () => shuffled(random, graph).slice(0, 1_500))
  const results = await Promise.all(uploads.map((objects) => put(store, 'demo', objects, 300)))
  const distinct = new Set(uploads.flat().map(({ id }) => id))
  assert.equal(
    results.reduce((sum, { inserted }) => sum + inserted, 0),
    distinct.size,
  )
  assert.ok(results.every(({ objects, differing }) => objects === 1_500 && differing === 0))
  const oracle = new Oracle()
  oracle.add(uploads.flat())
  const { ids } = oracle.closure(graph[0].id)
  assert.deepEqual((await download(store, 'demo', graph[0].id))?.lines.toSorted(), oracle.lines(ids))
  await store.idle()
  await assertSound(backend)
  assert.deepEqual(background, [])
  await store.close()
})

test('acknowledged objects can be read at once, by id, in a list and below their root', async () => {
  const { store } = await openStore()
  const random = seeded(11)
  const oracle = new Oracle()
  const uploads = splitRandomly(random, randomGraph(random, { objects: 600, missingPercent: 10 }), 30).map((run) => [
    ...run,
    { id: 'root', children: [] },
  ])
  await put(store, 'demo', [{ id: 'top', children: referTo(['n0']) }])
  oracle.add([{ id: 'top', children: referTo(['n0']) }])
  await Promise.all(
    uploads.map(async (objects) => {
      await put(store, 'demo', objects)
      const ids = objects.map(({ id }) => id)
      const [held, lines, below] = await Promise.all([
        heldOf(store, 'demo', ids),
        listed(store, 'demo', ids),
        download(store, 'demo', objects[0].id),
      ])
      assert.deepEqual(held, new Set(ids))
      assert.deepEqual(lines.toSorted(), objects.map(lineOf).sort())
      const own = new Oracle()
      own.add(objects)
      for (const id of own.closure(objects[0].id).ids) assert.ok(below?.ids.has(id), `${id} was acknowledged`)
    }),
  )
  for (const objects of uploads) oracle.add(objects)
  const { ids, missing } = oracle.closure('top')
  const got = await download(store, 'demo', 'top')
  assert.deepEqual(got?.lines.toSorted(), oracle.lines(ids))
  assert.deepEqual(got?.missing, missing)
  await store.close()
})

test('ids of every length and alphabet, and objects of every size, are returned unchanged', async () => {
  const { store, backend } = await openStore()
  const idOf = (length: number, letter: string): string => letter.repeat(length)
  const objects: Made[] = [
    { id: idOf(512, 'x') },
    { id: idOf(256, 'é') },
    { id: idOf(128, '𝄞') },
    { id: '.' },
    { id: '../x' },
    { id: 'C:\\x' },
    { id: ' ' },
    { id: '"' },
    { id: 'é' },
    { id: 'e\u0301' },
    { id: '__proto__' },
    { id: '0' },
    { id: '00' },
    { id: '\u{10ffff}' },
  ]
  for (const bytes of [16_383, 16_384, 16_385]) {
    // A line is the id, a TAB, the text and a LF.
    const bare = Buffer.byteLength(lineOf({ id: `edge${bytes}`, pad: '' })) + 1
    objects.push({ id: `edge${bytes}`, pad: 'p'.repeat(bytes - bare) }, { id: `after${bytes}` })
  }
  objects.push({ id: 'huge', pad: Array.from({ length: 60_000 }, (_, i) => i * 7_919) }, { id: 'last' })
  for (const project of ['tiny', 'whole']) {
    if (project === 'tiny') for (const object of objects) await put(store, project, [object])
    else await put(store, project, objects, 3)
    for (const object of objects) assert.deepEqual(await listed(store, project, [object.id]), [lineOf(object)])
    await assertListed(store, project, objects)
  }
  await assertSound(backend)
  await store.close()
})

test('packs up to 48 KB are stored in their records, larger ones in blobs', async () => {
  const random = seeded(3)
  const noise = (bytes: number): string =>
    Array.from({ length: bytes / 8 }, () =>
      random(2 ** 32)
        .toString(16)
        .padStart(8, '0'),
    ).join('')
  let inline = 0
  let blobs = 0
  const { store, backend } = await openStore()
  for (let bytes = 80_000; bytes < 100_000; bytes += 800) {
    const object: Made = { id: `o${bytes}`, noise: noise(bytes) }
    const before = (await measureStorage(backend)).blobs.length
    await put(store, 'demo', [object])
    if ((await measureStorage(backend)).blobs.length > before) blobs++
    else inline++
    assert.deepEqual(await listed(store, 'demo', [object.id]), [lineOf(object)])
  }
  assert.ok(inline > 0 && blobs > 0, `${inline} inline, ${blobs} blobs`)
  await assertSound(backend)
  await store.close()
})
