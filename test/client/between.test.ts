import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createClient, memoryCache } from '../../src/client/index.ts'
import { openService } from '../http/served.ts'
import { projectOver, collect } from './support.ts'
import { listenUntilEnd } from '../support/listen.ts'

/* What stands between a client and its service: pages that ask to sign in, redirects, and addresses, tokens and ids that cannot be sent. */

const PAGE = '<!doctype html>\n<title>\tSign in</title>\n'

async function addressOf(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  return (await listenUntilEnd(t, server)).url
}

test('an HTML page with status 200 is not a response: nothing counts as held, missing, sent or received', async (t) => {
  const cache = memoryCache()
  const project = projectOver(
    async () => new Response(PAGE, { headers: { 'Content-Type': 'text/html; charset=utf-8' } }),
    { cache },
  )
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    get: () => project.get('a'),
    getText: () => project.getText('a'),
    list: () => collect(project.list(['a', 'b'])),
    graph: () => collect(project.graph('a')),
    graphInfo: () => project.graphInfo('a'),
    has: () => project.has(['a']),
    upload: () => project.upload([{ id: 'a' }], { sendAll: true }),
  }
  for (const [name, call] of Object.entries(calls))
    await assert.rejects(call(), { name: 'ClientError', code: 'invalid_answer', isRetryable: false }, name)
  const service = openService()
  t.after(() => service.close())
  const later = projectOver((url, init) => service.fetch(new Request(url, init)), { cache })
  await later.upload([{ id: 'a', n: 1 }])
  assert.deepEqual(await later.get('a'), { id: 'a', n: 1 }, 'the cache did not keep the page')
})

test('a diff response without an answer for each id is refused', async () => {
  for (const text of ['{}', '[]', '{"error":"sign in"}', '{"a":true}', '{"a":true,"b":"no"}', '{"a":true,"b":null}']) {
    await assert.rejects(
      projectOver(async () => Response.json(JSON.parse(text))).has(['a', 'b']),
      { code: 'invalid_answer' },
      text,
    )
  }
  const fine = projectOver(async () => new Response('{"a":true,"__proto__":false,"b":true}'))
  assert.deepEqual((await fine.has(['a', '__proto__', 'b'])).missing, ['__proto__'])
})

test('only the service can say that an object is missing, and only a matching object is accepted', async () => {
  const elsewhere = projectOver(async () => new Response(PAGE, { status: 404 }))
  await assert.rejects(elsewhere.get('a'), { code: 'http_error', statusCode: 404 })
  const json = { 'Content-Type': 'application/json' }
  for (const text of [
    '{"id":"b"}',
    '{}',
    'null',
    '{"id":"a"',
    '{"id":"a","cut":{"n":1}',
    '[{"id":"a"}]',
    Uint8Array.from(Buffer.from('{"id":"a","text":"\xff"}', 'latin1')),
  ]) {
    await assert.rejects(
      projectOver(async () => new Response(text, { headers: json })).getText('a'),
      { code: 'invalid_answer' },
      String(text),
    )
  }
  for (const text of ['{"id":"a","n":1}', '{"n":{"id":"b"},"id":"a"}', ' {"n":1, "id" : "a", "m":2}']) {
    assert.equal((await projectOver(async () => new Response(text, { headers: json })).getText('a'))?.json, text)
  }
})

test('a redirect receives no POST, and another host receives no token', async (t) => {
  const seen: (string | undefined)[] = []
  const elsewhere = await addressOf(t, (req, res) => {
    seen.push(`${req.method} ${req.headers.authorization ?? 'no token'}`)
    res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"id":"a"}')
  })
  for (const status of [301, 302, 303, 307, 308]) {
    const url = await addressOf(t, (req, res) => {
      req.resume()
      res.writeHead(status, { Location: `${elsewhere.replace('127.0.0.1', 'localhost')}/login` }).end()
    })
    const project = createClient({ url, token: 'secret', retry: false }).project('demo')
    await assert.rejects(project.upload([{ id: 'a' }], { sendAll: true }), (error: Error) =>
      /redirected to "http:.*\/login"; use the URL/.test(error.message),
    )
    await assert.rejects(project.has(['a']), { code: 'http_error', statusCode: status, isRetryable: false })
    assert.deepEqual(seen.splice(0), [])
    assert.deepEqual(await project.get('a'), { id: 'a' })
    assert.deepEqual(seen.splice(0), ['GET no token'])
  }
})

test('ids, tokens and addresses that cannot be sent are refused early, and no message shows a token', async () => {
  const asked: string[] = []
  const project = projectOver(async (url) => (asked.push(url), new Response('')))
  for (const call of [
    () => project.get('\ud800'),
    () => project.graphInfo('a\udfff'),
    () => collect(project.graph('\ud800')),
    () => collect(project.graph('a', { have: ['\ud800'] })),
    async () => createClient({ url: 'http://in.process', token: undefined }).project('\ud800'),
  ]) {
    await assert.rejects(call(), { name: 'ClientError', code: 'invalid_id' })
  }
  for (const token of ['top\nsecret', 'top\u0000secret', 'top-secret”']) {
    await assert.rejects(
      projectOver(async () => new Response(''), { token }).get('a'),
      (error: Error & { code?: string }) => error.code === 'unauthenticated' && !error.message.includes('secret'),
    )
  }
  assert.throws(
    () => createClient({ url: 'http://:password@a.example', token: undefined }),
    (error) => error instanceof TypeError && !error.message.includes('password'),
  )
  assert.deepEqual(asked, [])
  const noted: (string | null)[] = []
  const fine = projectOver(
    async (_, init) => (
      noted.push(new Headers(init.headers).get('authorization')),
      new Response('{"id":"a"}', { headers: { 'Content-Type': 'application/json' } })
    ),
    { token: ' token\r\n' },
  )
  await fine.get('a')
  assert.deepEqual(noted, ['Bearer token'], 'as it comes out of a file')
})

test('a proxy that changes the headers about left-out roots does not end a download', async () => {
  const headers = { 'Content-Type': 'text/plain', 'Stowage-Have': 'old;subtracted, %E0%A4;unknown' }
  let have: readonly (readonly [string, string])[] = []
  await collect(
    projectOver(async () => new Response('a\t{"id":"a"}\n', { headers })).graph('a', {
      have: ['old'],
      onInfo: (info) => (have = [...info.have]),
    }),
  )
  assert.deepEqual(have, [
    ['old', 'subtracted'],
    ['%E0%A4', 'unknown'],
  ])
})
