import assert from 'node:assert/strict'
import { test } from 'node:test'
import { served } from '../http/served.ts'
import { buildModel, jsonArray } from '../support/model.ts'
import { diff, getObjects, gzippedUpload, objectStream, plainUpload, single } from './dotnet.ts'
import { inPieces, linesOf, replay, someAtATime } from './replay.ts'

const MB = 1_048_576
const CONCURRENCY = 4
const IDS_PER_STREAM = 500
const OLDER_DIFF_IDS = 100_000
const OLDER_GET_IDS = 10_000

const model = buildModel({ objects: 2_500 })
const ids = [...model.byId.keys()]
const arrays = inPieces(model.objects, 600).map(jsonArray)

test('current .NET SDK: gzipped chunked uploads, diff, root, and 500 ids a request with heartbeats, four at a time', async (t) => {
  const { port } = await served(t)
  const uploaded = await someAtATime(arrays, CONCURRENCY, (array) => replay(port, gzippedUpload('p', [array])))
  assert.deepEqual(
    uploaded.map(({ status }) => status),
    arrays.map(() => 200),
  )
  const asked = await replay(port, diff('p', [...ids, 'absent']))
  assert.deepEqual(JSON.parse(asked.text), { ...Object.fromEntries(ids.map((id) => [id, true])), absent: false })
  const root = await replay(port, single('p', model.rootId))
  assert.deepEqual([root.status, root.text], [200, model.byId.get(model.rootId)])
  const children = Object.keys((JSON.parse(root.text) as { __closure: Record<string, number> }).__closure)
  const answers = await someAtATime(inPieces(children, IDS_PER_STREAM), CONCURRENCY, async (some) =>
    linesOf(await replay(port, objectStream('p', some))),
  )
  assert.deepEqual(new Map([[model.rootId, root.text], ...answers.flatMap((lines) => [...lines])]), model.byId)
})

test('older .NET SDK: five parts a request, gzipped or plain text, 100,000 ids of diff, 10,000 ids of getobjects', async (t) => {
  const { port } = await served(t)
  assert.equal((await replay(port, gzippedUpload('p', arrays))).status, 200)
  assert.equal((await replay(port, plainUpload('q', arrays))).status, 200)
  const absent = Array.from({ length: OLDER_DIFF_IDS }, (_, n) => `${n}`.padStart(32, 'a'))
  const asked = await replay(port, diff('p', [...ids, ...absent].slice(0, OLDER_DIFF_IDS)))
  const held = JSON.parse(asked.text) as Record<string, boolean>
  assert.equal(Object.keys(held).length, OLDER_DIFF_IDS)
  assert.deepEqual(
    Object.keys(held).filter((id) => held[id]),
    ids,
  )
  for (const project of ['p', 'q']) {
    assert.deepEqual(
      linesOf(await replay(port, getObjects(project, [...ids, ...absent].slice(0, OLDER_GET_IDS)))),
      model.byId,
    )
  }
})

test('older .NET SDK: a request over the limit gets 413, taken as final, and passes once the limit is raised', async (t) => {
  const large = Array.from({ length: 5 }, (_, part) =>
    jsonArray([{ id: `${part}`, json: `{"id":"${part}","text":"${'x'.repeat(MB)}"}` }]),
  )
  for (const [requestBytesMax, status] of [
    [5 * MB, 413],
    [6 * MB, 200],
  ] as const) {
    const { port } = await served(t, { limits: { requestBytesMax } })
    const answer = await replay(port, plainUpload('p', large))
    assert.equal(answer.status, status, answer.text)
    if (status === 413) assert.equal((JSON.parse(answer.text) as { code: string }).code, 'request_too_large')
  }
})
