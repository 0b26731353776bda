import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { ClientError, contentId, createClient, type Fetch, type GraphInfo } from '../../src/client/index.ts'
import { openService } from '../http/served.ts'
import { buildModel } from '../support/model.ts'
import { byId, collect, idsOf, QUICK, serviceAndClient } from './support.ts'
import { eventually, turns } from '../support/patience.ts'

const REFERENCE = { speckle_type: 'reference' }

test('get, list and has return held objects and report the others', async (t) => {
  const { project } = await serviceAndClient(t)
  await project.upload([
    { id: 'a', n: 1 },
    { id: '__proto__', n: 2 },
    { id: '..', n: 3 },
    { id: 'ü/%2F?#', n: 4 },
  ])
  assert.deepEqual(await project.get<{ id: string; n: number }>('a'), { id: 'a', n: 1 })
  assert.deepEqual(await project.get('ü/%2F?#'), { id: 'ü/%2F?#', n: 4 })
  assert.equal(await project.get('b'), undefined)
  await assert.rejects(project.get('..'), { code: 'invalid_id' })
  const missing: string[] = []
  const listed = await collect(
    project.list(['b', 'a', '..', 'a', '__proto__'], { onMissing: (ids) => missing.push(...ids) }),
  )
  assert.deepEqual(idsOf(listed).sort(), ['..', '__proto__', 'a'])
  assert.deepEqual(missing, ['b'])
  await assert.rejects(
    collect(project.list(['a', 'b'], { strict: true })),
    (error) => error instanceof ClientError && error.code === 'objects_missing' && error.ids[0] === 'b',
  )
  const { held, missing: lacking } = await project.has(['a', 'b', '__proto__', 'b', 'c'])
  assert.deepEqual(
    [[...held], lacking],
    [
      ['a', '__proto__'],
      ['b', 'c'],
    ],
  )
})

test('lists of any length are requested a thousand ids at a time, a few requests at once', async (t) => {
  const { project, withOptions } = await serviceAndClient(t)
  const all = Array.from({ length: 4_500 }, (_, n) => `object-${n}`)
  await project.upload(
    all.map((id) => ({ id })),
    { sendAll: true },
  )
  const asked: number[] = []
  let open = 0
  let openMax = 0
  const counting: Fetch = async (url, init) => {
    asked.push((JSON.parse((JSON.parse(init.body as string) as { objects: string }).objects) as string[]).length)
    openMax = Math.max(openMax, ++open)
    await eventually(() => openMax > 1, 'two are under way')
    return fetch(url, init).finally(() => (open -= 1))
  }
  const counted = withOptions({ fetch: counting })
  async function* ids(): AsyncGenerator<string> {
    yield* all
    yield* all
  }
  assert.deepEqual(new Set(byId(await collect(counted.listTexts(ids(), { concurrency: 2 }))).keys()), new Set(all))
  assert.deepEqual(asked, [1_000, 1_000, 1_000, 1_000, 500])
  assert.equal(openMax, 2)
  asked.length = 0
  assert.equal((await counted.has(ids())).held.size, 4_500)
  assert.deepEqual([asked.length, Math.max(...asked), Math.min(...asked)], [5, 1_000, 500])
})

test('a graph arrives with the metadata of the server, and missing objects are counted or an error', async (t) => {
  const { project } = await serviceAndClient(t)
  await project.upload([
    { id: 'leaf' },
    {
      id: 'root',
      at: [
        { ...REFERENCE, referencedId: 'leaf' },
        { ...REFERENCE, referencedId: 'gone' },
      ],
    },
  ])
  let info: GraphInfo | undefined
  const objects = await collect(project.graph('root', { onInfo: (told) => (info = told) }))
  assert.deepEqual(idsOf(objects), ['root', 'leaf'])
  assert.equal(info?.missing, 1)
  assert.match(info?.closure ?? '', /^[0-9a-f]{32,}$/)
  await assert.rejects(
    collect(project.graph('root', { strict: true })),
    (error) => error instanceof ClientError && error.statusCode === 409 && error.ids[0] === 'gone',
  )
  await assert.rejects(collect(project.graph('gone')), { code: 'not_found', statusCode: 404, isRetryable: false })
})

test('a difference leaves out descendants of another root', async (t) => {
  const { project } = await serviceAndClient(t)
  const [first, second] = [buildModel({ objects: 600 }), buildModel({ objects: 600, revision: 1 })]
  await project.upload([...first.objects, ...second.objects])
  let info: GraphInfo | undefined
  await collect(project.graphTexts(first.rootId, { onInfo: (told) => (info = told) }))
  const difference = await collect(
    project.graphTexts(second.rootId, {
      have: [`${first.rootId}@${info?.closure}`, 'unknown'],
      onInfo: (told) => (info = told),
    }),
  )
  assert.deepEqual(
    [...(info?.have ?? [])],
    [
      [first.rootId, 'subtracted'],
      ['unknown', 'unknown'],
    ],
  )
  assert.deepEqual(new Set(idsOf(difference)), new Set([...second.byId.keys()].filter((id) => !first.byId.has(id))))
})

test('optional hashes detect one changed byte', async (t) => {
  const { project } = await serviceAndClient(t)
  const model = buildModel({ objects: 300 })
  await project.upload(model.objects)
  assert.equal((await collect(project.graph(model.rootId, { verifyIds: true }))).length, 300)
  const id = await contentId('{"value":1}')
  await project.upload([{ id, json: `{"id":"${id}","value":2}` }])
  await assert.rejects(collect(project.graph(id, { verifyIds: true })), {
    code: 'integrity_failed',
    isRetryable: false,
  })
})

test('a hash ignores an id that is named later in the text', async () => {
  const line = async (rest: string): Promise<string> =>
    `${await contentId(`{${rest}`)}\t{"id":"${await contentId(`{${rest}`)}",${rest}\n`
  const comes = async (rest: string): Promise<number> => {
    const body = await line(rest)
    const project = createClient({
      url: 'http://in.process',
      token: undefined,
      fetch: async () => new Response(body, { headers: { 'Content-Type': 'text/plain' } }),
    }).project('demo')
    return (await collect(project.graph('a', { verifyIds: true }))).length
  }
  for (const rest of ['"n":1}', '"at":{"id":"inside"}}', '"text":"\\"id\\":1"}'])
    assert.equal(await comes(rest), 1, rest)
  for (const rest of ['"n":1,"id":"another"}', '"n":1,"\\u0069d" : "another"}'])
    await assert.rejects(comes(rest), { code: 'integrity_failed' }, rest)
})

test('a consumer that stops or aborts frees the connection', async (t) => {
  const { project, withOptions } = await serviceAndClient(t)
  const model = buildModel({ objects: 1_000 })
  await project.upload(model.objects)
  const signals: AbortSignal[] = []
  const watched = withOptions({ fetch: (url, init) => (signals.push(init.signal as AbortSignal), fetch(url, init)) })
  for (const batches of [watched.graph(model.rootId), watched.list(model.byId.keys())]) {
    for await (const batch of batches) {
      assert.ok(batch.length > 0)
      break
    }
  }
  assert.ok(signals.length >= 2 && signals.every(({ aborted }) => aborted))
  const controller = new AbortController()
  const reason = new Error('enough')
  await assert.rejects(
    async () => {
      for await (const _ of watched.graph(model.rootId, { signal: controller.signal })) controller.abort(reason)
    },
    (error) => error === reason,
  )
  await assert.rejects(collect(watched.list(['a'], { signal: controller.signal })), (error) => error === reason)
})

test('a slow consumer slows the response', async (t) => {
  const { project } = await serviceAndClient(t)
  const text = Array.from({ length: 4_000 }, () => Math.random().toString(36)).join(' ')
  const ids = Array.from({ length: 100 }, (_, n) => `part-${n}`)
  await project.upload([
    ...ids.map((id) => ({ id, text: text.slice(Number(id.slice(5))) })),
    { id: 'root', at: ids.map((id) => ({ ...REFERENCE, referencedId: id })) },
  ])
  let received = 0
  let total = 0
  for await (const _ of project.graph('root', {
    onProgress: ({ receivedBytes, totalBytes = 0 }) => ([received, total] = [receivedBytes, totalBytes]),
  })) {
    await turns(200)
    break
  }
  assert.ok(total > 1_500_000 && received < total / 2, `${received} of ${total} bytes`)
})

test('a malformed response is an error and never an object', async () => {
  const line = 'a\t{"id":"a"}\n'
  const text = { 'Content-Type': 'text/plain' }
  const file = { 'Content-Type': 'application/gzip' }
  const whole = gzipSync(line.repeat(50))
  const flipped = Uint8Array.from(whole, (byte, at) => (at === whole.length - 8 ? byte ^ 1 : byte))
  const cases: [string, string | Uint8Array<ArrayBuffer>, Record<string, string>, string][] = [
    ['a last line without its end', 'a\t{"id":"a"}', text, 'integrity_failed'],
    ['fewer objects than announced', line, { ...text, 'Stowage-Objects': '2' }, 'integrity_failed'],
    ['a line without a tab', 'nonsense\n', text, 'invalid_answer'],
    ['no UTF-8', new Uint8Array([0x61, 0x09, 0xff, 0x0a]), text, 'invalid_answer'],
    ['another type', '[]', { 'Content-Type': 'text/html' }, 'invalid_answer'],
    ['a file that is cut', whole.subarray(0, -9), file, 'integrity_failed'],
    ['a wrong checksum', flipped, file, 'integrity_failed'],
    ['no gzip', 'plain', file, 'integrity_failed'],
    ['no JSON', 'a\t{\n', text, 'invalid_answer'],
    ['no object', 'a\tnull\n', text, 'invalid_answer'],
    ['another object', 'a\t{"id":"b"}\n', text, 'invalid_answer'],
  ]
  for (const [name, body, headers, code] of cases) {
    const project = createClient({
      url: 'http://in.process',
      token: 'x',
      retry: { ...QUICK, attemptsMax: 2 },
      fetch: async () => new Response(body, { headers }),
    }).project('demo')
    await assert.rejects(collect(project.graph('a')), { name: 'ClientError', code }, name)
  }
})

test('a server without download metadata is read as text', async () => {
  const service = openService()
  const plain: Fetch = (url, init) => service.fetch(new Request(url.replace('archive=gzip', ''), init))
  const project = createClient({ url: 'http://in.process/', token: undefined, fetch: plain }).project('demo')
  const model = buildModel({ objects: 400 })
  await project.upload(model.objects)
  assert.deepEqual(byId(await collect(project.graphTexts(model.rootId))), model.byId)
  await service.close()
})

test('each request carries a fresh token on demand, and invalid addresses and options are refused', async (t) => {
  const seen: (string | null)[] = []
  const noting: Fetch = async (_, init) => (
    seen.push(new Headers(init.headers).get('authorization')),
    new Response('{"message":"no","statusCode":401,"code":"unauthenticated"}', { status: 401 })
  )
  const tokens = ['one', 'two']
  const project = createClient({
    url: 'http://in.process',
    token: async () => tokens.shift() ?? '',
    fetch: noting,
  }).project('demo')
  for (let n = 0; n < 2; n++)
    await assert.rejects(project.get('a'), { code: 'unauthenticated', statusCode: 401, isRetryable: false })
  assert.deepEqual(seen, ['Bearer one', 'Bearer two'])
  for (const url of ['nowhere', 'ftp://a.example', 'http://a.example?x', 'http://u:p@a.example'])
    assert.throws(() => createClient({ url, token: undefined }), TypeError)
  for (const retry of [{ attemptsMax: 0 }, { delayMs: -1 }])
    assert.throws(() => createClient({ url: 'http://a.example', token: undefined, retry }), RangeError)
  assert.equal(createClient({ url: 'http://a.example/models/', token: undefined }).url, 'http://a.example/models')
  const { url } = await serviceAndClient(t, { prefix: '/models' })
  await assert.rejects(createClient({ url, token: undefined }).project('demo').get('a'), { code: 'route_not_found' })
})
