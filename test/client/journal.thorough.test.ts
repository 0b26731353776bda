import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { SeenIds } from '../../src/client/common/seen-ids.ts'
import type { DownloadJournal, GraphProgress, ObjectText } from '../../src/client/index.ts'
import { buildModel, type Model } from '../support/model.ts'
import { byId, collect, planned, serviceAndClient } from './support.ts'
import { turns } from '../support/patience.ts'

const MODEL: Model = buildModel({ objects: 1_000 })

interface MemoryJournal extends DownloadJournal {
  readonly bytes: () => number
}

function memoryJournal(): MemoryJournal {
  let tag: string | undefined
  let held = Buffer.alloc(0)
  return {
    bytes: () => held.length,
    load: () =>
      Promise.resolve(
        tag === undefined
          ? undefined
          : { etag: tag, bytes: held.length, read: (count) => piecesOf(held.subarray(0, count)) },
      ),
    begin: (etag) => {
      tag = etag
      held = Buffer.alloc(0)
      return Promise.resolve()
    },
    write: (at, bytes) => {
      assert.ok(at <= held.length, 'there are no holes')
      held = Buffer.concat([held.subarray(0, at), bytes])
      return Promise.resolve()
    },
  }
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 5_000) yield await Promise.resolve(bytes.subarray(at, at + 5_000))
}

async function firstBatch(batches: AsyncIterable<readonly ObjectText[]>): Promise<void> {
  for await (const _ of batches) return
}

test('a download resumes where an earlier one stopped, even at its end, and restarts after a change', async (t) => {
  const { project, url } = await serviceAndClient(t)
  const [last, ...others] = [...MODEL.objects].filter(({ id }) => id !== MODEL.rootId)
  await project.upload([...others, { id: MODEL.rootId, json: MODEL.byId.get(MODEL.rootId) ?? '' }], { sendAll: true })
  await planned({ url }, MODEL.rootId)
  const journal = memoryJournal()
  let progress: GraphProgress | undefined
  const onProgress = (told: GraphProgress): void => void (progress = told)
  await firstBatch(project.graphTexts(MODEL.rootId, { journal }))
  const before = journal.bytes()
  assert.ok(before > 0)
  for (const again of ['the rest', 'nothing but the last byte']) {
    const kept = journal.bytes()
    const texts = await collect(project.graphTexts(MODEL.rootId, { journal, onProgress }))
    assert.equal(texts.length, 999, again)
    assert.deepEqual(
      [progress?.keptBytes, progress?.receivedBytes],
      [kept - 1, (progress?.totalBytes ?? 0) - kept + 1],
      again,
    )
  }
  await project.upload([last])
  await planned({ url }, MODEL.rootId)
  assert.deepEqual(byId(await collect(project.graphTexts(MODEL.rootId, { journal, onProgress }))), MODEL.byId)
  assert.equal(progress?.receivedBytes, progress?.totalBytes, 'the graph has another tag now')
})

test('a response waits unread while kept data is checked, even across garbage collection', async (t) => {
  const { project, url } = await serviceAndClient(t)
  await project.upload(MODEL.objects)
  await planned({ url }, MODEL.rootId)
  const journal = memoryJournal()
  await firstBatch(project.graphTexts(MODEL.rootId, { journal }))
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const slow: DownloadJournal = {
    ...journal,
    load: async () => {
      const kept = await journal.load()
      return kept && { ...kept, read: (count) => afterCollections(kept.read(count), collectGarbage) }
    },
  }
  let progress: GraphProgress | undefined
  const onProgress = (told: GraphProgress): void => void (progress = told)
  assert.deepEqual(byId(await collect(project.graphTexts(MODEL.rootId, { journal: slow, onProgress }))), MODEL.byId)
  assert.ok((progress?.keptBytes ?? 0) > 0)
  assert.deepEqual([progress?.resumes, progress?.restarts], [0, 0])
})

/** Finalizers run in a turn of their own, after the collection. */
async function* afterCollections(
  pieces: AsyncIterable<Uint8Array>,
  collectGarbage: () => void,
): AsyncGenerator<Uint8Array> {
  for (let round = 0; round < 5; round++) {
    collectGarbage()
    await turns()
  }
  yield* pieces
}

test('a journal longer than the graph restarts it, and a damaged journal is reported as the cause', async (t) => {
  const { project } = await serviceAndClient(t)
  await project.upload(MODEL.objects)
  const journal = memoryJournal()
  await collect(project.graphTexts(MODEL.rootId, { journal }))
  const whole = journal.bytes()
  await journal.write(whole, Buffer.alloc(100))
  assert.deepEqual(byId(await collect(project.graphTexts(MODEL.rootId, { journal }))), MODEL.byId)
  assert.equal(journal.bytes(), whole)

  // As after a loss of power: well-formed DEFLATE, and text that is none.
  const damaged = gzipSync(randomBytes(whole).toString('hex').replace(/.{64}/g, '$&\n'))
  await journal.write(0, damaged.subarray(0, whole - 10))
  await assert.rejects(collect(project.graphTexts(MODEL.rootId, { journal })), {
    code: 'integrity_failed',
    message: /the kept part .* is damaged/,
  })
})

test('the metadata of a graph is available without the graph', async (t) => {
  const { project } = await serviceAndClient(t)
  await project.upload(MODEL.objects)
  const info = await project.graphInfo(MODEL.rootId)
  assert.deepEqual([info?.objects, info?.missing], [1_000, 0])
  assert.equal(await project.graphInfo('nobody'), undefined)
})

test('the set of seen ids agrees with a Set through additions and removals', () => {
  const seen = new SeenIds()
  const set = new Set<string>()
  const ids = Array.from({ length: 400 }, (_, at) =>
    at % 7 === 0 ? `id ${at}` : createHash('md5').update(String(at)).digest('hex'),
  )
  ids.push('0'.repeat(32))
  for (let step = 0; step < 4_000; step++) {
    const id = ids[(step * 7_919 + (step >> 3)) % ids.length]
    if (step % 3 === 0) assert.equal(seen.delete(id), set.delete(id))
    else {
      assert.equal(seen.add(id), !set.has(id))
      set.add(id)
    }
  }
  assert.deepEqual([...seen.ids()].toSorted(), [...set].toSorted())
  for (const id of ids) assert.equal(seen.has(id), set.has(id))
  assert.equal(seen.size, set.size)
})
