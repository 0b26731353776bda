import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import express from 'express'
import { answerClientErrors, continueOnExpect } from '../../src/index.ts'
import { expressMount } from '../../src/mounts/express.ts'
import { openService } from './served.ts'
import { turns } from '../support/patience.ts'
import { listenUntilEnd } from '../support/listen.ts'

async function answering(t: TestContext, server: Server): Promise<number> {
  answerClientErrors(server)
  return (await listenUntilEnd(t, server)).port
}

async function serving(t: TestContext): Promise<number> {
  const service = openService({ limits: { requestBytesMax: 1_000 } })
  t.after(() => service.close({ graceMs: 0 }))
  const server = createServer({ connectionsCheckingInterval: 50, headersTimeout: 200 }, service.node)
  continueOnExpect(server, service)
  return answering(t, server)
}

interface Raw {
  readonly status: number
  readonly headers: string
  readonly body: string
}

/** Sends these pieces, one after the other, and parses what came until the connection ended. */
async function exchange(port: number, ...pieces: readonly string[]): Promise<readonly Raw[]> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk))
  socket.on('error', () => undefined)
  const closed = once(socket, 'close')
  for (const piece of pieces) {
    socket.write(piece)
    await turns()
  }
  await closed
  const answers: Raw[] = []
  while (text !== '') {
    const end = text.indexOf('\r\n\r\n')
    const headers = text.slice(0, end)
    const length = Number(/^content-length: (\d+)$/im.exec(headers)?.[1])
    const body = text.slice(end + 4, end + 4 + length)
    assert.equal(body.length, length, 'the answer is whole')
    answers.push({ status: Number(headers.slice(9, 12)), headers, body })
    text = text.slice(end + 4 + length)
  }
  return answers
}

const BAD: readonly (readonly [string, number, string, string])[] = [
  ['no HTTP', 400, 'invalid_request', 'hello\r\n\r\n'],
  ['a header with a control character', 400, 'invalid_request', 'GET / HTTP/1.1\r\nHost: x\r\nA: \u0001\r\n\r\n'],
  [
    'two lengths',
    400,
    'invalid_request',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
  ],
  ['no Host', 400, 'invalid_request', 'GET /objects/p/a HTTP/1.1\r\n\r\n'],
  ['two Hosts', 400, 'invalid_request', 'GET /objects/p/a HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n'],
  ['headers that do not come', 408, 'request_timeout', 'GET / HTTP/1.1\r\nHost: x\r\n'],
  ['an unknown expectation', 417, 'expectation_failed', 'GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n'],
  ['large headers', 431, 'headers_too_large', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(40_000)}\r\n\r\n`],
]

for (const [what, status, code, text] of BAD) {
  void test(`${what} gets an error in the common shape`, async (t) => {
    const [answer, ...others] = await exchange(await serving(t), text)
    assert.equal(others.length, 0)
    assert.equal(answer.status, status)
    assert.match(answer.headers, /^content-type: application\/json; charset=utf-8$/im)
    assert.match(answer.headers, /^connection: close$/im)
    const body = JSON.parse(answer.body) as { statusCode: number; code: string; message: string }
    assert.deepEqual([body.statusCode, body.code], [status, code])
    assert.ok(body.message.length > 10)
  })
}

const UPLOAD = 'POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const JUNK = '\u0000\u0001 this is no HTTP\r\n\r\n'

test('a response arrives whole if junk follows the declared body', async (t) => {
  const port = await serving(t)
  const body = '[{"id":"a"}]'
  for (const pieces of [
    [`${UPLOAD}Content-Length: ${body.length}\r\n\r\n${body}${JUNK}`],
    [`${UPLOAD}Content-Length: ${body.length}\r\n\r\n`, body, JUNK, JUNK],
  ]) {
    const [stored, refused] = await exchange(port, ...pieces)
    assert.equal(stored.status, 200)
    assert.equal((JSON.parse(stored.body) as { objects: number }).objects, 1)
    assert.equal(refused.status, 400)
  }
})

test('a refusal sent while the body still arrives keeps its last byte', async (t) => {
  const port = await serving(t)
  const head = `${UPLOAD}Content-Length: 2000\r\n\r\n`
  const [refused] = await exchange(port, head, ' '.repeat(1_500), `${' '.repeat(500)}${JUNK}`)
  assert.equal(refused.status, 413)
  assert.equal((JSON.parse(refused.body) as { code: string }).code, 'request_too_large')
})

test('responses to requests pipelined before junk arrive first, in order', async (t) => {
  const get = 'GET /objects/p/none HTTP/1.1\r\nHost: x\r\n\r\n'
  const answers = await exchange(await serving(t), `${get}${get}${JUNK}`)
  assert.deepEqual(
    answers.map(({ status }) => status),
    [404, 404, 400],
  )
})

test('a body that breaks off midway is refused at once', async (t) => {
  const answers = await exchange(await serving(t), `${UPLOAD}Transfer-Encoding: chunked\r\n\r\n5\r\n[{"id\r\nXYZ\r\n`)
  assert.deepEqual(
    answers.map(({ status, body }) => [status, (JSON.parse(body) as { code: string }).code]),
    [[400, 'invalid_request']],
  )
})

test('a server of another framework gets the same handling of errors with one line', async (t) => {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  const app = express().use('/models', expressMount(service))
  const port = await answering(t, createServer(app))
  assert.equal((await exchange(port, 'GET / HTTP/9.9\r\n\r\n'))[0].status, 400)
  assert.equal((await fetch(`http://127.0.0.1:${port}/models/objects/p/none`)).status, 404)
})
