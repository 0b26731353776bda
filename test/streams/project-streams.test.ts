import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough, Readable, Transform, Writable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { finished, pipeline } from 'node:stream/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { ObjectRecord, ObjectService, ProjectObjects } from '../../src/index.ts'
import { toWebReadable, toWebWritable } from '../../src/streams/index.ts'
import { openService } from '../http/served.ts'
import { eventually } from '../support/patience.ts'
import { buildModel } from '../support/model.ts'

const MODEL = buildModel({ objects: 2_000 })
const ARRAY = Buffer.from(`[${MODEL.objects.map(({ json }) => json).join(',')}]`)

function opened(t: TestContext): { readonly service: ObjectService; readonly project: ProjectObjects } {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  return { service, project: service.project('demo') }
}

async function filled(t: TestContext): Promise<{ readonly service: ObjectService; readonly project: ProjectObjects }> {
  const made = opened(t)
  await pipeline([ARRAY], made.project.createUploadStream())
  return made
}

async function isEmpty(service: ObjectService): Promise<boolean> {
  for await (const ids of service.projects()) if (ids.length > 0) return false
  return true
}

/** Nothing that was begun goes on. */
function settled(service: ObjectService): Promise<void> {
  return eventually(() => {
    const { requestsInFlight, uploadsInFlight, downloadsInFlight } = service.status()
    return requestsInFlight + uploadsInFlight + downloadsInFlight === 0
  }, 'nothing is in flight')
}

test('an upload stream accepts bytes in any chunks, and has stored everything when it finishes', async (t) => {
  for (const [pieces, options] of [
    [[ARRAY], {}],
    [inPieces(ARRAY, 1_000), { highWaterMark: 1 }],
    [inPieces(gzipSync(ARRAY), 777), { contentType: 'application/gzip' }],
    [inPieces(gzipSync(ARRAY), 10_000), { contentEncoding: 'gzip' }],
  ] as const) {
    const { project } = opened(t)
    const stream = project.createUploadStream(options)
    await pipeline(pieces, stream)
    assert.deepEqual([stream.summary?.objects, stream.summary?.created], [2_000, 2_000])
    assert.equal((await project.has([...MODEL.byId.keys()])).size, 2_000)
  }
})

test('an upload stream of known length is refused before it is read, if the quota has no room for it', async (t) => {
  const service = openService({ quota: { jsonBytesMax: ARRAY.length - 1 } })
  t.after(() => service.close({ graceMs: 0 }))
  const project = service.project('demo')
  let piecesRead = 0
  const pieces = function* (): Generator<Uint8Array> {
    for (const piece of inPieces(ARRAY, 1_000)) {
      piecesRead++
      yield piece
    }
  }
  const stream = project.createUploadStream({ contentLength: ARRAY.length, highWaterMark: 1 })
  await assert.rejects(pipeline(pieces(), stream), { code: 'quota_exceeded', message: /this upload has \d+/ })
  assert.ok(piecesRead < 3, `${piecesRead} pieces were read`)
  // Without the brackets and commas it fits.
  await pipeline([ARRAY], project.createUploadStream())
  for (const contentLength of [-1, 0.5, Number.NaN])
    assert.throws(() => project.createUploadStream({ contentLength }), /contentLength is .*; it must be an integer/)
})

test('in object mode it accepts texts, records and values', async (t) => {
  const { project } = opened(t)
  const bytes = Buffer.from('{"id":"d","n":1e400}')
  const record: ObjectRecord = { id: 'e', json: Buffer.from('{"id":"e"}'), references: [], claims: [] }
  const chunks = [{ id: 'a', n: 1 }, '{"id":"b", "n":1.50}', { id: 'c', json: '{"id":"c","n":2.0}' }, bytes, record]
  await pipeline(Readable.from(chunks), project.createUploadStream({ objectMode: true }))
  assert.equal(
    await text(project.createObjectsStream(['a', 'b', 'c', 'd', 'e', 'none'])),
    'a\t{"id":"a","n":1}\nb\t{"id":"b", "n":1.50}\nc\t{"id":"c","n":2.0}\nd\t{"id":"d","n":1e400}\ne\t{"id":"e"}\n',
  )
  const none = project.createUploadStream({ objectMode: true }).end()
  await once(none, 'finish')
  assert.equal(none.summary?.objects, 0)
  const wrong = project.createUploadStream({ objectMode: true })
  wrong.write(5)
  await assert.rejects(finished(wrong), { code: 'invalid_object', message: /not a number/ })
})

test('an upload stream that is destroyed at any time leaves nothing', async (t) => {
  const { service, project } = opened(t)
  const reason = new Error('enough')
  for (const when of ['before anything', 'in the middle', 'after the last byte'] as const) {
    const stream = project.createUploadStream()
    const done = finished(stream)
    done.catch(() => undefined)
    if (when === 'before anything') stream.destroy(reason)
    stream.write(ARRAY.subarray(0, when === 'after the last byte' ? ARRAY.length : ARRAY.length / 2))
    await turn()
    stream.destroy(reason)
    await assert.rejects(done, reason, when)
    assert.equal(stream.summary, undefined)
    await settled(service)
    assert.ok(await isEmpty(service), when)
  }
  const controller = new AbortController()
  const aborted = project.createUploadStream({ signal: controller.signal })
  aborted.write('[{"id":"a"}')
  controller.abort()
  await assert.rejects(finished(aborted), { name: 'AbortError' })
  const silent = project.createUploadStream()
  silent.destroy()
  await once(silent, 'close')
  await settled(service)
  assert.ok(await isEmpty(service))
})

test('a fault of an upload destroys the stream with the error of HTTP, even while it waits', async (t) => {
  const { service, project } = opened(t)
  const broken = project.createUploadStream()
  broken.write('[{"id":"a"},]')
  await assert.rejects(finished(broken), { code: 'invalid_json', statusCode: 400 })
  await assert.rejects(pipeline(['[{"id":"a"}'], project.createUploadStream()), { code: 'invalid_json' })
  await assert.rejects(pipeline(['x'], project.createUploadStream({ contentType: 'text/plain' })), {
    code: 'unsupported_media_type',
  })
  await assert.rejects(pipeline(failing(), project.createUploadStream()), { message: 'the source failed' })
  await settled(service)
  assert.ok(await isEmpty(service))
  await service.close()
  await assert.rejects(pipeline(['[]'], project.createUploadStream()), { code: 'closing' })
})

test('graphs and lists are read in each format and coding, as HTTP sends them', async (t) => {
  const { service, project } = await filled(t)
  const ask = async (path: string, accept: string): Promise<string> =>
    (await service.fetch(new Request(`http://in.process${path}`, { headers: { Accept: accept } }))).text()
  for (const [format, accept] of [
    ['text', 'text/plain'],
    ['json', 'application/json'],
  ] as const) {
    const expected = await ask(`/objects/demo/${MODEL.rootId}`, accept)
    assert.equal(await text(project.createGraphStream(MODEL.rootId, { format })), expected)
    const compressed = await buffer(project.createGraphStream(MODEL.rootId, { format, coding: 'gzip' }))
    assert.equal(gunzipSync(compressed).toString(), expected)
  }
  const ids = [...MODEL.byId.keys()].slice(0, 5)
  const json = await text(project.createObjectsStream(Readable.from(ids), { format: 'json' }))
  assert.deepEqual(new Set((JSON.parse(json) as { id: string }[]).map(({ id }) => id)), new Set(ids))
  const records = (await project.createGraphStream(MODEL.rootId, { objectMode: true }).toArray()) as ObjectRecord[]
  assert.deepEqual(new Map(records.map((record) => [record.id, Buffer.from(record.json).toString()])), MODEL.byId)
  assert.equal(records[0].id, MODEL.rootId)
  const known = ids.find((id) => id !== MODEL.rootId) ?? ''
  const held = await service.fetch(new Request(`http://in.process/objects/demo/${known}`))
  await held.arrayBuffer()
  const version = `${known}@${held.headers.get('stowage-closure')}`
  const rest = await text(project.createGraphStream(MODEL.rootId, { have: [version] }))
  assert.ok(!rest.includes(`\n${known}\t`))
  await settled(service)
})

test('a reader that pauses slows the core, and one that leaves frees it', async (t) => {
  const { service, project } = await filled(t)
  for (const objectMode of [false, true]) {
    const stream = project.createGraphStream(MODEL.rootId, { objectMode, highWaterMark: 1 })
    await once(stream, 'readable')
    await turn()
    assert.ok(stream.readableLength < (objectMode ? 1_000 : 400_000), `${stream.readableLength} are held`)
    assert.equal(service.status().downloadsInFlight, 1)
    stream.destroy()
    await once(stream, 'close')
    assert.equal(service.status().requestsInFlight, 0)
  }
  const controller = new AbortController()
  const aborted = project.createGraphStream(MODEL.rootId, { signal: controller.signal, highWaterMark: 1 })
  await once(aborted, 'readable')
  controller.abort()
  await assert.rejects(finished(aborted), { name: 'AbortError' })
  await settled(service)
})

test('an unreadable object destroys the stream with the error of HTTP', async (t) => {
  const { project } = await filled(t)
  await assert.rejects(text(project.createGraphStream('nobody')), { code: 'not_found', statusCode: 404 })
  await assert.rejects(text(project.createGraphStream('\u0000')), { code: 'invalid_id' })
  await assert.rejects(text(project.createObjectsStream(['\u0000'])), { code: 'invalid_id' })
  await assert.rejects(text(project.createObjectsStream(failing())), { message: 'the source failed' })
  assert.equal(await text(project.createObjectsStream([])), '')
})

test('nothing is read before it is requested', async (t) => {
  const { service, project } = await filled(t)
  const unread = project.createGraphStream('nobody')
  await turn()
  assert.equal(service.status().requestsInFlight, 0)
  unread.destroy()
  await once(unread, 'close')
})

test('a pipeline ends when one of its streams fails, and leaves nothing', async (t) => {
  const { service, project } = await filled(t)
  const target = opened(t)
  const breaking = new Transform({ transform: (_chunk, _encoding, done) => done(new Error('the filter failed')) })
  await assert.rejects(
    pipeline(
      project.createGraphStream(MODEL.rootId, { format: 'json' }),
      breaking,
      target.project.createUploadStream(),
    ),
    { message: 'the filter failed' },
  )
  await Promise.all([settled(service), settled(target.service)])
  assert.ok(await isEmpty(target.service))
  const full = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => done(new Error('disk full')) })
  await assert.rejects(pipeline(project.createGraphStream(MODEL.rootId), new PassThrough(), full), /disk full/)
  await settled(service)
})

test('web streams download a graph and upload objects', async (t) => {
  const { project } = await filled(t)
  const target = opened(t)
  const body = toWebReadable(project.createGraphStream(MODEL.rootId, { format: 'json' }))
  await body.pipeTo(toWebWritable(target.project.createUploadStream()))
  assert.equal((await target.project.has([...MODEL.byId.keys()])).size, 2_000)
  const response = new Response(toWebReadable(project.createGraphStream(MODEL.rootId)))
  assert.equal((await response.text()).split('\n').length, 2_001)
  const left = toWebReadable(project.createGraphStream(MODEL.rootId))
  await left.cancel()
  assert.throws(() => toWebReadable(project.createGraphStream(MODEL.rootId, { objectMode: true })), TypeError)
})

function inPieces(bytes: Uint8Array, size: number): readonly Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}

async function* failing(): AsyncGenerator<string> {
  yield await Promise.resolve('[')
  throw new Error('the source failed')
}
