import assert from 'node:assert/strict'
import { RequestTrace } from '../../src/events/request-trace.ts'
import { EventDispatcher } from '../../src/events/event-dispatcher.ts'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { DeflatePool } from '../../src/compression/deflate-pool.ts'
import { createGuard } from '../../src/http/core.ts'
import { streamOperation } from '../../src/http/endpoints/stream.ts'
import { DEFAULT_LIMITS, openAccess, type StoredObject } from '../../src/index.ts'
import { MemoryBudget } from '../../src/memory/memory-budget.ts'
import { plainGraphStore } from '../../src/store/plain/plain-store.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { bothCores, idList, jsonUpload, openService } from './served.ts'

test('multipart uploads may be gzip files, several files, and a JSON batch under another name', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    const form = new FormData()
    form.append('file', new Blob([gzipSync('[{"id":"a"},{"id":"b"}]')], { type: 'application/gzip' }), 'batch.gz')
    form.append('file', new Blob(['[{"n":1}]'], { type: 'application/json' }), 'batch.json')
    form.append('object-batch', new Blob(['[]'], { type: 'application/json' }), 'blob')
    const summary = (await (await ask('/objects/p', { method: 'POST', body: form })).json()) as {
      objects: number
      assigned: { part: number; index: number }[]
    }
    assert.equal(summary.objects, 3, core)
    assert.deepEqual(
      summary.assigned.map(({ part, index }) => [part, index]),
      [[1, 0]],
      core,
    )
    const gzip = {
      method: 'POST',
      headers: { 'content-type': 'application/gzip' },
      body: gzipSync('[{"id":"a"},{"id":"c"}]'),
    }
    assert.equal(((await (await ask('/objects/p', gzip)).json()) as { created: number }).created, 1, core)
    const coded = {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: gzipSync('[{"id":"d"}]'),
    }
    assert.equal((await ask('/objects/p', coded)).status, 200, core)
  }
})

test('diff and getobjects accept forms, and object-stream returns masked lines, with and without the slash', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await (await ask('/objects/p', jsonUpload([{ id: 'a', keep: 1, drop: { id: 'x' } }, { id: 'b' }]))).arrayBuffer()
    const form = {
      method: 'POST',
      body: new URLSearchParams({ objects: '["a","c"]' }),
      headers: { accept: 'text/plain' },
    }
    assert.deepEqual(await (await ask('/api/diff/p', form)).json(), { a: true, c: false }, core)
    assert.equal(
      await (await ask('/api/getobjects/p', form)).text(),
      'a\t{"id":"a","keep":1,"drop":{"id":"x"}}\n',
      core,
    )
    for (const slash of ['', '/']) {
      const body = (mask: unknown): RequestInit => ({
        ...idList([]),
        body: JSON.stringify({ objectIds: ['b', 'a'], attributeMask: mask }),
      })
      const masked = async (mask: unknown): Promise<string> =>
        (await ask(`/api/v2/projects/p/object-stream${slash}`, body(mask))).text()
      assert.deepEqual(
        (await masked({ include: ['keep'] })).split('\n').sort(),
        ['', 'a\t{"id":"a","keep":1}', 'b\t{"id":"b"}'],
        core,
      )
      assert.deepEqual(
        (await masked({ exclude: ['keep', 'id'] })).split('\n').sort(),
        ['', 'a\t{"id":"a","drop":{"id":"x"}}', 'b\t{"id":"b"}'],
        core,
      )
    }
    const json = await ask('/api/v2/projects/p/object-stream', {
      ...idList(['b'], 'objectIds'),
      headers: { 'content-type': 'application/json', accept: 'application/json' },
    })
    assert.deepEqual(
      [json.headers.get('content-type'), await json.text()],
      ['text/plain; charset=utf-8', 'b\t{"id":"b"}\n'],
      core,
    )
  }
})

/** Gives nothing until it is told to. */
class HesitantStore extends PlainObjectStore {
  goOn: () => void = () => undefined
  told: Promise<void> = Promise.resolve()

  hesitate(): void {
    this.told = new Promise((resolve) => (this.goOn = resolve))
  }

  override async *get(
    projectId: string,
    ids: readonly string[],
    options: { readonly signal: AbortSignal },
  ): AsyncGenerator<readonly StoredObject[]> {
    await this.told
    yield* super.get(projectId, ids, options)
  }
}

test('heartbeat lines arrive during silence, and only on request', async (t) => {
  const store = new HesitantStore()
  const service = openService({ store })
  await service.fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'a' }])))
  const compressor = new DeflatePool({ level: 1, concurrency: 1 })
  t.after(() => compressor.close())
  const trace = new RequestTrace({
    events: new EventDispatcher({ service: 'test', onEvent: undefined, logger: undefined, requestLog: undefined }),
    inFlight: { uploads: 0, downloads: 0 },
  })
  const stream = streamOperation({
    store: plainGraphStore(store),
    guard: createGuard(openAccess()),
    limits: DEFAULT_LIMITS,
    compressor,
    heartbeatIntervalMs: 10,
  })
  const ask = async (headers: Record<string, string>): Promise<string> => {
    const request = new Request('http://x/', {
      ...idList(['a'], 'objectIds'),
      headers: { 'content-type': 'application/json', ...headers },
    })
    const bytes = async function* (): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(await request.arrayBuffer())
    }
    const answer = await stream({
      method: 'POST',
      path: '/',
      isPathCut: false,
      query: new URLSearchParams(),
      headers: request.headers,
      params: { projectId: 'p' },
      signal: new AbortController().signal,
      requestId: '1',
      memory: new MemoryBudget(1_048_576).open({ signal: AbortSignal.timeout(60_000) }),
      host: undefined,
      trace,
      body: { type: 'application/json', encoding: undefined, length: undefined, bytes, values: bytes },
    })
    const pieces: Uint8Array[] = []
    for await (const piece of answer.body as AsyncIterable<Uint8Array>) {
      pieces.push(piece)
      // In gzip one of them is the header.
      if (pieces.length === 3) store.goOn()
    }
    answer.release?.()
    const whole = Buffer.concat(pieces)
    return (answer.headers['Content-Encoding'] === 'gzip' ? gunzipSync(whole) : whole).toString()
  }
  assert.equal(await ask({}), 'a\t{"id":"a"}\n')
  for (const coding of ['identity', 'gzip']) {
    store.hesitate()
    const text = await ask({ 'x-speckle-object-stream-heartbeats': 'true', 'accept-encoding': coding })
    assert.match(text, /^(:heartbeat\n){2,}a\t\{"id":"a"\}\n$/, coding)
  }
})
