import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { referTo, seeded } from './graphs.ts'
import { download, lineOf, type Made, openStore, type Opened, put } from './support.ts'

const random = seeded(311)

/** Text that hardly compresses, so that packs are too large for their records. */
function padding(characters: number): string {
  let text = ''
  while (text.length < characters) text += random(2 ** 30).toString(36)
  return text
}

function hexId(number: number): string {
  return number.toString(16).padStart(32, '0')
}

const PACKS = 60
const PER_PACK = 100
/** The root leads to the objects of every fifth pack, and each object to one of the next pack. */
const STEP = 5

interface Model {
  readonly packs: readonly (readonly Made[])[]
  readonly root: Made
}

function model(): Model {
  const idOf = (pack: number, at: number): string => hexId(pack * PER_PACK + at)
  const packs = Array.from({ length: PACKS }, (_, pack) =>
    Array.from({ length: PER_PACK }, (_made, at) => ({
      id: idOf(pack, at),
      text: padding(1_000),
      ...(pack % STEP === STEP - 1 ? {} : { child: { referencedId: idOf(pack + 1, at) } }),
    })),
  )
  const first = packs.filter((_, pack) => pack % STEP === 0).flat()
  return { packs, root: { id: 'root', children: referTo(first.map(({ id }) => id)) } }
}

/** The ids that the records were asked for, and the blobs that were read, since this call. */
function counted(t: TestContext, { records, blobs }: StorageBackend): { ids: () => number; blobs: () => string[] } {
  const asked = t.mock.method(records, 'getMany').mock
  const read = t.mock.method(blobs, 'read').mock
  return {
    ids: () => asked.calls.flatMap(({ arguments: [keys] }) => keys.filter((key) => key[0] === 0x6f)).length,
    blobs: () => read.calls.map(({ arguments: [name] }) => name),
  }
}

async function blobNames({ blobs }: StorageBackend): Promise<string[]> {
  const names: string[] = []
  for await (const some of blobs.list('')) names.push(...some.map(({ name }) => name))
  return names
}

async function assertWhole({ store }: Opened, { packs, root }: Model): Promise<void> {
  const got = await download(store, 'demo', root.id)
  assert.deepEqual(got?.lines.toSorted(), [...packs.flat(), root].map(lineOf).toSorted())
  assert.deepEqual(got.missing, [])
}

test('ids that lie in some packs of a model lead to all packs between, without a question for each level', async (t) => {
  const opened = await openStore()
  const made = model()
  for (const objects of made.packs) await put(opened.store, 'demo', objects)
  await put(opened.store, 'demo', [made.root])
  const reopened = await opened.reopen()
  const { ids } = counted(t, opened.backend)
  await assertWhole(reopened, made)
  assert.ok(ids() < 2_000, `${ids()} ids were asked for: one thousand for the first level would do`)
  await reopened.store.close()
})

for (const what of ['damaged', 'gone']) {
  test(`a pack between that is ${what} fails no download that can do without it`, async () => {
    const backend = memoryBackend()
    const opened = await openStore(backend)
    const made = model()
    for (const [at, objects] of made.packs.entries()) {
      await put(opened.store, 'demo', objects)
      if (at !== 21) continue
      const before = new Set(await blobNames(backend))
      await put(opened.store, 'demo', [{ id: 'other', text: padding(80_000) }])
      const name = (await blobNames(backend)).find((other) => !before.has(other)) ?? ''
      await backend.blobs.remove([name])
      if (what === 'damaged') await backend.blobs.put(name, oneChunk(Buffer.alloc(100_000, 7)), {})
    }
    await put(opened.store, 'demo', [made.root])
    const reopened = await opened.reopen()
    await assertWhole(reopened, made)
    await assert.rejects(download(reopened.store, 'demo', 'other'))
    await reopened.store.close()
  })
}

test('packs between are left alone if those that were found lie far apart', async (t) => {
  const backend = memoryBackend()
  const opened = await openStore(backend)
  const leaves = Array.from({ length: 1_200 }, (_, at) => ({ id: hexId(at), text: padding(200) }))
  await put(opened.store, 'demo', leaves.slice(0, 600))
  const before = new Set(await blobNames(backend))
  for (let at = 0; at < 40; at++) await put(opened.store, 'demo', [{ id: `other ${at}`, text: padding(80_000) }])
  const others = (await blobNames(backend)).filter((name) => !before.has(name))
  assert.equal(others.length, 40)
  await put(opened.store, 'demo', leaves.slice(600))
  await put(opened.store, 'demo', [{ id: 'root', children: referTo(leaves.map(({ id }) => id)) }])
  const reopened = await opened.reopen()
  const { blobs } = counted(t, backend)
  const got = await download(reopened.store, 'demo', 'root')
  assert.equal(got?.lines.length, leaves.length + 1)
  assert.deepEqual(
    blobs().filter((name) => others.includes(name)),
    [],
  )
  await reopened.store.close()
})

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
