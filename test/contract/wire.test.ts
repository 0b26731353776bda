import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import {
  type CommonServiceOptions,
  createObjectService,
  type ObjectService,
  openAccess,
  StowageError,
  type StoredObject,
} from '../../src/index.ts'
import { MB } from '../../src/limits.ts'
import { PlainObjectStore } from '../http/plain-object-store.ts'
import { errorOf, idList, jsonUpload } from '../http/served.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { openServers } from '../support/several-servers.ts'
import { contractList, filePart, linesOf, multipartUpload, onEverySide, store } from './sides.ts'
import { listenUntilEnd } from '../support/listen.ts'

/* What is offered beside the contract because real clients need it, one test for each entry. The clients themselves are in real-clients.test.ts. */

const everySide = onEverySide()
const typed = (type: string, body: RequestInit['body'], further: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': type, ...further },
  body,
})
const OBJECTS = JSON.stringify([{ id: 'a', x: { y: 1 }, z: [2] }, { id: 'b' }])

function opened(t: TestContext, options: Partial<CommonServiceOptions<unknown>> = {}): ObjectService {
  const service = openServers((backend) => createObjectService({ access: openAccess(), ...options, backend }))
  t.after(() => service.close({ graceMs: 0 }))
  return service
}

test('"the option uploadStatus: 201 is for these clients; it changes nothing else"', async (t) => {
  const outcomes: unknown[] = []
  for (const uploadStatus of [200, 201] as const) {
    const service = opened(t, { uploadStatus, newId: () => '0'.repeat(32) })
    const ask = (path: string, init?: RequestInit): Promise<Response> =>
      service.fetch(new Request(`http://x${path}`, init))
    const upload = await ask('/objects/p', jsonUpload([{ id: 'a' }, { n: 1 }]))
    assert.equal(upload.status, uploadStatus)
    const rest: Response[] = [
      await ask('/api/diff/p', contractList(['a'])),
      await ask('/objects/p/a/single'),
      await ask('/api/getobjects/p', contractList(['a'])),
      await ask('/objects/p', typed('application/json', '[')),
    ]
    outcomes.push(
      await Promise.all(
        [upload, ...rest].map(async (answer) => [
          [...answer.headers],
          await answer.text(),
          answer === upload || answer.status,
        ]),
      ),
    )
  }
  assert.deepEqual(outcomes[1], outcomes[0])
})

everySide(
  '"diff and getobjects take application/json (objects as a string that holds a JSON array, or as a plain array) and form-urlencoded"',
  async (side) => {
    const id = 'a+b &=%"ü'
    await store(side, [{ id }])
    const array = JSON.stringify([id, 'none'])
    const form = new URLSearchParams({ other: 'x', objects: array }).toString()
    const bodies = [
      typed('application/json', JSON.stringify({ objects: array })),
      typed('application/json; charset=utf-8', `{"objects":${array}}`),
      typed('application/x-www-form-urlencoded', form),
      typed('application/x-www-form-urlencoded;charset=UTF-8', form.replaceAll('+', '%20')),
      typed('application/json', gzipSync(`{"objects":${array}}`), { 'Content-Encoding': 'gzip' }),
    ]
    for (const body of bodies) {
      assert.deepEqual(await (await side.ask(`/api/diff/${side.project}`, body)).json(), { [id]: true, none: false })
      const listed = await side.ask(`/api/getobjects/${side.project}`, body)
      assert.deepEqual([listed.headers.get('stowage-missing-objects'), await listed.json()], ['1', [{ id }]])
    }
  },
)

everySide(
  '"any number of ids: the bound is on bytes of the body, and streams of ids are answered in batches"',
  async (side) => {
    const objects = Array.from({ length: 6_000 }, (_, n) => ({ id: `${n}`.padStart(32, 'f') }))
    await store(side, objects)
    const ids = objects.map(({ id }) => id)
    const diff = Object.values(
      (await (await side.ask(`/api/diff/${side.project}`, contractList([...ids, 'none']))).json()) as Record<
        string,
        boolean
      >,
    )
    assert.deepEqual([diff.length, diff.filter(Boolean).length], [6_001, 6_000])
    assert.equal(
      (await linesOf(await side.ask(`/api/getobjects/${side.project}`, contractList(ids, { Accept: 'text/plain' }))))
        .size,
      6_000,
    )
    assert.equal(
      (await linesOf(await side.ask(`/api/v2/projects/${side.project}/object-stream`, idList(ids, 'objectIds')))).size,
      6_000,
    )
  },
)

everySide(
  '"POST /api/v2/projects/{projectId}/object-stream, with and without the slash; the answer is always tab-separated lines"',
  async (side) => {
    await side.ask(`/objects/${side.project}`, typed('application/json', OBJECTS))
    for (const slash of ['', '/']) {
      for (const accept of ['application/json', '*/*', 'text/plain']) {
        const answer = await side.ask(
          `/api/v2/projects/${side.project}/object-stream${slash}`,
          typed('application/json', '{"objectIds":["b","none","a"]}', { Accept: accept }),
        )
        assert.equal(answer.status, 200)
        assert.deepEqual(
          await linesOf(answer),
          new Map([
            ['a', '{"id":"a","x":{"y":1},"z":[2]}'],
            ['b', '{"id":"b"}'],
          ]),
        )
      }
    }
  },
)

everySide(
  '"{objectIds: [...] (1 or more), attributeMask?: {include} | {exclude}}, strict; a mask keeps id whatever it says"',
  async (side) => {
    await (await side.ask(`/objects/${side.project}`, typed('application/json', OBJECTS))).text()
    const stream = (body: unknown): Promise<Response> =>
      side.ask(`/api/v2/projects/${side.project}/object-stream`, typed('application/json', JSON.stringify(body)))
    const masked = async (attributeMask: unknown): Promise<string | undefined> =>
      (await linesOf(await stream({ objectIds: ['a'], attributeMask }))).get('a')
    assert.equal(await masked({ include: ['z'] }), '{"id":"a","z":[2]}')
    assert.equal(await masked({ include: [] }), '{"id":"a"}')
    assert.equal(await masked({ exclude: ['x', 'id'] }), '{"id":"a","z":[2]}')
    assert.equal(await masked({ exclude: [] }), '{"id":"a","x":{"y":1},"z":[2]}')
    const wrong = [
      {},
      { objectIds: [] },
      { objectIds: 'a' },
      { objectIds: [1] },
      { objectIds: ['a'], more: 1 },
      { objectIds: ['a'], attributeMask: {} },
      { objectIds: ['a'], attributeMask: [] },
      { objectIds: ['a'], attributeMask: { include: ['x'], exclude: ['y'] } },
      { objectIds: ['a'], attributeMask: { include: 'x' } },
      { objectIds: ['a'], attributeMask: { other: [] } },
    ]
    for (const body of wrong) assert.equal((await errorOf(await stream(body))).status, 400, JSON.stringify(body))
  },
)

/** Gives nothing until it is told to. */
class SlowStore extends PlainObjectStore {
  letGo: () => void = () => undefined

  override async *get(
    projectId: string,
    ids: readonly string[],
    options: { readonly signal: AbortSignal },
  ): AsyncGenerator<readonly StoredObject[]> {
    await new Promise<void>((resolve) => (this.letGo = resolve))
    yield* super.get(projectId, ids, options)
  }
}

test('"heartbeat lines only for who asks"', async (t) => {
  const slow = new SlowStore()
  const service = createObjectService({ store: slow, access: openAccess() })
  await (await service.fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'a' }])))).text()
  let passedMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + passedMs)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const textAfter = async (heartbeats: string | undefined): Promise<string> => {
    const init = typed(
      'application/json',
      '{"objectIds":["a"]}',
      heartbeats === undefined ? {} : { 'x-speckle-object-stream-heartbeats': heartbeats },
    )
    const text = (await service.fetch(new Request('http://x/api/v2/projects/p/object-stream/', init))).text()
    for (let round = 0; round < 3; round++) {
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      passedMs += 5_000
      t.mock.timers.tick(5_000)
    }
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    slow.letGo()
    return text
  }
  assert.match(await textAfter('true'), /^(:heartbeat\n){2,3}a\t\{"id":"a"\}\n$/)
  assert.equal(await textAfter(undefined), 'a\t{"id":"a"}\n')
  assert.equal(await textAfter('false'), 'a\t{"id":"a"}\n')
  t.mock.timers.reset()
  await service.close()
})

everySide(
  '"a file part counts by its content (1f 8b opens gzip), its content type and its part headers agree or it is refused with a clear error"',
  async (side) => {
    const [json, gzip] = ['[{"id":"x"}]', gzipSync('[{"id":"x"}]')]
    const named = 'Content-Disposition: form-data; name="file"; filename="x"'
    const good = [
      filePart(json, 'text/plain'),
      filePart(gzip, 'application/x-gzip'),
      filePart(gzip, 'application/octet-stream'),
      filePart(json, 'application/octet-stream'),
      { headers: [named], content: gzip },
      { headers: [named], content: json },
      { headers: [named, 'Content-Type: application/gzip', 'Content-Encoding: gzip'], content: gzip },
      { headers: [named, 'Content-Type: application/json', 'Content-Encoding: gzip'], content: gzip },
    ]
    for (const part of good)
      assert.equal(
        (await side.ask(`/objects/${side.project}`, multipartUpload([part]))).status,
        200,
        part.headers.join(),
      )
    const bad = [
      filePart(json, 'application/gzip'),
      filePart(gzip, 'application/json'),
      filePart(gzip, 'text/plain'),
      { headers: [named, 'Content-Type: application/json', 'Content-Encoding: gzip'], content: json },
    ]
    for (const part of bad) {
      const error = await errorOf(await side.ask(`/objects/${side.project}`, multipartUpload([part])))
      assert.deepEqual([error.status, /part 0 .* declared/.test(error.message)], [400, true], error.message)
    }
    const image = await errorOf(
      await side.ask(`/objects/${side.project}`, multipartUpload([filePart(json, 'image/png')])),
    )
    assert.equal(image.status, 415)
  },
)

everySide(
  '"a part without a file name is still a file when its name is file or its type is one of the accepted ones"',
  async (side) => {
    const part = (name: string, type?: string): Parameters<typeof multipartUpload>[0][number] => ({
      headers: [
        `Content-Disposition: form-data; name="${name}"`,
        ...(type === undefined ? [] : [`Content-Type: ${type}`]),
      ],
      content: `[{"id":"${name}"}]`,
    })
    for (const accepted of [part('file'), part('batch', 'application/json'), part('batch-2', 'text/plain')]) {
      assert.equal((await side.ask(`/objects/${side.project}`, multipartUpload([accepted]))).status, 200)
    }
    const field = await errorOf(await side.ask(`/objects/${side.project}`, multipartUpload([part('comment')])))
    assert.deepEqual([field.status, field.message.includes('"comment"')], [400, true], 'never dropped in silence')
  },
)

everySide(
  '"whole-body uploads: application/gzip and application/json. A Content-Encoding: gzip request header on JSON works too"',
  async (side) => {
    const objects = (id: string): string => JSON.stringify([{ id }])
    const bodies = [
      typed('application/json', objects('1')),
      typed('application/gzip', gzipSync(objects('2'))),
      typed('application/json', gzipSync(objects('3')), { 'Content-Encoding': 'gzip' }),
      typed('application/gzip', gzipSync(objects('4')), { 'Content-Encoding': 'gzip' }),
    ]
    for (const body of bodies) assert.equal((await side.ask(`/objects/${side.project}`, body)).status, 200)
    assert.deepEqual(await (await side.ask(`/api/diff/${side.project}`, contractList(['1', '2', '3', '4']))).json(), {
      1: true,
      2: true,
      3: true,
      4: true,
    })
  },
)

test('"CORS: a built-in option answers OPTIONS on every route with the right methods and headers", and nothing without it', async (t) => {
  const [open, closed] = [opened(t, { cors: { origins: '*' } }), opened(t)]
  for (const endpoint of Object.values(open.endpoints)) {
    const url = `http://x${endpoint.path.replace(':projectId', 'p').replace(':objectId', 'a')}`
    const headers = {
      Origin: 'https://viewer.example',
      'Access-Control-Request-Method': endpoint.method,
      'Access-Control-Request-Headers': 'authorization,content-type',
    }
    const preflight = await open.fetch(new Request(url, { method: 'OPTIONS', headers }))
    assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-origin')], [204, '*'])
    assert.ok(preflight.headers.get('access-control-allow-methods')?.split(', ').includes(endpoint.method))
    assert.equal(preflight.headers.get('access-control-allow-headers'), 'authorization,content-type')
    assert.equal(
      (await closed.fetch(new Request(url, { method: 'OPTIONS', headers }))).headers.get('access-control-allow-origin'),
      null,
    )
  }
})

test('"older .NET batches can pass 50 MB in one request: 413 unless requestBytesMax is raised"', async (t) => {
  const part = (n: number): string => JSON.stringify([{ id: `${n}`, data: 'x'.repeat(300_000) }])
  const batch = multipartUpload([0, 1, 2, 3, 4].map((n) => filePart(part(n), 'text/plain')))
  const statusOf = async (requestBytesMax: number): Promise<number> =>
    (await opened(t, { limits: { requestBytesMax } }).fetch(new Request('http://x/objects/p', batch))).status
  assert.deepEqual([await statusOf(MB), await statusOf(2 * MB)], [413, 200])
})

test('"back off with 503 and an integer Retry-After"', async (t) => {
  for (const code of ['overloaded', 'storage_unavailable', 'access_unavailable'] as const) {
    const service = opened(t, {
      access: { authenticate: () => Promise.reject(new StowageError(code, 'not now')), authorize: () => true },
    })
    const answer = await service.fetch(new Request('http://x/objects/p', jsonUpload([])))
    assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    assert.equal((await errorOf(answer)).status, 503)
  }
  const closing = opened(t)
  await closing.close()
  assert.match(
    (await closing.fetch(new Request('http://x/objects/p/a'))).headers.get('retry-after') ?? '',
    /^[1-9]\d*$/,
  )
})

/** A host whose parser, as those of Express and others, reads every body first and leaves what it made of it. */
async function parsingHost(t: TestContext, parse: (bytes: Buffer) => unknown): Promise<string> {
  const service = opened(t)
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => service.node(Object.assign(req, { body: parse(Buffer.concat(chunks)) }), res))
  })
  return (await listenUntilEnd(t, server)).url
}

test('"a body that the host\'s own parser already consumed is a clear error or is used as parsed; it never hangs"', async (t) => {
  const ask = async (url: string, path: string, init: RequestInit): Promise<readonly [number, unknown]> => {
    const answer = await Promise.race([fetch(`${url}${path}`, init), sleep(PATIENCE_MS, undefined, { ref: false })])
    assert.ok(answer, `${path} hangs`)
    return [answer.status, await answer.json()]
  }
  const [parsed, raw, lost] = [
    await parsingHost(t, (bytes) => JSON.parse(bytes.toString()) as unknown),
    await parsingHost(t, (bytes) => bytes),
    await parsingHost(t, () => undefined),
  ]
  assert.deepEqual(await ask(raw, '/objects/p', typed('application/json', '[{"id":"a","n":1.0}]')), [
    200,
    { objects: 1, created: 1, differing: 0, rewritten: 0, assigned: [], assignedCount: 0 },
  ])
  assert.equal(await (await fetch(`${raw}/objects/p/a/single`)).text(), '{"id":"a","n":1.0}')
  assert.deepEqual(await ask(parsed, '/api/diff/p', contractList(['a'])), [200, { a: false }])
  assert.deepEqual(await ask(parsed, '/api/getobjects/p', idList(['a'])), [200, []])
  for (const [url, path, init] of [
    [parsed, '/objects/p', jsonUpload([{ id: 'a' }])],
    [lost, '/objects/p', jsonUpload([])],
    [lost, '/api/diff/p', contractList(['a'])],
  ] as const) {
    const [status, error] = await ask(url, path, init)
    assert.deepEqual([status, (error as { code: string }).code], [500, 'body_consumed'])
  }
})
