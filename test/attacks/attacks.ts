import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { MB } from '../../src/limits.ts'
import { head, rawClient, type RawClient } from './attacked.ts'

/** Whom an attack is against, and as whom. */
export interface Target {
  readonly port: number
  readonly token: string
  /** A run that is under way. */
  readonly runId: string
}

/** One round of an attack, until it has done what it can; it closes its connections. */
export type Attack = (target: Target) => Promise<void>

const FROM = '127.0.0.2'
const HOLD_MS = 1_500
const LIST_BYTES = 32 * MB - 1_024
const PIECE_BYTES = 262_144
export const WIDE_ROOT = 'wide'
export const LARGE_ROOT = 'large'
/** A million need more memory than one request may have, and are refused. */
const ABSENT_CLAIMS = 300_000

const list = Buffer.from(
  `{"objects":[${Array.from({ length: Math.floor(LIST_BYTES / 35) }, (_, n) => `"${n.toString(16).padStart(32, '0')}"`).join()}]}`,
)
const manyIds = gzipSync(`{"objects":[${'"a",'.repeat(4_400_000)}"a"]}`)
const manyEmpty = gzipSync(`[${'{},'.repeat(498_999)}{}]`)

/** An object that claims hundreds of thousands of children that nobody has. */
export function wideObject(): string {
  const claims = Array.from({ length: ABSENT_CLAIMS }, (_, n) => `"${n.toString(36)}":1`)
  return `[{"id":"${WIDE_ROOT}","__closure":{${claims.join()}}}]`
}

async function together(
  count: number,
  one: (client: RawClient, n: number) => Promise<void>,
  port: number,
): Promise<void> {
  const clients: RawClient[] = []
  const opened = async (n: number): Promise<void> => {
    const client = await rawClient(port, FROM)
    clients.push(client)
    await one(client, n)
  }
  try {
    await Promise.allSettled(Array.from({ length: count }, (_, n) => opened(n)))
  } finally {
    for (const { socket } of clients) socket.destroy()
  }
}

/** Sends a body, or what the server takes of it, and waits a while for the answer. */
async function sent(client: RawClient, text: string, body: Buffer, holdBack: number): Promise<void> {
  await client.write(text)
  const end = body.length - holdBack
  let isTaken = true
  for (let at = 0; at < end && isTaken && !client.socket.destroyed; at += PIECE_BYTES) {
    const written = client.write(body.subarray(at, Math.min(at + PIECE_BYTES, end))).then(() => true)
    isTaken = await Promise.race([written, sleep(HOLD_MS, false)])
  }
  await Promise.race([client.status(), sleep(HOLD_MS)])
}

function post(path: string, { token }: Target, body: Buffer, headers: Readonly<Record<string, string>>): string {
  return head('POST', path, token, { ...headers, 'Content-Length': body.length })
}

const json = { 'Content-Type': 'application/json' }
const gzipJson = { ...json, 'Content-Encoding': 'gzip' }

/** Each line of what could take a server down. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  'lists of ids whose last byte is held back': (target) =>
    together(60, (client) => sent(client, post('/api/getobjects/eve', target, list, json), list, 1), target.port),
  'gzip lists of 4.4 million ids': (target) =>
    together(
      4,
      (client) => sent(client, post('/api/getobjects/eve', target, manyIds, gzipJson), manyIds, 0),
      target.port,
    ),
  'uploads of 499,000 objects without a name': (target) =>
    together(
      22,
      (client) =>
        sent(client, post('/objects/eve', target, manyEmpty, { 'Content-Type': 'application/gzip' }), manyEmpty, 0),
      target.port,
    ),
  'uploads of a byte now and then': (target) =>
    together(
      60,
      async (client) => {
        await client.write(head('POST', '/objects/eve', target.token, { ...json, 'Content-Length': 10 * MB }))
        for (let n = 0; n < 3 && !client.socket.destroyed; n++) {
          await client.write('[')
          await sleep(HOLD_MS / 3)
        }
      },
      target.port,
    ),
  'an object with 300,000 absent children': (target) =>
    together(
      8,
      async (client, n) => {
        await client.write(head(n % 2 === 0 ? 'GET' : 'HEAD', `/objects/eve/${WIDE_ROOT}`, target.token, {}))
        await Promise.race([client.status(), sleep(HOLD_MS)])
      },
      target.port,
    ),
  '1,000 silent connections': (target) =>
    together(
      1_000,
      async (client, n) => {
        if (n % 2 === 0) await client.write('GET /objects/eve/a HT')
        await sleep(HOLD_MS)
      },
      target.port,
    ),
  'readers that read nothing': (target) =>
    together(
      200,
      async (client) => {
        client.socket.pause()
        await client.write(head('GET', `/objects/eve/${LARGE_ROOT}`, target.token, { Accept: 'text/plain' }))
        await sleep(HOLD_MS)
      },
      target.port,
    ),
  '200 event streams of one reader': (target) =>
    together(
      200,
      async (client) => {
        const path = `/api/v1/projects/eve/runs/${target.runId}/events`
        await client.write(head('GET', path, target.token, {}))
        await Promise.race([client.status(), sleep(HOLD_MS)])
        await sleep(HOLD_MS)
      },
      target.port,
    ),
}
