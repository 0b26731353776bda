import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { ClientError, createClient, type Fetch, type UploadProgress } from '../../src/client/index.ts'
import { buildModel } from '../support/model.ts'
import { eventually, turns } from '../support/patience.ts'
import { byId, collect, QUICK, serviceAndClient } from './support.ts'

test('a model uploads in several requests and downloads byte for byte, and a second upload sends nothing', async (t) => {
  const { project } = await serviceAndClient(t)
  const model = buildModel({ objects: 1_200 })
  const told: UploadProgress[] = []
  const first = await project.upload(model.objects, {
    batchBytes: 300_000,
    onProgress: (progress) => told.push(progress),
  })
  assert.equal(first.created, 1_200)
  assert.equal(first.lastId, model.rootId)
  assert.ok(first.requests >= 4 && first.wireBytes * 4 < first.jsonBytes)
  const last = told.at(-1)
  assert.deepEqual([last?.objects, last?.sent, last?.held, last?.requests], [1_200, 1_200, 0, first.requests])
  assert.deepEqual(byId(await collect(project.graphTexts(model.rootId))), model.byId)
  const again = await project.upload(model.objects)
  assert.deepEqual([again.held, again.sent, again.requests], [1_200, 0, 0])
})

test('objects, texts, arrays and asynchronous sources upload as gzip files and as forms', async (t) => {
  const { project } = await serviceAndClient(t)
  async function* source(): AsyncGenerator<object> {
    yield { id: 'a', value: 'é\u2028' }
    yield [{ id: 'b' }, { id: 'c', json: '{"x":1,"id":"c"}' }]
    yield []
    yield { id: 'd', json: '{ "a" : {"id":"other"}, "id":"d", "z":0}' }
  }
  const { created } = await project.upload(source(), { body: 'multipart', sendAll: true })
  assert.equal(created, 4)
  assert.deepEqual(await project.get('a'), { id: 'a', value: 'é\u2028' })
  assert.equal((await project.getText('d'))?.json, '{ "a" : {"id":"other"}, "id":"d", "z":0}')
  assert.deepEqual(await project.upload([]), {
    objects: 0,
    held: 0,
    sent: 0,
    requests: 0,
    deltas: 0,
    jsonBytes: 0,
    wireBytes: 0,
    retries: 0,
    created: 0,
    differing: 0,
    rewritten: 0,
    lastId: undefined,
  })
  assert.equal((await project.upload([{ id: 'a', value: 'another' }], { sendAll: true })).differing, 1)
})

test('objects whose text is rewritten are counted and keep their values', async (t) => {
  const { project } = await serviceAndClient(t)
  const texts = [
    '{"id":"kept", "x": 1.50}',
    '{\n  "id": "pretty",\r\n\t"x": 1.50\n}',
    '{"id":"separators","x":"\u0085\u2028\u2029"}',
    '{"id":"escaped","x":"\\n\\u2028"}',
  ]
  const { rewritten, created } = await project.upload(
    texts.map((json) => ({ id: JSON.parse(json).id as string, json })),
    { sendAll: true },
  )
  assert.deepEqual([rewritten, created], [2, 4])
  const heldTexts = await Promise.all(
    ['kept', 'pretty', 'separators', 'escaped'].map(async (id) => (await project.getText(id))?.json),
  )
  assert.deepEqual(heldTexts, [
    texts[0],
    '{"id": "pretty","x": 1.50}',
    '{"id":"separators","x":"\\u0085\\u2028\\u2029"}',
    texts[3],
  ])
  for (const [at, text] of texts.entries()) assert.deepEqual(JSON.parse(heldTexts[at] ?? ''), JSON.parse(text))
})

test('an object without an id gets the id that the server would assign', async (t) => {
  const { project, url } = await serviceAndClient(t)
  for (const object of [{}, { name: 'x', list: [1, { y: null }] }, { text: 'a\u0085b\u2028c\u2029d\ud800' }]) {
    const { lastId } = await project.upload([object], { sendAll: true })
    const response = await fetch(`${url}/objects/other`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify([object]),
    })
    const { assigned } = (await response.json()) as { assigned: { id: string }[] }
    assert.equal(lastId, assigned[0].id)
  }
  const text = '{"name":"x"}'
  assert.equal(
    (await project.upload([{ name: 'x' }])).lastId,
    createHash('sha256').update(text).digest('hex').slice(0, 32),
  )
})

test('the last object is sent after all others are acknowledged', async (t) => {
  const { withOptions, project } = await serviceAndClient(t)
  const model = buildModel({ objects: 1_200 })
  let uploads = 0
  let isRootHeld = false
  const fetchAndLook: Fetch = async (url, init) => {
    if (init.method === 'POST' && url.endsWith('/objects/demo')) {
      uploads += 1
      isRootHeld ||= (await project.has([model.rootId])).held.size > 0
    }
    return fetch(url, init)
  }
  const { requests } = await withOptions({ fetch: fetchAndLook }).upload(model.objects, { batchBytes: 150_000 })
  assert.ok(uploads > 5 && uploads === requests)
  assert.equal(isRootHeld, false)
})

test('temporary faults are retried: a broken connection, 408, 429, 500 and 503, not before Retry-After', async (t) => {
  const { withOptions } = await serviceAndClient(t)
  const failures = [
    () => Promise.reject(new TypeError('fetch failed')),
    ...[408, 429, 500, 503].map(
      (status) => () =>
        Promise.resolve(new Response('', { status, headers: status === 503 ? { 'Retry-After': '0.1' } : {} })),
    ),
  ]
  const waits: [string | number, number][] = []
  const flaky: Fetch = (url, init) =>
    (init.method === 'POST' && url.endsWith('/objects/demo') && failures.shift()?.()) || fetch(url, init)
  const retry = {
    ...QUICK,
    onRetry: (error: ClientError, waitMs: number) =>
      waits.push([error.isAnswered ? error.statusCode : error.code, waitMs]),
  }
  const result = await withOptions({ fetch: flaky, retry }).upload([{ id: 'a' }])
  assert.deepEqual([result.retries, result.created], [5, 1])
  assert.deepEqual(
    waits.map(([what]) => what),
    ['network_failed', 408, 429, 500, 503],
  )
  assert.ok(
    waits.every(([what, waitMs]) => (what === 503 ? waitMs >= 100 : waitMs <= 5)),
    JSON.stringify(waits),
  )
})

test('permanent faults are not retried, and retries end', async (t) => {
  const { withOptions, project } = await serviceAndClient(t, { limits: { objectBytesMax: 1_000 } })
  await assert.rejects(project.upload([{ id: 'a', text: 'x'.repeat(2_000) }]), (error) => {
    assert.ok(error instanceof ClientError)
    assert.deepEqual([error.code, error.statusCode, error.isRetryable], ['object_too_large', 413, false])
    assert.match(error.requestId ?? '', /^\w+$/)
    return true
  })
  for (const [status, isRetryable, tries] of [
    [503, true, 3],
    [507, false, 1],
    [501, false, 1],
    [400, false, 1],
  ] as const) {
    let asked = 0
    const failing = withOptions({
      retry: { ...QUICK, attemptsMax: 3 },
      fetch: async () => new Response(`{"message":"so be it","statusCode":${status}}`, { status: (asked++, status) }),
    })
    await assert.rejects(
      failing.upload([{ id: 'a' }]),
      (error) =>
        error instanceof ClientError &&
        error.isRetryable === isRetryable &&
        /answered \d+: so be it/.test(error.message),
    )
    assert.equal(asked, tries)
  }
  const late = withOptions({ fetch: async () => new Response('', { status: 503, headers: { 'Retry-After': '3600' } }) })
  await assert.rejects(late.upload([{ id: 'a' }]), { code: 'http_error', statusCode: 503, retryAfterMs: 3_600_000 })
  await assert.rejects(
    withOptions({ retry: false, fetch: () => Promise.reject(new TypeError('no')) }).upload([{ id: 'a' }]),
    { code: 'network_failed', isRetryable: true },
  )
})

test('a service with no counts, or different ones, is trusted by its status', async () => {
  for (const [text, type] of [
    ['', 'text/plain'],
    ['{"created":"5","differing":null}', 'application/json'],
    ['[]', 'application/json'],
    ['Created', ''],
  ] as const) {
    const fetchOne: Fetch = async () =>
      new Response(text, { status: 201, headers: type === '' ? {} : { 'Content-Type': type } })
    const { created, differing, sent } = await createClient({
      url: 'http://in.process',
      token: undefined,
      fetch: fetchOne,
    })
      .project('demo')
      .upload([{ id: 'a' }], { sendAll: true })
    assert.deepEqual([created, differing, sent], [1, 0, 1], text)
  }
})

test('a silent server is given up after a time limit', async (t) => {
  const { withOptions } = await serviceAndClient(t)
  const silent: Fetch = (_, init) =>
    new Promise((_resolve, reject) =>
      init.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error)),
    )
  const project = withOptions({ fetch: silent, stallTimeoutMs: 20, retry: { ...QUICK, attemptsMax: 2 } })
  await assert.rejects(project.upload([{ id: 'a' }]), { code: 'timed_out', isRetryable: true })
})

test('an abort ends the upload at once with its reason, and ends the source', async (t) => {
  const { withOptions } = await serviceAndClient(t)
  const reason = new Error('enough')
  for (const when of ['before', 'in flight', 'while the source waits', 'while it waits for another try'] as const) {
    const controller = new AbortController()
    const { signal } = controller
    if (when === 'before') controller.abort(reason)
    let ended = false
    async function* endless(): AsyncGenerator<object> {
      try {
        for (let n = 0; ; n++) {
          if (when === 'while the source waits' && n === 10)
            await turns().then(() => (controller.abort(reason), turns()))
          yield { n }
        }
      } finally {
        ended = true
      }
    }
    const hanging: Fetch = (url, init) => {
      setImmediate(() => controller.abort(reason))
      if (when !== 'in flight') return Promise.reject(new TypeError('fetch failed'))
      return fetch(url, init)
    }
    const project = withOptions({
      retry: { delayMs: 60_000 },
      ...(when === 'while the source waits' ? {} : { fetch: hanging }),
    })
    await assert.rejects(project.upload(endless(), { signal, batchBytes: 5_000 }), (error) => error === reason, when)
    if (when !== 'before') await eventually(() => ended, `the source ends: ${when}`)
  }
})

test('an upload rejects with the error of its source', async (t) => {
  const { project } = await serviceAndClient(t)
  const reason = new Error('no more')
  function* source(): Generator<object> {
    yield { id: 'a' }
    throw reason
  }
  await assert.rejects(project.upload(source()), (error) => error === reason)
})

test('a value that cannot be an object is refused with a reason', async (t) => {
  const { project } = await serviceAndClient(t)
  for (const [item, code] of [
    [['text'], 'invalid_value'],
    [[null], 'invalid_value'],
    [{ id: 5 }, 'invalid_value'],
    [{ id: 'a', json: '{"id":"b"}' }, 'invalid_id'],
    [{ id: 'a', json: '{"id":' }, 'invalid_value'],
    [new Date(), 'invalid_value'],
  ] as const) {
    await assert.rejects(project.upload([item]), { name: 'ClientError', code })
  }
  const circle: Record<string, unknown> = {}
  circle.self = circle
  for (const item of [{ n: 1n }, circle, { toJSON: () => undefined }, { toJSON: () => [1] }])
    await assert.rejects(project.upload([item]), { name: 'ClientError', code: 'invalid_value' })
  for (const options of [{ concurrency: 0 }, { concurrency: 1e9 }, { batchBytes: 2 ** 31 }])
    await assert.rejects(project.upload([{ id: 'a' }], options), RangeError)
})

test('the id comes from the text, not from the parsed value', async (t) => {
  const { project } = await serviceAndClient(t)
  class Wall {
    readonly n = 1
    get id(): string {
      return 'not in the text'
    }
  }
  const shown = [
    new Wall(),
    { id: 'dropped', toJSON: () => ({ n: 2 }) },
    { id: 'another', toJSON: () => ({ id: 'written', n: 3 }) },
  ]
  for (const item of shown) {
    const { lastId = '' } = await project.upload([item])
    assert.equal((await project.get(lastId))?.id, lastId)
  }
  assert.deepEqual((await project.has(['not in the text', 'dropped', 'another', 'written'])).missing, [
    'not in the text',
    'dropped',
    'another',
  ])
})

test('the source is read at most a few groups ahead of acknowledged ones', async (t) => {
  const { project } = await serviceAndClient(t)
  let made = 0
  let acknowledged = 0
  let aheadMax = 0
  function* source(): Generator<object> {
    for (; made < 25_000; made++) {
      aheadMax = Math.max(aheadMax, made - acknowledged)
      yield { id: `object-${made}`, name: 'one of many' }
    }
  }
  const { created } = await project.upload(source(), {
    batchBytes: 100_000,
    onProgress: ({ sent, held }) => (acknowledged = sent + held),
  })
  assert.equal(created, 25_000)
  assert.ok(aheadMax < 12_000, `${aheadMax} objects ahead`)
})

test('a request that is too large for a proxy or for the service is sent in halves, and the root still comes last', async (t) => {
  const model = buildModel({ objects: 1_200 })
  const proxyMaxBytes = 40_000
  for (const limits of [{}, { requestBytesMax: 30_000, inflatedBytesMax: 200_000 }]) {
    const { url } = await serviceAndClient(t, { limits })
    /** Of each accepted request: the status of the root after it. */
    const accepted: number[] = []
    let refused = 0
    const limiting: Fetch = async (address, init) => {
      const bytes = init.method === 'POST' && address.endsWith('/objects/demo') ? await bodyBytes(init) : 0
      if (bytes > proxyMaxBytes) {
        refused += 1
        return new Response('<html>', { status: 413, headers: { 'Content-Type': 'text/html' } })
      }
      const answer = await fetch(address, init)
      if (bytes > 0 && answer.status === 200)
        accepted.push((await fetch(`${url}/objects/demo/${model.rootId}/single`)).status)
      else if (answer.status === 413) refused += 1
      return answer
    }
    const project = createClient({ url, token: undefined, fetch: limiting }).project('demo')
    const result = await project.upload(model.objects)
    assert.deepEqual([result.created, result.sent, result.retries], [1_200, 1_200, 0])
    assert.deepEqual(byId(await collect(project.graphTexts(model.rootId))), model.byId)
    assert.equal(result.requests, accepted.length)
    assert.deepEqual([accepted.indexOf(200), accepted.at(-1)], [accepted.length - 1, 200])
    assert.ok(refused >= 2 && refused <= 24, `${refused} requests were refused`)
    assert.ok(accepted.length > 8, `${accepted.length} requests were accepted`)
  }
})

async function bodyBytes({ body }: RequestInit): Promise<number> {
  return (await new Response(body).arrayBuffer()).byteLength
}

test('a 413 of a proxy is reported as such, and a limit of the service as its own', async (t) => {
  const page = '<html><head><title>413 Request Entity Too Large</title></head></html>'
  const proxied = createClient({
    url: 'http://in.process',
    token: undefined,
    fetch: async () => new Response(page, { status: 413, headers: { 'Content-Type': 'text/html' } }),
  }).project('demo')
  await assert.rejects(proxied.upload([{ id: 'a' }], { sendAll: true }), {
    code: 'http_error',
    statusCode: 413,
    isRetryable: false,
    message:
      /answered 413: "<html>.*"; a proxy in front of the service refuses a body of this size: .*client_max_body_size/,
  })
  const { project } = await serviceAndClient(t, { limits: { objectBytesMax: 1_000 } })
  await assert.rejects(project.upload([{ id: 'a', text: 'x'.repeat(2_000) }]), (error) => {
    assert.ok(error instanceof ClientError && error.code === 'object_too_large')
    assert.doesNotMatch(error.message, /proxy/)
    return true
  })
})
