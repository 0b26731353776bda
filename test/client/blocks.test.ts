import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { BLOCKS_MEDIA_TYPE } from '../../src/blocks/ready-blocks.ts'
import { createClient, type Fetch, type Project } from '../../src/client/index.ts'
import { platformCompressor } from '../../src/client/upload/block-body.ts'
import { buildModel } from '../support/model.ts'
import { byId, collect, QUICK, serviceAndClient } from './support.ts'

interface Watched {
  readonly project: Project
  /** The content types of the uploads, and the statuses of their answers. */
  readonly uploads: (readonly [type: string, status: number])[]
}

/** A client whose uploads are watched; `changed` may stand between it and the server. */
async function watched(
  t: TestContext,
  changed: (answer: Response, init: RequestInit) => Response | Promise<Response> = (answer) => answer,
): Promise<Watched> {
  const { url } = await serviceAndClient(t)
  const uploads: (readonly [string, number])[] = []
  const watching: Fetch = async (address, init) => {
    const answer = await changed(await fetch(address, init), init)
    if (address.includes('/objects/') && init.method === 'POST') uploads.push([typeOf(init), answer.status])
    return answer
  }
  return { project: createClient({ url, token: undefined, retry: QUICK, fetch: watching }).project('demo'), uploads }
}

function typeOf(init: RequestInit): string {
  return new Headers(init.headers).get('content-type') ?? 'form'
}

/** A server that knows no ready blocks: nothing announces them, and such an upload is refused. */
function asOlderServer(answer: Response, init: RequestInit): Response {
  if (typeOf(init) === BLOCKS_MEDIA_TYPE)
    return Response.json({ message: 'unknown', statusCode: 415, code: 'unsupported_media_type' }, { status: 415 })
  const headers = new Headers(answer.headers)
  headers.delete('accept-post')
  return new Response(answer.body, { status: answer.status, headers })
}

test('objects are sent as ready blocks to a server that accepts them, and download byte for byte', async (t) => {
  const { project, uploads } = await watched(t)
  const model = buildModel({ objects: 600 })
  const { created, sent, jsonBytes, rewritten } = await project.upload(model.objects, { batchBytes: 200_000 })
  assert.deepEqual([created, sent, rewritten], [600, 600, 0])
  assert.equal(
    jsonBytes,
    [...model.byId.values()].reduce((sum, json) => sum + Buffer.byteLength(json), 0),
  )
  assert.ok(uploads.length >= 3)
  assert.deepEqual(new Set(uploads.slice(0, -1).map(([type]) => type)), new Set([BLOCKS_MEDIA_TYPE]))
  assert.deepEqual(new Set(uploads.map(([, status]) => status)), new Set([200]))
  assert.deepEqual(byId(await collect(project.graphTexts(model.rootId))), model.byId)
})

test('without a diff, the answer to the first upload announces ready blocks', async (t) => {
  const { project, uploads } = await watched(t)
  await project.upload(buildModel({ objects: 600 }).objects, { batchBytes: 200_000, concurrency: 1, sendAll: true })
  const types = uploads.map(([type]) => type)
  assert.deepEqual(types.slice(0, 2), ['application/gzip', BLOCKS_MEDIA_TYPE])
})

test('a server that does not announce ready blocks gets gzip', async (t) => {
  const { project, uploads } = await watched(t, asOlderServer)
  const model = buildModel({ objects: 300 })
  assert.equal((await project.upload(model.objects, { batchBytes: 100_000 })).created, 300)
  assert.deepEqual(new Set(uploads.map(([type]) => type)), new Set(['application/gzip']))
  assert.deepEqual(byId(await collect(project.graphTexts(model.rootId))), model.byId)
})

test('a server that refuses ready blocks gets the batch again as gzip, and no more blocks', async (t) => {
  const { project, uploads } = await watched(t, (answer, init) =>
    typeOf(init) === BLOCKS_MEDIA_TYPE ? asOlderServer(answer, init) : answer,
  )
  const model = buildModel({ objects: 600 })
  const { sent, differing } = await project.upload(model.objects, { batchBytes: 100_000, concurrency: 1 })
  assert.deepEqual([sent, differing], [600, 0])
  assert.deepEqual(uploads.slice(0, 3), [
    [BLOCKS_MEDIA_TYPE, 415],
    ['application/gzip', 200],
    ['application/gzip', 200],
  ])
  assert.equal(uploads.filter(([type]) => type === BLOCKS_MEDIA_TYPE).length, 1)
  assert.deepEqual(byId(await collect(project.graphTexts(model.rootId))), model.byId)
})

test('a chosen form of upload is used throughout', async (t) => {
  const { project, uploads } = await watched(t)
  const model = buildModel({ objects: 100 })
  await project.upload(model.objects, { body: 'gzip' })
  assert.deepEqual(new Set(uploads.map(([type]) => type)), new Set(['application/gzip']))
})

test('a platform without zlib makes no blocks', () => {
  assert.equal(platformCompressor({}), undefined)
  assert.equal(platformCompressor({ process: { getBuiltinModule: () => undefined } }), undefined)
  assert.notEqual(platformCompressor(), undefined)
})

test('texts that the server would rewrite are sent as gzip', async (t) => {
  const { project, uploads } = await watched(t)
  const text = 'x'.repeat(20_000)
  const { rewritten } = await project.upload([
    { id: 'pretty', json: `{\n"id":"pretty","text":"${text}"}` },
    { id: 'last', json: '{"id":"last"}' },
  ])
  assert.equal(rewritten, 1)
  assert.deepEqual(new Set(uploads.map(([type]) => type)), new Set(['application/gzip']))
})
