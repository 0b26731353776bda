import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fetch } from '../../src/client/index.ts'
import { projectOver, collect, QUICK } from './support.ts'
import { longerThanAnOverflowedTimer } from '../support/patience.ts'

/** Never settles, whatever is aborted. */
const never = <T>(): Promise<T> => new Promise(() => undefined)

/** A body that never brings anything and does not know of signals. */
function silentBody(onCancel: () => void): Response {
  return new Response(new ReadableStream({ pull: () => never(), cancel: onCancel }, { highWaterMark: 0 }), {
    headers: { 'Content-Type': 'text/plain' },
  })
}

test('a fetch that ignores signals is abandoned and its body canceled, on a stall and on an abort', async () => {
  let cancelled = 0
  const bodies = async (): Promise<Response> => silentBody(() => (cancelled += 1))
  for (const fetchOne of [() => never<Response>(), bodies]) {
    await assert.rejects(collect(projectOver(fetchOne, { stallTimeoutMs: 20, retry: false }).graph('a')), {
      code: 'timed_out',
    })
    const reason = new Error('enough')
    const controller = new AbortController()
    const aborted = (): Promise<Response> => (setImmediate(() => controller.abort(reason)), fetchOne())
    await assert.rejects(
      collect(projectOver(aborted).graph('a', { signal: controller.signal })),
      (error) => error === reason,
    )
  }
  assert.equal(cancelled, 2)
})

test('a response that arrives after its caller left is closed', async () => {
  const closed = deferred()
  const late = deferred<Response>()
  const project = projectOver(() => late.promise, { stallTimeoutMs: 10, retry: false })
  await assert.rejects(project.get('a'), { code: 'timed_out' })
  late.resolve(silentBody(() => closed.resolve()))
  await closed.promise
})

test('leaving the loop closes a body that ignores signals', async () => {
  const closed = deferred()
  let sent = 0
  const endless = async (): Promise<Response> =>
    new Response(
      new ReadableStream({
        pull: (controller) =>
          controller.enqueue(new TextEncoder().encode(`${sent++}\t{"text":"${'x'.repeat(300_000)}"}\n`)),
        cancel: () => closed.resolve(),
      }),
      { headers: { 'Content-Type': 'text/plain' } },
    )
  for await (const _ of projectOver(endless).graphTexts('a')) break
  await closed.promise
})

test('an abort ends a call that waits for a token, for ids or for a retry', async () => {
  const reason = new Error('enough')
  const aborting = (call: (signal: AbortSignal) => Promise<unknown>): Promise<unknown> => {
    const controller = new AbortController()
    setImmediate(() => controller.abort(reason))
    return call(controller.signal)
  }
  async function* ids(): AsyncGenerator<string> {
    yield 'a'
    await never()
  }
  const project = projectOver(never)
  const calls: Readonly<Record<string, (signal: AbortSignal) => Promise<unknown>>> = {
    'for a token': (signal) => projectOver(never, { token: never }).get('a', { signal }),
    'for ids of a list': (signal) => collect(project.list(ids(), { signal })),
    'for ids of has': (signal) => project.has(ids(), { signal }),
  }
  for (const [what, call] of Object.entries(calls))
    await assert.rejects(aborting(call), (error) => error === reason, what)
  const controller = new AbortController()
  const retry = { delayMs: 60_000, delayMsMax: 60_000, onRetry: () => controller.abort(reason) }
  const failing = projectOver(() => Promise.reject(new TypeError('no')), { retry })
  await assert.rejects(failing.get('a', { signal: controller.signal }), (error) => error === reason)
})

test('a failing diff closes the source of its ids', async () => {
  const closed = deferred()
  async function* ids(): AsyncGenerator<string> {
    try {
      for (let n = 0; ; n++) yield `id-${n}`
    } finally {
      closed.resolve()
    }
  }
  await assert.rejects(projectOver(async () => new Response('', { status: 403 })).has(ids()), { statusCode: 403 })
  await closed.promise
})

test('received objects of a list are yielded while its next ids are awaited', async () => {
  const first = deferred()
  async function* ids(): AsyncGenerator<string> {
    for (let n = 0; n < 1_000; n++) yield `id-${n}`
    await first.promise
    yield 'last'
  }
  const echo: Fetch = async (_, init) => {
    return new Response(
      idsIn(init)
        .map((id) => `${id}\t{"id":"${id}"}\n`)
        .join(''),
      { headers: { 'Content-Type': 'text/plain' } },
    )
  }
  let count = 0
  for await (const batch of projectOver(echo).list(ids())) {
    count += batch.length
    first.resolve()
  }
  assert.equal(count, 1_001)
})

test('many concurrent requests leak no listeners', async (t) => {
  const warnings: Error[] = []
  const note = (warning: Error): void => void warnings.push(warning)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  const controller = new AbortController()
  let open = 0
  const all = deferred()
  const together: Fetch = async (_, init) => {
    if (++open === 12) all.resolve()
    await all.promise
    return Response.json(Object.fromEntries(idsIn(init).map((id) => [id, false])))
  }
  const ids = Array.from({ length: 12_000 }, (_, n) => `id-${n}`)
  assert.equal(
    (await projectOver(together).has(ids, { concurrency: 12, signal: controller.signal })).missing.length,
    12_000,
  )
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(warnings, [])
})

test('a time limit above the maximum of a timer is long, not zero, and undefined means the default', async () => {
  const object = async (): Promise<Response> => {
    await longerThanAnOverflowedTimer()
    return new Response('{"id":"a"}', { headers: { 'Content-Type': 'application/json' } })
  }
  for (const stallTimeoutMs of [Infinity, 2 ** 31])
    assert.deepEqual(await projectOver(object, { stallTimeoutMs, retry: false }).get('a'), { id: 'a' })
  let asked = 0
  const controller = new AbortController()
  const patient = {
    ...QUICK,
    retryAfterMsMax: Infinity,
    retryForMs: Infinity,
    onRetry: () => void longerThanAnOverflowedTimer().then(() => controller.abort(new Error('it waits'))),
  }
  const busy = projectOver(
    async () => (asked++, new Response('', { status: 503, headers: { 'Retry-After': '99999999' } })),
    { retry: patient },
  )
  await assert.rejects(busy.get('a', { signal: controller.signal }), { message: 'it waits' })
  assert.equal(asked, 1)
  const failing = projectOver(async () => (asked++, new Response('', { status: 500 })), {
    retry: { ...QUICK, attemptsMax: undefined, retryForMs: undefined },
  })
  await assert.rejects(failing.get('a'), { statusCode: 500 })
  assert.equal(asked, 7)
})

function idsIn(init: RequestInit): string[] {
  return JSON.parse((JSON.parse(init.body as string) as { objects: string }).objects) as string[]
}

interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
}

function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((done) => (resolve = done))
  return { promise, resolve }
}
