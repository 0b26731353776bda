import assert from 'node:assert/strict'
import { test } from 'node:test'
import { behindPort } from '../http/served.ts'
import type { Access } from '../../src/index.ts'
import { closesByItself, eventually } from '../support/patience.ts'
import { type Fixture, running } from './support.ts'

interface Told {
  readonly event: string
  readonly id: string | undefined
  readonly data: unknown
}

function stream(service: Fixture['service'], id: string, init: RequestInit = {}): Promise<Response> {
  return service.fetch(new Request(`http://in.process/api/v1/projects/p/runs/${id}/events`, init))
}

/** Reads until the stream ends, or so many events have come. */
async function eventsOf(response: Response, count = Infinity): Promise<readonly Told[]> {
  const told: Told[] = []
  let text = ''
  for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    text += chunk
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]))
      const event = fields.get('event')
      if (event !== undefined) told.push({ event, id: fields.get('id'), data: JSON.parse(fields.get('data') ?? '') })
    }
    if (told.length >= count) return told
  }
  return told
}

const line = (message: string) => ({ atMs: 1, level: 'info' as const, message })

test('events arrive in order and end after the final status', async (t) => {
  const { service, id, report } = await running(t)
  const response = await stream(service, id)
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const reading = eventsOf(response)
  await report({ sequence: 1, status: 'running', progress: { fraction: 0.5 }, logs: [line('one'), line('two')] })
  await report({
    sequence: 2,
    annotations: [{ category: 'Fire', level: 'ERROR', objectAppIds: { a: null }, message: null, metadata: null }],
    logs: [line('three')],
  })
  await report({ sequence: 3, status: 'failed', message: 'a wall' })
  const told = await reading
  assert.deepEqual(
    told.filter(({ event }) => event === 'log').map(({ data }) => (data as { message: string }).message),
    ['one', 'two', 'three'],
  )
  assert.deepEqual(told.at(-1)?.data, { status: 'failed', message: 'a wall' })
  assert.deepEqual(told.findLast(({ event }) => event === 'progress')?.data, { fraction: 0.5, message: null })
  assert.deepEqual(told.findLast(({ event }) => event === 'annotations')?.data, {
    SUCCESS: 0,
    INFO: 0,
    WARNING: 0,
    ERROR: 1,
  })
})

test('a client that reconnects with the last event id misses nothing and sees no event twice', async (t) => {
  const { service, id, report } = await running(t)
  await report({ sequence: 1, status: 'running', logs: [line('one'), line('two'), line('three')] })
  const first = await stream(service, id)
  const [one, two] = await eventsOf(first, 2)
  assert.deepEqual([one.data, two.data], [line('one'), line('two')])
  const back = eventsOf(await stream(service, id, { headers: { 'Last-Event-ID': two.id ?? '' } }))
  await report({ sequence: 2, status: 'succeeded', message: 'done', logs: [line('four')] })
  const told = await back
  assert.deepEqual(
    told.filter(({ event }) => event === 'log').map(({ data }) => data),
    [line('three'), line('four')],
  )
  assert.equal((await stream(service, id, { headers: { 'Last-Event-ID': told.at(-1)?.id ?? '' } })).status, 204)
  assert.equal((await stream(service, id, { headers: { 'Last-Event-ID': 'yesterday' } })).status, 400)
  assert.equal((await eventsOf(await stream(service, id))).at(-1)?.event, 'status')
})

test('the number of streams is bounded, an abort frees a slot, and closing the service ends all streams', async (t) => {
  const { service, id } = await running(t, { limits: { eventStreamsMax: 1 } })
  const leaving = new AbortController()
  const first = await stream(service, id, { signal: leaving.signal })
  await eventsOf(first, 1)
  const second = await stream(service, id)
  const open = second.status === 200 ? second : undefined
  if (open === undefined) assert.equal(second.status, 503)
  leaving.abort()
  const third = open ?? (await stream(service, id))
  const reading = eventsOf(third)
  await closesByItself(service)
  await reading
})

test('an account cannot use up the streams of others, and a stream that ends frees a slot', async (t) => {
  const access: Access<unknown> = {
    authenticate: ({ headers }) => ({ subject: headers.get('x-account') ?? '', tokenId: headers.get('x-token') ?? '' }),
    authorize: () => true,
  }
  const { service, id } = await running(t, {
    service: { access },
    limits: { eventStreamsMax: 4, eventStreamsPerPrincipalMax: 2 },
    alone: 'each server bounds its own streams',
  })
  const open = (headers: Record<string, string>, signal?: AbortSignal): Promise<Response> =>
    stream(service, id, { headers, ...(signal === undefined ? {} : { signal }) })
  const leaving = new AbortController()
  const ada = { 'x-account': 'ada' }
  assert.equal((await open(ada, leaving.signal)).status, 200)
  assert.equal((await open({ ...ada, 'x-token': 'another' })).status, 200)
  const refused = await open(ada)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
  assert.match(await refused.text(), /2 streams of events of this account are open, the limit/)
  assert.equal((await open({ 'x-token': 'one' })).status, 200, 'without an account a token counts by itself')
  assert.equal((await open({ 'x-token': 'two' })).status, 200)
  assert.match(await (await open({ 'x-token': 'three' })).text(), /4 streams of events are open/)
  leaving.abort()
  let back = 503
  await eventually(async () => (back = (await open(ada)).status) === 200, 'there is room again')
  assert.equal(back, 200)
})

test('a slow reader over the network receives the last state', async (t) => {
  const { service, id, report } = await running(t)
  const { url } = await behindPort(t, service)
  const response = await fetch(`${url}/api/v1/projects/p/runs/${id}/events`)
  for (let sequence = 1; sequence <= 40; sequence++) await report({ sequence, progress: { fraction: sequence / 40 } })
  await report({ sequence: 41, status: 'succeeded', message: 'done' })
  const told = await eventsOf(response)
  assert.deepEqual(told.findLast(({ event }) => event === 'progress')?.data, { fraction: 1, message: null })
  assert.deepEqual(told.at(-1)?.data, { status: 'succeeded', message: 'done' })
})
