import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyDelta, parseDelta } from '../../src/delta/delta.ts'
import { MemoryBudget, type MemoryLease } from '../../src/memory/memory-budget.ts'
import type { Selection } from '../../src/object/selection.ts'
import { type Made, never, openStore, type Opened, put, readLines, textOf } from './support.ts'
import { Oracle, type Random, randomGraph, referTo, seeded } from './graphs.ts'
import { eventually } from '../support/patience.ts'

const TEXT_BYTES_MAX = 10_485_760

interface Received {
  /** Lines as they would have come without deltas, in order of their ids. */
  readonly lines: readonly string[]
  readonly deltas: number
  /** Characters that came, and that would have come. */
  readonly came: number
  readonly whole: number
  readonly selection: Selection
}

/** Downloads what is new below a root as deltas, and undoes them. Every base must be an object that the client has. */
async function received(
  { store }: Opened,
  oracle: Oracle,
  root: string,
  have: string,
  memory?: MemoryLease,
): Promise<Received> {
  const older = await store.closure('demo', have, { signal: never })
  const digest = older?.closureDigest
  older?.release()
  const selection = await store.closure('demo', root, {
    signal: never,
    have: [{ id: have, digest }],
    deltas: true,
    memory,
  })
  assert.ok(selection !== undefined)
  const had = oracle.closure(have).ids
  const came = await readLines(selection)
  assert.ok(came[0].startsWith(`${root}\t`), 'the root comes first')
  const lines = came.map((line) =>
    wholeLine(line, (id) => {
      assert.ok(had.has(id), `${id} is not below ${have}`)
      return textOf(oracle.objects.get(id) as Made)
    }),
  )
  selection.release()
  const deltas = came.filter((line) => line.includes('\t[')).length
  return { lines: lines.toSorted(), deltas, came: came.join().length, whole: lines.join().length, selection }
}

function wholeLine(line: string, baseOf: (id: string) => string): string {
  const tab = line.indexOf('\t')
  const text = line.slice(tab + 1)
  if (!text.startsWith('[')) return line
  const delta = parseDelta(text)
  return `${line.slice(0, tab)}\t${Buffer.from(applyDelta(delta, Buffer.from(baseOf(delta.baseId)), TEXT_BYTES_MAX)).toString()}`
}

/** Some objects and all that stands above them with other texts and ids; some parents lose a child, or get one more. */
function nextVersion(graph: readonly Made[], version: number, random: Random): Made[] {
  const changed = new Set(
    Array.from({ length: Math.ceil(graph.length / 50) }, () => graph[random(graph.length)].id).concat(graph[0].id),
  )
  for (const object of graph.toReversed()) if (childrenOf(object).some((id) => changed.has(id))) changed.add(object.id)
  const nameOf = (id: string): string => (changed.has(id) ? `${id.split('@')[0]}@${version}` : id)
  const more: Made[] = []
  const all = graph.map((object) => {
    if (!changed.has(object.id)) return object
    const children = childrenOf(object).map(nameOf)
    if (children.length > 1 && random(4) === 0) children.splice(random(children.length), 1)
    if (random(4) === 0) {
      const id = `more${more.length}@${version}`
      more.push({ id, name: `another one of version ${version}` })
      children.splice(random(children.length + 1), 0, id)
    }
    return {
      ...object,
      id: nameOf(object.id),
      name: `${String(object.name)}, version ${version}`,
      children: referTo(children),
    }
  })
  return [...all, ...more]
}

function childrenOf(object: Made): string[] {
  return ((object.children ?? []) as { referencedId: string }[]).map(({ referencedId }) => referencedId)
}

async function opened(...uploads: readonly (readonly Made[])[]): Promise<{ opened: Opened; oracle: Oracle }> {
  const store = await openStore()
  const oracle = new Oracle()
  for (const objects of uploads) {
    await put(store.store, 'demo', objects)
    oracle.add(objects)
  }
  return { opened: store, oracle }
}

test('changes between versions arrive as deltas that restore exactly the whole objects', async () => {
  for (const options of [
    { objects: 40 },
    { objects: 500, paddingBytes: 2_000 },
    { objects: 500, isCyclic: true, missingPercent: 5, claimPercent: 20 },
  ]) {
    const random = seeded(options.objects)
    const first = randomGraph(random, { paddingBytes: 600, ...options })
    const second = nextVersion(first, 1, random)
    const made = await opened(first, second)
    const have = made.oracle.closure(first[0].id)
    const got = await received(made.opened, made.oracle, second[0].id, first[0].id)
    const expected = [...made.oracle.closure(second[0].id).ids].filter((id) => id === second[0].id || !have.ids.has(id))
    assert.deepEqual(got.lines, made.oracle.lines(expected))
    assert.deepEqual(got.selection.have, [{ id: first[0].id, outcome: 'subtracted' }])
    assert.ok(got.deltas > expected.length / 3, `${got.deltas} deltas of ${expected.length} objects`)
    assert.ok(got.came < got.whole * 0.6, `${got.came} characters instead of ${got.whole}`)
    await made.opened.store.close()
  }
})

test('pairs to compare are leased from the budget, and without memory objects are sent whole', async () => {
  const random = seeded(500)
  const first = randomGraph(random, { objects: 500, paddingBytes: 2_000 })
  const second = nextVersion(first, 1, random)
  const made = await opened(first, second)
  const ask = (memory: MemoryLease): Promise<Received> =>
    received(made.opened, made.oracle, second[0].id, first[0].id, memory)
  const little = await ask(new MemoryBudget(200_000).open({ signal: never }))
  assert.ok(little.deltas <= 1, `${little.deltas} deltas`)
  // That answer was not kept.
  const plenty = new MemoryBudget(10_000_000).open({ signal: never })
  const got = await ask(plenty)
  assert.ok(got.deltas > 1, `${got.deltas} deltas`)
  assert.ok(plenty.heldBytes > 200_000, `${plenty.heldBytes} bytes are leased`)
  assert.deepEqual(little.lines, got.lines)
  await made.opened.store.close()
})

test('a closure of thousands costs only its new objects', async () => {
  const leaves = Array.from({ length: 3_000 }, (_, at): Made => ({ id: `leaf ${at}`, at }))
  const rootOf = (version: number, all: readonly Made[]): Made => ({
    id: `root ${version}`,
    __closure: Object.fromEntries(all.map(({ id }) => [id, 1])),
    children: referTo(all.map(({ id }) => id)),
  })
  const changed = leaves.with(1_500, { id: 'leaf other', at: 1_500 })
  const made = await opened([...leaves, rootOf(1, leaves)], [changed[1_500], rootOf(2, changed)])
  const got = await received(made.opened, made.oracle, 'root 2', 'root 1')
  assert.deepEqual(got.lines, made.oracle.lines(['root 2', 'leaf other']))
  assert.ok(got.came < 300, `${got.came} characters`)
  await made.opened.store.close()
})

test('a mostly new version is sent whole', async () => {
  const graph = (version: number): Made[] => [
    { id: `root ${version}`, children: referTo([`a ${version}`, `b ${version}`]) },
    { id: `a ${version}`, text: 'x'.repeat(500) },
    { id: `b ${version}`, text: 'y'.repeat(500) },
  ]
  const made = await opened(graph(1), graph(2))
  const got = await received(made.opened, made.oracle, 'root 2', 'root 1')
  assert.equal(got.deltas, 0)
  assert.deepEqual(got.lines, made.oracle.lines(['root 2', 'a 2', 'b 2']))
  await made.opened.store.close()
})

test('objects are sent whole if the version of the client is unknown', async () => {
  const made = await opened(
    [
      { id: 'leaf', text: 'x'.repeat(500) },
      { id: 'root', children: referTo(['leaf', 'late']) },
    ],
    [{ id: 'newer', children: referTo(['leaf']) }],
  )
  for (const have of ['nowhere', 'root']) {
    const selection = await made.opened.store.closure('demo', 'newer', {
      signal: never,
      have: [{ id: have }],
      deltas: true,
    })
    assert.ok(selection !== undefined)
    assert.deepEqual((await readLines(selection)).toSorted(), made.oracle.lines(['leaf', 'newer']))
    selection.release()
  }
  await made.opened.store.close()
})

test('a download that stops early or is aborted ends at once and frees its memory', async () => {
  const random = seeded(5)
  const first = randomGraph(random, { objects: 400, paddingBytes: 4_000 })
  const second = nextVersion(first, 1, random)
  const made = await opened(first, second)
  const { store } = made.opened
  for (const way of ['return', 'abort'] as const) {
    const stop = new AbortController()
    const selection = (await store.closure('demo', second[0].id, {
      signal: stop.signal,
      have: [{ id: first[0].id }],
      deltas: true,
    })) as Selection
    const lines = selection.lines({ signal: stop.signal })[Symbol.asyncIterator]()
    await lines.next()
    if (way === 'abort') {
      stop.abort(new Error('gone'))
      await assert.rejects(async () => {
        for (;;) if ((await lines.next()).done === true) return
      }, /gone/)
    } else {
      await lines.return?.()
    }
    selection.release()
    await eventually(() => store.memory().answers.heldBytes === 0, 'reads that were under way have given theirs back')
  }
  await store.close()
})

test('an object uploaded after the client received its version is not used as the base of a delta', async () => {
  const shared = Array.from({ length: 10 }, (_, at) => ({ id: `shared${at}`, name: `shared ${at}` }))
  const version = (number: number): Made => ({
    id: `root@${number}`,
    children: referTo([...shared.map(({ id }) => id), `wall@${number}`]),
  })
  const wall = (number: number): Made => ({ id: `wall@${number}`, name: 'w'.repeat(500), number })
  const { opened: store } = await opened([...shared, version(1)], [wall(2), version(2)])
  const older = await store.store.closure('demo', 'root@1', { signal: never })
  const have = [{ id: 'root@1', digest: older?.closureDigest }]
  older?.release()
  const selection = await store.store.closure('demo', 'root@2', { signal: never, have, deltas: true })
  assert.ok(selection)
  await put(store.store, 'demo', [wall(1)])
  const lines = await readLines(selection)
  selection.release()
  assert.deepEqual(
    lines.filter((line) => line.startsWith('wall@2\t')),
    [`wall@2\t${textOf(wall(2))}`],
  )
})
