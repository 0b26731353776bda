import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { MB } from '../../src/limits.ts'
import { errorOf, idList, rawExchange, served } from '../http/served.ts'
import { eventually, turns } from '../support/patience.ts'

/* The sizes of the contract at full length. The same refusals with small limits are in http/refused.test.ts, more rounds with real clients in clients/. */

const JSON_HEADERS = { 'Content-Type': 'application/json' }
const SPACES = Buffer.alloc(100 * MB, ' ')
const PIECE = SPACES.subarray(0, 65_536)
/** Framing, and what has been read when it turns out to be enough. */
const READ_AHEAD_BYTES = MB

/** An array of one object whose text has this many bytes. */
function arrayOf(objectBytes: number, before: string = ''): Buffer {
  const body = Buffer.alloc(before.length + objectBytes + 2, 'x')
  body.write(`[${before}{"id":"large","data":"`)
  body.write('"}]', body.length - 3)
  return body
}

function ofLength(bytes: number): Buffer {
  const body = Buffer.from(SPACES.subarray(0, bytes))
  body.write('[{"id":"a"}]')
  return body
}

function streamed(bytes: Buffer): RequestInit {
  let at = 0
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    if (at >= bytes.length) controller.close()
    else controller.enqueue(bytes.subarray(at, (at += MB)))
  }
  return { method: 'POST', headers: JSON_HEADERS, body: new ReadableStream({ pull }), duplex: 'half' }
}

function whole(body: Buffer): RequestInit {
  return { method: 'POST', headers: JSON_HEADERS, body: body as Uint8Array<ArrayBuffer> }
}

test('case 1: an object of 10 MB is stored, and one byte more gets 413, is named, and leaves nothing', async (t) => {
  const { url } = await served(t)
  const refused = await errorOf(await fetch(`${url}/objects/p`, whole(arrayOf(10 * MB + 1, '{"id":"before"},'))))
  assert.deepEqual(
    [refused.status, refused.code, refused.message.includes('"large"')],
    [413, 'object_too_large', true],
    refused.message,
  )
  assert.deepEqual(await (await fetch(`${url}/api/diff/p`, idList(['before', 'large']))).json(), {
    before: false,
    large: false,
  })
  const stored = arrayOf(10 * MB)
  assert.equal((await fetch(`${url}/objects/p`, whole(stored))).status, 200)
  const single = Buffer.from(await (await fetch(`${url}/objects/p/large/single`)).arrayBuffer())
  assert.ok(single.equals(stored.subarray(1, -1)))
})

test('case 2: a request of 50 MB is stored, and one byte more gets 413, with and without Content-Length', async (t) => {
  const { url } = await served(t)
  for (const [framing, init] of [
    ['Content-Length', whole],
    ['chunked', streamed],
  ] as const) {
    const refused = await errorOf(await fetch(`${url}/objects/${framing}`, init(ofLength(50 * MB + 1))))
    assert.deepEqual([refused.status, refused.code], [413, 'request_too_large'], framing)
    assert.deepEqual(await (await fetch(`${url}/api/diff/${framing}`, idList(['a']))).json(), { a: false }, framing)
    assert.equal((await fetch(`${url}/objects/${framing}`, init(ofLength(50 * MB)))).status, 200, framing)
    assert.deepEqual(await (await fetch(`${url}/api/diff/${framing}`, idList(['a']))).json(), { a: true }, framing)
  }
})

test('case 3: fetch sees 413 for 55 to 100 MB, every time', async (t) => {
  const { url } = await served(t)
  for (const [megabytes, init] of [
    [55, streamed],
    [55, whole],
    [100, streamed],
    [100, whole],
  ] as const) {
    const { status, code } = await errorOf(await fetch(`${url}/objects/p`, init(SPACES.subarray(0, megabytes * MB))))
    assert.deepEqual([status, code], [413, 'request_too_large'], `${megabytes} MB`)
  }
})

function* framed(bytes: number, isChunked: boolean): Generator<string | Uint8Array> {
  yield `POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${bytes}`}\r\n\r\n`
  const chunk = isChunked ? Buffer.concat([Buffer.from('10000\r\n'), PIECE, Buffer.from('\r\n')]) : PIECE
  for (let sent = 0; sent < bytes; sent += PIECE.length) yield chunk
  if (isChunked) yield '0\r\n\r\n'
}

test('case 3: a raw socket that reads only after its whole body sees 413 for 55 to 100 MB, every time', async (t) => {
  const { port } = await served(t)
  for (const [megabytes, isChunked] of [
    [55, false],
    [99, true],
    [100, false],
  ] as const) {
    const answer = await rawExchange(port, framed(megabytes * MB, isChunked))
    assert.match(
      answer,
      /^HTTP\/1\.1 413 [^]*"code":"request_too_large"\}(\r\n0\r\n\r\n)?$/,
      `${megabytes} MB, chunked: ${isChunked}`,
    )
  }
})

/** What another program prints when it posts this body. It is fed through a pipe, so that nothing touches the disk. */
async function printed(program: string, args: readonly string[], body: Buffer): Promise<string> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => undefined)
  child.stdin.end(body)
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  return output
}

function isThere(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0
}

test(
  'case 3: curl sees 413 for 55 to 100 MB, every time',
  { skip: !isThere('curl', ['--version']) && 'there is no curl here' },
  async (t) => {
    const { url } = await served(t)
    const args = [
      '-sS',
      '--noproxy',
      '*',
      '-w',
      ' %{http_code}',
      '-H',
      'Content-Type: application/json',
      '-H',
      'Expect:',
      '--data-binary',
      '@-',
      `${url}/objects/p`,
    ]
    for (const [megabytes, framing] of [
      [100, []],
      [55, ['-H', 'Transfer-Encoding: chunked']],
    ] as const) {
      assert.match(
        await printed('curl', [...framing, ...args], SPACES.subarray(0, megabytes * MB)),
        /"code":"request_too_large"\} 413$/,
      )
    }
  },
)

const POST_STDIN = `
import requests, sys
body = sys.stdin.buffer.read()
chunks = (body[at:at + 65536] for at in range(0, len(body), 65536))
for data in (body, chunks):
    print(requests.post(sys.argv[1], data=data, headers={'Content-Type': 'application/json'}).status_code)
print(requests.post(sys.argv[1], files={'file': ('batch', body, 'application/json')}).status_code)
`
const python = process.env.STOWAGE_TEST_PYTHON ?? 'python3'

test(
  'case 3: Python requests sees 413 for 55 to 100 MB, every time',
  { skip: !isThere(python, ['-c', 'import requests']) && 'there is no Python with requests here' },
  async (t) => {
    const { url } = await served(t)
    const statuses = await printed(python, ['-c', POST_STDIN, `${url}/objects/p`], SPACES.subarray(0, 80 * MB))
    assert.deepEqual(statuses.trim().split(/\s+/), ['413', '413', '413'])
  },
)

const ENDLESS_HEAD =
  'POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'

test('case 4: the connection of an endless body closes after 413, and at most 100 MB of it are read', async (t) => {
  const { port, server } = await served(t)
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket
    .on('error', () => undefined)
    .setEncoding('latin1')
    .on('data', (part: string) => (answer += part))
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), PIECE, Buffer.from('\r\n')])
  const send = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.write(ENDLESS_HEAD)
  socket.on('drain', send)
  send()
  await closed
  assert.match(answer, /^HTTP\/1\.1 413 /)
  const [{ bytesRead }] = await accepted
  assert.ok(bytesRead < 100 * MB + READ_AHEAD_BYTES, `${bytesRead} bytes were read`)
})

test('case 4: an endless slow body after 413 closes when its time is over', async (t) => {
  const { port, server } = await served(t, { limits: { requestBytesMax: 10 } })
  const accepted = once(server, 'connection') as Promise<[Socket]>
  let passedMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + passedMs)
  const socket = connect(port, '127.0.0.1')
  let [answer, drops] = ['', 0]
  socket
    .on('error', () => undefined)
    .setEncoding('latin1')
    .on('data', (part: string) => (answer += part))
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.write(`${ENDLESS_HEAD}b\r\n${' '.repeat(11)}\r\n`)
  const [atServer] = await accepted
  while (!socket.destroyed) {
    const readBefore = atServer.bytesRead
    socket.write('1\r\n \r\n')
    drops++
    await eventually(
      () => socket.destroyed || atServer.destroyed || atServer.bytesRead > readBefore,
      'the drop is read',
    )
    await turns()
    passedMs += 1_000
  }
  await closed
  assert.match(answer, /^HTTP\/1\.1 413 /)
  assert.ok(drops >= 5 && drops <= 12, `closed after ${drops} s`)
})
