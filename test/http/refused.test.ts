import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../support/patience.ts'
import { SHORT_REST } from '../../src/http/linger.ts'
import { errorOf, openService, rawExchange, served } from './served.ts'

const MB = 1_048_576
/** Small, so that a body can be far over it and the tests stay fast; the bounds go with it. */
const LIMITS = { requestBytesMax: 2 * MB, objectBytesMax: MB }
const PIECE = new Uint8Array(65_536).fill(0x20)

const limited = { limits: LIMITS }

function spaces(bytes: number): Uint8Array[] {
  return Array.from({ length: bytes / PIECE.length }, () => PIECE)
}

function streamed(bytes: number): ReadableStream<Uint8Array> {
  const pieces = spaces(bytes)
  return new ReadableStream({
    pull: (controller) => {
      const piece = pieces.pop()
      if (piece === undefined) controller.close()
      else controller.enqueue(piece)
    },
  })
}

test('a request at the limit is read, and one byte more gets 413, with and without Content-Length', async (t) => {
  const { url } = await served(t, limited)
  const body = Buffer.alloc(LIMITS.requestBytesMax, ' ')
  body.write('[{"id":"a"}]')
  const headers = { 'Content-Type': 'application/json' }
  assert.equal((await fetch(`${url}/objects/p`, { method: 'POST', headers, body })).status, 200)
  const more = Buffer.concat([body, Buffer.from(' ')])
  const refused = await errorOf(await fetch(`${url}/objects/p`, { method: 'POST', headers, body: more }))
  assert.deepEqual([refused.status, refused.code], [413, 'request_too_large'])
  const chunked = { method: 'POST', headers, body: new Blob([more]).stream(), duplex: 'half' } as RequestInit
  assert.equal((await errorOf(await fetch(`${url}/objects/p`, chunked))).code, 'request_too_large')
})

test('fetch sees the 413 while it sends, with and without a declared length', async (t) => {
  const { url } = await served(t, limited)
  for (let round = 0; round < 5; round++) {
    const headers = { 'Content-Type': 'application/json' }
    const told = await fetch(`${url}/objects/p`, { method: 'POST', headers, body: Buffer.concat(spaces(3 * MB)) })
    assert.equal((await errorOf(told)).status, 413)
    const untold = await fetch(`${url}/objects/p`, { method: 'POST', headers, body: streamed(4 * MB), duplex: 'half' })
    assert.equal((await errorOf(untold)).status, 413)
  }
})

test(
  'curl sees the 413 while it sends',
  { skip: spawnSync('curl', ['--version']).status !== 0 && 'there is no curl here' },
  async (t) => {
    const { url } = await served(t, limited)
    for (const headers of [
      [],
      ['-H', 'Transfer-Encoding: chunked'],
      ['-H', 'Expect:'],
      ['-H', 'Expect:', '-H', 'Transfer-Encoding: chunked'],
    ]) {
      const curl = spawn('curl', [
        '-sS',
        '--noproxy',
        '*',
        '-o',
        '-',
        '-w',
        '%{http_code}',
        '-H',
        'Content-Type: application/json',
        ...headers,
        '--data-binary',
        '@-',
        `${url}/objects/p`,
      ])
      curl.stdin.on('error', () => undefined)
      let output = ''
      curl.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
      curl.stdin.end(Buffer.concat(spaces(3 * MB)))
      await once(curl, 'close')
      assert.match(output, /"code":"request_too_large"\}413$/, headers.join(' '))
    }
  },
)

test('a client that blocks until its body is sent reads the 413, up to twice the limit', async (t) => {
  const { port } = await served(t, limited)
  const head = (length: string): string =>
    `POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${length}\r\n\r\n`
  for (let round = 0; round < 5; round++) {
    const told = await rawExchange(port, [head(`Content-Length: ${4 * MB}`), ...spaces(4 * MB)])
    assert.match(told, /^HTTP\/1\.1 413 [^]*Connection: close[^]*"request_too_large"\}$/i)
    const chunks = spaces(4 * MB - 65_536).flatMap((piece) => [`${piece.length.toString(16)}\r\n`, piece, '\r\n'])
    const untold = await rawExchange(port, [head('Transfer-Encoding: chunked'), ...chunks, '0\r\n\r\n'])
    assert.match(untold, /^HTTP\/1\.1 413 [^]*"request_too_large"\}$/)
  }
})

test('the end of a short body is read before its refusal, so the connection stays open', async (t) => {
  const { port } = await served(t, { ...limited, access: { authenticate: () => undefined, authorize: () => false } })
  const head =
    'POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  let tookMs: number
  do {
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    let answer = ''
    socket.on('data', (text: string) => (answer += text))
    await once(socket, 'connect')
    const beganAtMs = performance.now()
    socket.write(head)
    await delay(20)
    const early = answer
    socket.write('c\r\n[{"id":"a"}]\r\n0\r\n\r\n')
    tookMs = performance.now() - beganAtMs
    if (tookMs < SHORT_REST.msMax) {
      assert.equal(early, '')
      await eventually(() => answer.endsWith('}'), 'the refusal')
      assert.match(answer, /^HTTP\/1\.1 401 /)
      assert.doesNotMatch(answer, /Connection: close/i)
      answer = ''
      socket.write('GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n')
      await eventually(() => answer.startsWith('HTTP/1.1 404 '), 'a second response on the same connection')
    }
    socket.destroy()
  } while (tookMs >= SHORT_REST.msMax)
})

test('a client that does not go on with a short body is refused without it', async (t) => {
  const { port } = await served(t, { ...limited, access: { authenticate: () => undefined, authorize: () => false } })
  const head = 'POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n'
  assert.match(await rawExchange(port, [head]), /^HTTP\/1\.1 401 [^]*Connection: close/i)
})

test('an endless body is cut off after about twice the limit', async (t) => {
  const { port, server } = await served(t, limited)
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined).resume()
  socket.write(
    'POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const chunk = Buffer.concat([Buffer.from(`${PIECE.length.toString(16)}\r\n`), PIECE, Buffer.from('\r\n')])
  const send = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.on('drain', send)
  send()
  await closed
  const [{ bytesRead }] = await accepted
  // Framing, and what has been read when it turns out to be enough, come on top.
  assert.ok(bytesRead < 2 * LIMITS.requestBytesMax + MB, `${bytesRead} bytes were read`)
})

test('every kind of refusal arrives while the client sends', async (t) => {
  const { url } = await served(t, { ...limited, access: { authenticate: () => undefined, authorize: () => false } })
  const answer = await fetch(`${url}/objects/p`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: Buffer.concat(spaces(3 * MB)),
  })
  assert.equal((await errorOf(answer)).status, 401)
})

test('Expect: 100-continue: refused bodies are not sent, and accepted ones are requested', async (t) => {
  const { port } = await served(t, limited)
  const ask = (length: number, body: string): Promise<{ continued: boolean; status: number | undefined }> =>
    new Promise((resolve, reject) => {
      let continued = false
      const headers = { 'Content-Type': 'application/json', 'Content-Length': length, Expect: '100-continue' }
      const req = request({ port, host: '127.0.0.1', method: 'POST', path: '/objects/p', headers })
      req.on('continue', () => {
        continued = true
        req.end(body)
      })
      req.on('response', (res) => res.resume().on('end', () => resolve({ continued, status: res.statusCode })))
      req.on('error', reject)
      req.flushHeaders()
    })
  assert.deepEqual(await ask(3 * MB, ''), { continued: false, status: 413 })
  assert.deepEqual(await ask(12, '[{"id":"a"}]'), { continued: true, status: 200 })
})

test('the fetch core answers 413 and releases the body', async (t) => {
  const service = openService(limited)
  t.after(() => service.close({ graceMs: 0 }))
  let cancelled = false
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(PIECE),
    cancel: () => void (cancelled = true),
  })
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body, duplex: 'half' } as RequestInit
  const answer = await service.fetch(new Request('http://x/objects/p', init))
  assert.equal((await errorOf(answer)).status, 413)
  await eventually(() => cancelled, 'the body is let go')
})
