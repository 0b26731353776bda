import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ClientError, createClient, type Fetch, type Project, type RetryOptions } from '../../src/client/index.ts'
import { QUICK } from './support.ts'

function projectOf(fetch: Fetch, retry: RetryOptions): Project {
  return createClient({ url: 'http://in.process', token: undefined, fetch, retry: { ...QUICK, ...retry } }).project(
    'demo',
  )
}

test('an unavailable server is retried for retryForMs', async () => {
  let asked = 0
  const lefts: number[] = []
  const project = projectOf(() => (asked++, Promise.reject(new TypeError('fetch failed'))), {
    retryForMs: 400,
    onRetry: (_, waitMs, leftMs) => {
      assert.ok(waitMs <= leftMs, `${waitMs} of ${leftMs}`)
      lefts.push(leftMs)
    },
  })
  const startedMs = performance.now()
  await assert.rejects(project.upload([{ id: 'a' }]), { code: 'network_failed' })
  const tookMs = performance.now() - startedMs
  assert.ok(tookMs >= 395, `it took ${tookMs} ms`)
  assert.ok(asked > 1, `${asked} tries`)
  assert.equal(lefts.length, asked - 1)
  assert.equal(lefts[0], 400)
  assert.deepEqual(
    lefts,
    lefts.toSorted((a, b) => b - a),
  )
})

test('a server that returns in time finds the client waiting, regardless of the number of attempts, even behind a proxy', async () => {
  const answers = [...Array.from({ length: 10 }, (_, at) => [502, 503, 504, 429, 408][at % 5]), 201]
  const project = projectOf(async () => new Response('', { status: answers.shift() }), {})
  assert.equal((await project.upload([{ id: 'a' }], { sendAll: true })).retries, 10)
})

test('wrong responses are retried for a shorter time', async () => {
  let asked = 0
  const failing: Fetch = async () => (asked++, new Response('', { status: 500 }))
  await assert.rejects(projectOf(failing, {}).upload([{ id: 'a' }]), { statusCode: 500 })
  assert.equal(asked, 6)
})

test('a Retry-After beyond the remaining time ends the retries', async () => {
  let asked = 0
  const busy: Fetch = async () => (asked++, new Response('', { status: 503, headers: { 'Retry-After': '60' } }))
  await assert.rejects(projectOf(busy, { retryForMs: 59_000 }).upload([{ id: 'a' }]), { statusCode: 503 })
  assert.equal(asked, 1)
})

test('retryForMs 0 means one attempt, and Infinity is a valid bound', async () => {
  let asked = 0
  const away: Fetch = () => (asked++, Promise.reject(new TypeError('fetch failed')))
  await assert.rejects(projectOf(away, { retryForMs: 0 }).get('a'), { code: 'network_failed' })
  assert.equal(asked, 1)
  const lefts: number[] = []
  const onRetry = (_: ClientError, _waitMs: number, leftMs: number): void => void lefts.push(leftMs)
  await assert.rejects(projectOf(away, { retryForMs: Infinity, attemptsMax: 3, onRetry }).get('a'))
  assert.deepEqual(lefts, [Infinity, Infinity])
  assert.throws(() => projectOf(away, { retryForMs: Number.NaN }), RangeError)
})
