import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fetch, type GraphProgress } from '../../src/client/index.ts'
import { buildModel, type Model } from '../support/model.ts'
import { breakingProxy, byId, collect, planned, QUICK, serviceAndClient } from './support.ts'

const MODEL: Model = buildModel({ objects: 1_500 })

test('a graph arrives whole over a connection that keeps breaking, and each byte is requested once', async (t) => {
  const { project, port, url, withOptions } = await serviceAndClient(t)
  await project.upload(MODEL.objects)
  await planned({ url }, MODEL.rootId)
  const proxy = await breakingProxy(t, port, 20_000)
  let last: GraphProgress | undefined
  const texts = await collect(
    withOptions({ url: proxy.url, retry: { ...QUICK, attemptsMax: 3 } }).graphTexts(MODEL.rootId, {
      onProgress: (progress) => (last = progress),
      verifyIds: true,
    }),
  )
  assert.deepEqual(byId(texts), MODEL.byId)
  const { resumes = 0, restarts, receivedBytes = 0, totalBytes = 0, objects } = last ?? {}
  assert.ok(resumes >= 10, `${resumes} resumes`)
  assert.deepEqual([restarts, objects], [0, 1_500])
  assert.ok(totalBytes > 200_000 && receivedBytes <= totalBytes, `${receivedBytes} of ${totalBytes} bytes`)
})

test('a response that changed after a disconnect restarts the download, and nothing arrives twice', async (t) => {
  const { project, port, url, withOptions } = await serviceAndClient(t)
  const [last, ...others] = [...MODEL.objects].filter(({ id }) => id !== MODEL.rootId)
  await project.upload([...others, { id: MODEL.rootId, json: MODEL.byId.get(MODEL.rootId) ?? '' }], { sendAll: true })
  await planned({ url }, MODEL.rootId)
  const proxy = await breakingProxy(t, port, 100_000, async (count) => {
    if (count > 1) return
    await project.upload([last])
    await planned({ url }, MODEL.rootId)
  })
  let progress: GraphProgress | undefined
  const texts = await collect(
    withOptions({ url: proxy.url }).graphTexts(MODEL.rootId, { onProgress: (told) => (progress = told) }),
  )
  assert.deepEqual(byId(texts), MODEL.byId)
  assert.equal(progress?.restarts, 1)
  assert.ok((progress?.resumes ?? 0) > 0)
})

test('a response that cannot be resumed restarts, and nothing arrives twice', async (t) => {
  const { project, withOptions } = await serviceAndClient(t)
  await project.upload(MODEL.objects)
  let asked = 0
  const breaking: Fetch = async (url, init) => {
    const response = await fetch(url.replace('archive=gzip', ''), init)
    asked += 1
    return new Response(response.body?.pipeThrough(cutAfter(asked * 600_000)), { headers: response.headers })
  }
  let progress: GraphProgress | undefined
  const texts = await collect(
    withOptions({ fetch: breaking }).graphTexts(MODEL.rootId, { onProgress: (told) => (progress = told) }),
  )
  assert.deepEqual(byId(texts), MODEL.byId)
  assert.ok(asked > 2 && progress?.restarts === asked - 1)
})

test('a file of unknown length that ends early is requested again, and nothing arrives twice', async (t) => {
  const { project, withOptions } = await serviceAndClient(t)
  await project.upload(MODEL.objects)
  let asked = 0
  const ending: Fetch = async (url, init) => {
    const response = await fetch(url, init)
    const headers = new Headers(response.headers)
    headers.delete('Content-Length')
    const bytes = Buffer.from(await response.arrayBuffer())
    asked += 1
    return new Response(bytes.subarray(0, asked * 100_000), { headers })
  }
  let progress: GraphProgress | undefined
  const texts = await collect(
    withOptions({ fetch: ending }).graphTexts(MODEL.rootId, { onProgress: (told) => (progress = told) }),
  )
  assert.deepEqual(byId(texts), MODEL.byId)
  assert.ok(asked > 2 && progress?.restarts === asked - 1, `${asked} requests, ${progress?.restarts} restarts`)
})

test('an interrupted list requests only the remaining objects', async (t) => {
  const { project, withOptions } = await serviceAndClient(t)
  await project.upload(MODEL.objects)
  let asked = 0
  const breaking: Fetch = async (url, init) => {
    const response = await fetch(url, init)
    asked += 1
    return new Response(response.body?.pipeThrough(cutAfter(300_000)), { headers: response.headers })
  }
  const texts = await collect(withOptions({ fetch: breaking }).listTexts([...MODEL.byId.keys()].slice(0, 1_000)))
  assert.deepEqual(byId(texts).size, 1_000)
  assert.ok(asked > 2)
})

test('a connection without progress is given up', async (t) => {
  const { project, port, withOptions } = await serviceAndClient(t)
  await project.upload(MODEL.objects)
  const proxy = await breakingProxy(t, port, 100)
  await assert.rejects(
    collect(withOptions({ url: proxy.url, retry: { ...QUICK, attemptsMax: 4 } }).graph(MODEL.rootId)),
    { code: 'network_failed', isRetryable: true },
  )
  assert.equal(proxy.connections(), 4)
})

/** Fails like a connection does, after so many bytes. */
function cutAfter(bytesMax: number): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.length
      if (bytes > bytesMax) controller.error(new TypeError('terminated'))
      else controller.enqueue(chunk)
    },
  })
}
