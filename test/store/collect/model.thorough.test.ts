import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StowageError } from '../../../src/errors.ts'
import type { GraphRoot } from '../../../src/object/roots.ts'
import type { PackStore } from '../../../src/store/pack-store.ts'
import { Oracle, type Random, randomGraph, seeded } from '../graphs.ts'
import { propertyRuns } from '../../support/runs.ts'
import { assertSound, download, heldOf, type Made, never, put, textOf } from '../support.ts'
import { jsonBytesOf, openCollecting, OLDER_THAN, PROJECT, TERMS, totalsOf, UNDO } from './collecting.ts'

const ROUNDS = 60

interface Model {
  readonly random: Random
  readonly collecting: Awaited<ReturnType<typeof openCollecting>>
  readonly oracle: Oracle
  readonly graphs: Made[][]
}

function anyOf<T>(random: Random, items: readonly T[]): T {
  return items[random(items.length)]
}

/** Uploads part of a graph, as a client does that asks first what is held. */
async function upload({ random, collecting: { stores }, graphs }: Model): Promise<void> {
  const graph = anyOf(random, graphs)
  const store = anyOf(random, stores)
  const ids = graph.map(({ id }) => id)
  const held = await heldOf(store, PROJECT, ids)
  const from = random(2) === 0 ? 0 : random(graph.length)
  await put(
    store,
    PROJECT,
    graph.slice(from).filter(({ id }) => !held.has(id)),
  )
}

/** Pins the root of a graph if all of it is there. */
async function pin({ random, collecting: { stores }, graphs }: Model): Promise<void> {
  const graph = anyOf(random, graphs)
  const store = anyOf(random, stores)
  const [{ id }] = graph
  const closure = await download(store, PROJECT, id)
  if (closure === undefined || closure.missing.length > 0) return
  await store.pins
    .add(PROJECT, { rootObjectId: id })
    .catch((error: StowageError) => assert.equal(error.code, 'objects_missing'))
}

async function unpin({ random, collecting: { store } }: Model): Promise<void> {
  const pins = await store.pins.list(PROJECT)
  if (pins.length < 3) return
  // Two may choose the same one.
  await store.pins
    .remove(PROJECT, anyOf(random, pins).id)
    .catch((error: StowageError) => assert.equal(error.code, 'not_found'))
}

async function rootsIn(store: PackStore): Promise<readonly GraphRoot[]> {
  const pins = await store.pins.list(PROJECT)
  return pins.map(({ id, rootObjectId }) => ({ kind: 'pin', id, groupId: null, rootObjectId }))
}

async function collect({ random, collecting: { stores } }: Model): Promise<void> {
  const store = anyOf(random, stores)
  await store.collector
    .collect(PROJECT, () => rootsIn(store), TERMS)
    .catch((error: StowageError) => {
      assert.equal(error.code, 'overloaded', error.stack)
    })
}

async function undo({ random, collecting: { stores } }: Model): Promise<void> {
  await anyOf(random, stores).collector.restore(PROJECT, { signal: never })
}

async function compact({ random, collecting: { stores } }: Model): Promise<void> {
  const store = anyOf(random, stores)
  const all = random(2) === 0
  await store.compactor
    .compact(PROJECT, () => rootsIn(store), { signal: never, all })
    .catch((error: StowageError) => assert.equal(error.code, 'overloaded', error.stack))
}

const STEPS = [compact, upload, upload, upload, pin, pin, unpin, collect, collect, undo]

async function assertReachableWhole({ collecting: { store, stores }, oracle }: Model, random: Random): Promise<void> {
  for (const { rootObjectId: root } of await rootsIn(store)) {
    const { ids } = oracle.closure(root)
    const downloaded = await download(anyOf(random, stores), PROJECT, root)
    assert.deepEqual(downloaded?.ids, ids, `below ${root}`)
  }
}

for (let seed = 1; seed <= propertyRuns(6); seed++) {
  test(`whatever several servers do at the same time, nothing that a root reaches is lost (seed ${seed})`, async () => {
    const random = seeded(seed)
    const collecting = await openCollecting(3)
    const oracle = new Oracle()
    const graphs: Made[][] = []
    const shared = randomGraph(random, { objects: 30, prefix: 's', claimPercent: 10 })
    for (let i = 0; i < 6; i++) {
      const own = randomGraph(random, { objects: 20, prefix: `g${i}-`, claimPercent: 20 })
      const [root, ...rest] = own
      graphs.push([{ ...root, shared: { referencedId: anyOf(random, shared).id } }, ...rest, ...shared])
      oracle.add(graphs[i])
    }
    const model = { random, collecting, oracle, graphs }
    await put(collecting.store, PROJECT, graphs[0])
    await pin({ ...model, graphs: graphs.slice(0, 1) })
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(Array.from({ length: 1 + random(3) }, () => anyOf(random, STEPS)(model)))
      await collecting.pass(random(3))
      if (round % 10 === 9) await assertReachableWhole(model, random)
    }
    await assertReachableWhole(model, random)
    // At rest, two collections take everything else.
    await collecting.pass(OLDER_THAN + 1)
    await collect(model)
    await collecting.pass(UNDO + 1)
    await collect(model)
    await collecting.pass(OLDER_THAN + 1)
    await collect(model)
    await collecting.pass(UNDO + 1)
    await collect(model)
    const pinned = await rootsIn(collecting.store)
    const reachable = new Set(pinned.flatMap(({ rootObjectId }) => [...oracle.closure(rootObjectId).ids]))
    const everything = [...oracle.objects.keys()]
    assert.deepEqual([...(await heldOf(collecting.store, PROJECT, everything))].sort(), [...reachable].sort())
    const objects = [...reachable].map((id) => oracle.objects.get(id) as Made)
    assert.deepEqual(await totalsOf(collecting.backend), { objects: objects.length, jsonBytes: jsonBytesOf(objects) })
    assert.ok(objects.every((object) => textOf(object) !== ''))
    await assertReachableWhole(model, random)
    await assertSound(collecting.backend)
    await collecting.close()
  })
}
