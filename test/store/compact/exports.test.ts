import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { ObjectCursor } from '../../../src/object/graph-store.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { asGuarded } from '../../../src/storage/guard.ts'
import { BlobSweep } from '../../../src/store/upkeep/blob-sweep.ts'
import { EpochCounter } from '../../../src/store/upkeep/epochs.ts'
import { headKey } from '../../../src/store/records/keys.ts'
import type { PackStore } from '../../../src/store/pack-store.ts'
import { type Collecting, node, OLDER_THAN, openCollecting } from '../collect/collecting.ts'
import { gate, hooked, sharing } from '../failures.ts'
import { idOfLine, type Made, never, openStore, put, readLines } from '../support.ts'
import { compact, history, PROJECT, uploaded } from './support.ts'

const HISTORY = history({ versions: 6, objects: 60, changed: 8 })
/** About a day. */
const DAY_EPOCHS = 144

/** An export: its pages, one at a time. */
class Run {
  end: ObjectCursor | undefined
  readonly #store: Pick<PackStore, 'pager'>
  readonly #projectId: string
  readonly #ids: string[] = []
  #next: ObjectCursor | undefined

  constructor(store: Pick<PackStore, 'pager'>, since?: ObjectCursor, projectId: string = PROJECT) {
    this.#store = store
    this.#next = since
    this.#projectId = projectId
  }

  /** Reads so many pages, and all that are left by default. */
  async read(pages = Infinity): Promise<readonly string[]> {
    for (let page = 0; page < pages && !(this.end && isDeepStrictEqual(this.#next, this.end)); page++) {
      const read = await this.#store.pager.page(this.#projectId, {
        textBytesMax: 2_000,
        signal: never,
        ...(this.#next === undefined ? {} : { after: this.#next }),
        ...(this.end === undefined ? {} : { until: this.end }),
      })
      assert.ok(read !== undefined)
      this.end ??= read.end
      this.#ids.push(...(await readLines(read.selection)).map(idOfLine))
      read.selection.release()
      this.#next = read.next
    }
    return this.#ids
  }
}

function assertOnce(ids: readonly string[], expected: Iterable<string>): void {
  assert.deepEqual(ids.toSorted(), [...expected].sort())
}

test('an export contains each object once, even if a merge that began before it commits during it', async () => {
  const backend = memoryBackend()
  const { store } = await uploaded(HISTORY, backend)
  const [begun, go] = [gate(), gate()]
  const head = Buffer.from(headKey(PROJECT)).toString()
  let commits = 0
  const merging = await openStore(
    hooked(backend, async (call, key, work) => {
      if (call !== 'commit' || key !== head) return work()
      // First the commit that begins the merge, then the one by which it takes effect.
      if (++commits === 2) {
        begun.open()
        await go.opened
      }
      return work()
    }),
  )
  const merge = compact(merging.store, HISTORY)
  await begun.opened
  const run = new Run(store)
  await run.read(4)
  go.open()
  assert.equal((await merge).merges, 1)
  assertOnce(await run.read(), HISTORY.oracle.objects.keys())
  await merging.store.close()
  await store.close()
})

test('an export that continues after a merge contains each object once, and none uploaded since it began', async () => {
  const { store } = await uploaded(HISTORY)
  const run = new Run(store)
  await run.read(4)
  assert.equal((await compact(store, HISTORY)).merges, 1)
  await put(store, PROJECT, [{ id: 'later' }])
  assertOnce(await run.read(), HISTORY.oracle.objects.keys())
  await store.close()
})

test('an incremental export omits objects that a merge moved if they were uploaded at least a day earlier', async () => {
  const backend = memoryBackend()
  const { store } = await uploaded(HISTORY, backend)
  for (let epoch = 0; epoch <= DAY_EPOCHS + 1; epoch++) await store.epochs.advance()
  const base = new Run(store)
  assertOnce(await base.read(), HISTORY.oracle.objects.keys())
  await put(store, PROJECT, [{ id: 'later' }])
  assert.equal((await compact(store, HISTORY, { all: true })).packsAfter, 1)
  await put(store, PROJECT, [{ id: 'last' }])
  assert.deepEqual(await new Run(store, base.end).read(), ['later', 'last'])
  await store.close()
})

test('an export that continues after the merged packs are removed misses nothing', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(HISTORY, backend)
  const run = new Run(opened.store)
  await run.read(4)
  assert.equal((await compact(opened.store, HISTORY, { all: true })).packsAfter, 1)
  for (let epoch = 0; epoch < 2 * DAY_EPOCHS; epoch++) await opened.store.epochs.advance()
  await opened.store.compactor.dropRetired(PROJECT, () => true, never)
  assert.deepEqual(new Set(await run.read()), new Set(HISTORY.oracle.objects.keys()))
  await opened.store.close()
})

test('an export misses nothing when packs are merged and removed in the middle of a page', async () => {
  const backend = sharing(memoryBackend())
  const { store } = await uploaded(HISTORY, backend)
  let meanwhile = async (): Promise<unknown> => {
    meanwhile = () => Promise.resolve()
    assert.equal((await compact(store, HISTORY, { all: true })).packsAfter, 1)
    return store.compactor.dropRetired(PROJECT, () => true, never)
  }
  const records: StorageBackend['records'] = {
    ...backend.records,
    range: async function* (bounds, options) {
      if (isReading && Buffer.from(bounds.gte).toString().startsWith('k\0')) await meanwhile()
      yield* backend.records.range(bounds, options)
    },
  }
  let isReading = false
  const reading = await openStore({ ...backend, records })
  isReading = true
  assertOnce(await new Run(reading.store).read(), HISTORY.oracle.objects.keys())
  await reading.store.close()
  await store.close()
})

test('the packs of a merge that was cut off for days stay for a day once it takes effect', async () => {
  const backend = sharing(memoryBackend())
  const { store } = await uploaded(HISTORY, backend)
  const head = Buffer.from(headKey(PROJECT)).toString()
  let commits = 0
  const dying = await openStore(
    hooked(backend, (call, key, work) => {
      const takesEffect = call === 'commit' && key === head && ++commits === 2
      return takesEffect ? Promise.reject(new Error('crashed')) : work()
    }),
  )
  await assert.rejects(compact(dying.store, HISTORY))
  for (let epoch = 0; epoch < 2 * DAY_EPOCHS; epoch++) await store.epochs.advance()
  const run = new Run(store)
  await run.read(4)
  await store.compactor.finishOpenMerges((error) => assert.fail(String(error)), never)
  const { records, blobs } = asGuarded(backend)
  const environment = { monotonicMs: () => 0 }
  const sweep = new BlobSweep({
    records,
    blobs,
    environment,
    epochs: new EpochCounter(records, environment),
    dropRetired: (...due) => store.compactor.dropRetired(...due),
  })
  await sweep.removeCondemned(never)
  assertOnce(await run.read(), HISTORY.oracle.objects.keys())
  await dying.store.close()
  await store.close()
})

const GRAPH: readonly Made[] = [node('root', ['a', 'b']), node('a'), node('b'), node('old')]
const PADDED = Array.from({ length: 40 }, (_, i) => node(`n${i}`, [], 'x'.repeat(200)))

/** A project with a pack whose objects were condemned and, but for one, restored. */
async function condemned(): Promise<Collecting> {
  const collecting = await openCollecting(1, sharing(memoryBackend()))
  const { store } = collecting
  await put(store, 'p', PADDED)
  await put(store, 'p', GRAPH)
  collecting.roots.add('root')
  await collecting.collect()
  await collecting.pass(OLDER_THAN + 1)
  assert.equal((await collecting.collect()).condemned.objects, PADDED.length + 1)
  return collecting
}

test('an export holds condemned objects, which can be restored', async () => {
  const { store, close } = await condemned()
  assertOnce(
    await new Run(store, undefined, 'p').read(),
    [...GRAPH, ...PADDED].map(({ id }) => id),
  )
  await close()
})

test('an export misses no object that was condemned and then moved twice', async () => {
  const { store, readRoots, pass, close } = await condemned()
  const merge = (): Promise<unknown> => store.compactor.compact('p', readRoots, { signal: never, all: true })
  const run = new Run(store, undefined, 'p')
  await run.read(1)
  await merge()
  await put(store, 'p', [node('later')])
  await pass(3)
  await merge()
  assertOnce(
    await run.read(),
    [...GRAPH, ...PADDED].map(({ id }) => id),
  )
  await close()
})

test('an export that begins while condemned objects are uploaded again contains each of them once', async () => {
  const { backend, store, close } = await condemned()
  const [begun, go] = [gate(), gate()]
  let commits = 0
  const other = await openStore(
    hooked(backend, async (call, _key, work) => {
      // First the commit of the pack, then the ones that write its objects.
      if (call === 'commit' && ++commits > 1) {
        begun.open()
        await go.opened
      }
      return work()
    }),
  )
  const upload = put(other.store, 'p', [...PADDED.slice(0, 3), node('later')])
  await begun.opened
  const run = new Run(store, undefined, 'p')
  assert.deepEqual(await run.read(1), [])
  go.open()
  await upload
  assertOnce(
    await run.read(),
    [...GRAPH, ...PADDED, node('later')].map(({ id }) => id),
  )
  await other.store.close()
  await close()
})
