import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type RequestListener } from 'node:http'
import { createServer as createTlsServer, request as tlsRequest } from 'node:https'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { agentFor } from '../../adapters/s3/agents.ts'
import { MB } from '../../src/limits.ts'
import { listenUntilEnd } from '../support/listen.ts'

/* Sockets of an agent share the memory of their reads: no answer may get bytes of another one, however late it is read. */

const CONTENT = randomBytes(8 * MB)
const PARTS = 4
const PART_BYTES = CONTENT.length / PARTS
/** Keys instead of certificates. */
const SHARED_KEY = { psk: randomBytes(32), identity: 'test' }
const TLS = { ciphers: 'PSK', maxVersion: 'TLSv1.2' } as const

type Get = (part: number) => Promise<IncomingMessage>

/** Answers `/<n>` with one part of the content. */
const answer: RequestListener = ({ url = '' }, response) => response.end(partOf(Number(url.slice(1))))

async function overHttp(t: TestContext): Promise<Get> {
  const { url } = await listenUntilEnd(t, createServer(answer))
  const agent = agentFor('http:', { keepAlive: true })
  t.after(() => agent.destroy())
  return (part) => answerTo(request(`${url}/${part}`, { agent }).end())
}

async function overTls(t: TestContext): Promise<Get> {
  const { port } = await listenUntilEnd(t, createTlsServer({ ...TLS, pskCallback: () => SHARED_KEY.psk }, answer))
  const secrets = { ...TLS, pskCallback: () => SHARED_KEY, checkServerIdentity: () => undefined }
  const agent = agentFor('https:', { keepAlive: true, ...secrets })
  t.after(() => agent.destroy())
  return (part) => answerTo(tlsRequest(`https://127.0.0.1:${port}/${part}`, { agent }).end())
}

for (const [protocol, start] of Object.entries({ http: overHttp, https: overTls })) {
  test(`answers that arrive at the same time stay apart over ${protocol}`, async (t) => {
    const get = await start(t)
    for (let round = 0; round < 3; round++)
      await Promise.all(
        Array.from({ length: PARTS }, async (_, part) => assert.equal(await digestOf(await get(part)), expected(part))),
      )
  })

  test(`an answer over ${protocol} that is read late is whole`, async (t) => {
    const get = await start(t)
    const late = await get(0)
    // Its socket is full meanwhile, and others go on.
    for (let part = 1; part < PARTS; part++) assert.equal(await digestOf(await get(part)), expected(part))
    await delay(50)
    assert.equal(await digestOf(late, 5), expected(0))
  })
}

async function answerTo(outgoing: ReturnType<typeof request>): Promise<IncomingMessage> {
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  return incoming
}

/** A pause after each chunk makes the stream stop the socket. */
async function digestOf(incoming: IncomingMessage, pauseMs: number = 0): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of incoming) {
    hash.update(chunk as Buffer)
    if (pauseMs > 0) await delay(pauseMs)
  }
  return hash.digest('hex')
}

function partOf(part: number): Buffer {
  return CONTENT.subarray(part * PART_BYTES, (part + 1) * PART_BYTES)
}

function expected(part: number): string {
  return createHash('sha256').update(partOf(part)).digest('hex')
}
