import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { createRandom } from '../../bench/model/random.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import type { StorageBackend } from '../../src/storage/index.ts'
import { EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { assertRight, GRAPH, oracle, ROOT } from '../store/planned.ts'
import { seeded, shuffled, splitRandomly } from '../store/graphs.ts'
import { assertSound, download, listed, never, type Opened, openStore, put, undying } from '../store/support.ts'
import { eventually } from '../support/patience.ts'
import { CaseEngines } from './case-place.ts'

/*
 * Three servers over PostgreSQL and an S3 store, and no failure: what any of them acknowledged, each of them serves, and
 * at once. `STOWAGE_CLUSTER_READS` says how much is read.
 */

const READS = Number(process.env.STOWAGE_CLUSTER_READS ?? '60')
/** Of many objects each. */
const DOWNLOADS = Math.min(READS, 500)
const PARTS = Math.min(READS, 200)
const SEED = Number(process.env.STOWAGE_CLUSTER_SEED ?? Date.now() % 1_000_000)
const SERVERS = 3
const AT_ONCE = 8
const PROJECT = 'demo'
/** Blobs that are to go stay for 144 epochs: no download of a test is older than that. */
const EPOCHS_MAX = 100

const engines = await CaseEngines.start({ after })
test(`STOWAGE_CLUSTER_SEED=${SEED}`, () => undefined)

async function servers(
  t: TestContext,
  open: () => StorageBackend,
  options: Parameters<typeof openStore>[1] = {},
): Promise<readonly Opened[]> {
  const opened: Opened[] = []
  for (let at = 0; at < SERVERS; at++) {
    const backend = open()
    const server = await openStore(backend, options)
    opened.push(server)
    t.after(async () => {
      await server.store.close()
      await backend.close()
    })
  }
  return opened
}

/** Does `work` for each number below `count`, some at a time. */
async function each(count: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) await work(next++)
    }),
  )
}

async function fill(store: Opened['store']): Promise<void> {
  for (const objects of splitRandomly(seeded(78), shuffled(seeded(79), GRAPH), 4)) await put(store, PROJECT, objects)
}

test('whatever a server acknowledged, every other one serves at once', async (t) => {
  const opened = await servers(t, engines.newPlace())
  const random = createRandom(SEED, 1)
  await each(READS, async (number) => {
    const [writer, reader] = [random.pick(opened), random.pick(opened)]
    const root = { id: `root-${number}`, children: [{ referencedId: `leaf-${number}` }] }
    const leaf = { id: `leaf-${number}`, data: number }
    await put(writer.store, PROJECT, [root, leaf])
    const lines = [root, leaf].map((object) => `${object.id}\t${JSON.stringify(object)}`)
    assert.deepEqual((await listed(reader.store, PROJECT, [root.id, leaf.id])).toSorted(), lines.toSorted())
    assert.deepEqual((await download(reader.store, PROJECT, root.id))?.lines, lines)
  })
})

test('of one object that three times 32 clients upload with other texts, one text stays, and it has one owner', async (t) => {
  const open = engines.newPlace()
  const opened = await servers(t, open)
  const results = await Promise.all(
    Array.from({ length: SERVERS * 32 }, (_, number) =>
      put(opened[number % SERVERS].store, PROJECT, [{ id: 'same', writtenBy: number }, { id: `own-${number}` }]),
    ),
  )
  assert.equal(
    results.reduce((sum, { inserted }) => sum + inserted, 0),
    SERVERS * 32 + 1,
  )
  const texts = await Promise.all(opened.map(({ store }) => listed(store, PROJECT, ['same'])))
  assert.equal(texts[0].length, 1)
  for (const text of texts) assert.deepEqual(text, texts[0])
  const backend = open()
  await assertSound(undying(backend))
  await backend.close()
})

test('downloads are right while other servers evict plans, merge packs, sweep blobs and remove projects', async (t) => {
  const open = engines.newPlace()
  const opened = await servers(t, open, { planBytesMax: 60_000 })
  await fill(opened[0].store)
  const random = createRandom(SEED, 2)
  const roots = [ROOT, ...GRAPH.slice(1, 12).map(({ id }) => id)]
  const upkeep = { isOn: true, steps: 0 }
  const disturbing = (async () => {
    const counter = new EpochCounter(opened[0].backend.records, REAL_ENVIRONMENT)
    for (; upkeep.isOn; upkeep.steps++) {
      const { store } = random.pick(opened)
      if (upkeep.steps < EPOCHS_MAX) await counter.advance()
      await put(store, PROJECT, [{ id: `new-${upkeep.steps}` }])
      await store.compactor.compact(PROJECT, () => Promise.resolve([]), { signal: never, all: upkeep.steps % 3 === 0 })
      await put(store, 'other', GRAPH.slice(0, 50))
      await store.remove('other')
      await store.idle()
    }
  })()
  try {
    await each(DOWNLOADS, async () => {
      const root = random.pick(roots)
      await assertRight(random.pick(opened), root)
    })
  } finally {
    upkeep.isOn = false
    await disturbing
  }
  assert.ok(upkeep.steps > 0)
  assert.deepEqual(
    opened.flatMap(({ background }) => background),
    [],
  )
  assert.equal((await download(opened[1].store, PROJECT, ROOT))?.ids.size, oracle.closure(ROOT).ids.size)
})

test('a download that began on one server goes on, byte for byte, on another', async (t) => {
  const open = engines.newPlace()
  const services = Array.from({ length: SERVERS }, () => createObjectService({ backend: open(), access: openAccess() }))
  t.after(() => Promise.all(services.map((service) => service.close())))
  const filling = await openStore(open())
  await fill(filling.store)
  await filling.store.close()
  const random = createRandom(SEED, 3)
  const ask = (at: number, headers: Readonly<Record<string, string>>): Promise<Response> =>
    services[at].fetch(
      new Request(`http://in.process/objects/${PROJECT}/${ROOT}`, { headers: { ...headers, Accept: 'text/plain' } }),
    )
  const wholes = new Map<string, { readonly etag: string; readonly bytes: Buffer }>()
  for (const coding of ['gzip', 'identity']) {
    await eventually(async () => {
      const whole = await ask(0, { 'Accept-Encoding': coding })
      wholes.set(coding, { etag: whole.headers.get('etag') ?? '', bytes: Buffer.from(await whole.arrayBuffer()) })
      return whole.headers.get('accept-ranges') === 'bytes'
    }, 'the answer has a plan')
  }
  await each(PARTS, async (number) => {
    const coding = number % 2 === 0 ? 'gzip' : 'identity'
    const { etag, bytes } = wholes.get(coding) ?? assert.fail(coding)
    const from = 1 + random.below(bytes.length - 1)
    const part = await ask(random.below(SERVERS), {
      'Accept-Encoding': coding,
      Range: `bytes=${from}-`,
      'If-Range': etag,
    })
    assert.equal(part.status, 206)
    assert.ok(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(from)), `${coding} from byte ${from}`)
  })
})
