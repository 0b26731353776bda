import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { openAccess, type Access } from '../../src/index.ts'
import { filePart, multipartUpload } from '../contract/sides.ts'
import { idList, jsonUpload } from '../http/served.ts'
import { closesByItself, eventually } from '../support/patience.ts'
import { type FolderHost, servedFromFolder } from './hosts.ts'

const MB = 1_048_576
/** So small that a few uploads that kept what they held would leave no memory to the next one. */
const MEMORY_BYTES_MAX = 16 * MB

const OBJECTS = Array.from({ length: 24 }, (_, n) => ({
  id: `o${n}`,
  to: { referencedId: `o${n + 1}` },
  data: randomBytes(200_000).toString('base64'),
}))
const IDS = OBJECTS.map(({ id }) => id)
const NEW_BATCH = JSON.stringify(OBJECTS.map(({ id, data }) => ({ id: `new-${id}`, data: data.slice(0, 100_000) })))

const openHost = (t: TestContext, access: Access<unknown> = openAccess()): Promise<FolderHost> =>
  servedFromFolder(t, { service: { access, memoryBytesMax: MEMORY_BYTES_MAX } })

/** What the process holds: files of blobs that are written, sockets, and requests that the system has not answered. */
function holdings(folder: string): Readonly<Record<string, number>> {
  const resources = process.getActiveResourcesInfo()
  const fds =
    process.platform === 'linux' ? readdirSync('/proc/self/fd').map((fd) => linkOf(`/proc/self/fd/${fd}`)) : []
  return {
    incomingFiles: fds.filter((path) => path.startsWith(join(folder, 'incoming'))).length,
    sockets: fds.filter((path) => path.startsWith('socket:')).length,
    leftFiles: readdirSync(join(folder, 'incoming')).length,
    requests: resources.filter((name) => name.endsWith('Req') || name === 'FSReqPromise').length,
    connections: resources.filter((name) => name === 'TCPSocketWrap').length,
    timers: resources.filter((name) => name === 'Timeout').length,
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

async function returnsTo(before: ReturnType<typeof holdings>, folder: string, what: string): Promise<void> {
  let now = holdings(folder)
  await eventually(() => {
    now = holdings(folder)
    return Object.entries(before).every(([name, count]) => now[name] <= count)
  }, `nothing is left: ${what}`).catch(() => assert.deepEqual(now, before, what))
}

interface Stage {
  readonly name: string
  /** Bytes that the client sends before it goes. */
  readonly sent: readonly (string | Uint8Array)[]
  /** Whether it waits for the first bytes of the answer. */
  readonly reads?: boolean
}

const post = (path: string, headers: string): string => `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`
const UPLOAD = post('/objects/p', 'Content-Type: application/json\r\nContent-Length: 9000000')
const GZIP = post('/objects/p', 'Content-Type: application/gzip\r\nTransfer-Encoding: chunked')
const chunk = (bytes: Uint8Array): readonly (string | Uint8Array)[] => [
  `${bytes.length.toString(16)}\r\n`,
  bytes,
  '\r\n',
]
const MULTIPART = multipartUpload([filePart(NEW_BATCH, 'application/json'), filePart(NEW_BATCH, 'application/json')])
const FORM = post(
  '/objects/p',
  `Content-Type: ${(MULTIPART.headers as Record<string, string>)['Content-Type']}\r\nContent-Length: ${MULTIPART.body.length}`,
)

const UP: readonly Stage[] = [
  { name: 'connected', sent: [] },
  { name: 'in the headers', sent: ['POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-'] },
  { name: 'before the body', sent: [UPLOAD] },
  {
    name: 'told to go on',
    sent: [post('/objects/p', 'Content-Type: application/json\r\nContent-Length: 9000000\r\nExpect: 100-continue')],
    reads: true,
  },
  { name: 'in the first object', sent: [UPLOAD, '[{"id":"new-o0","x'] },
  { name: 'after large objects', sent: [UPLOAD, NEW_BATCH.slice(0, 2 * MB)] },
  { name: 'in gzip', sent: [GZIP, ...chunk(gzipSync(NEW_BATCH).subarray(0, MB))] },
  { name: 'in the header of a part', sent: [FORM, MULTIPART.body.subarray(0, 60)] },
  { name: 'in a part', sent: [FORM, MULTIPART.body.subarray(0, 2 * MB)] },
  { name: 'between two parts', sent: [FORM, MULTIPART.body.subarray(0, NEW_BATCH.length + 300)] },
  {
    name: 'in an id list',
    sent: [post('/api/diff/p', 'Content-Type: application/json\r\nContent-Length: 900'), '{"objects":["o1",'],
  },
  {
    name: 'while it is refused',
    sent: [post('/objects/p', 'Content-Type: application/json\r\nContent-Length: 60000000'), NEW_BATCH.slice(0, MB)],
  },
]

const list = JSON.stringify({ objects: IDS })
const reading = (path: string, headers: string = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
const listing = (path: string, body: string, headers: string = ''): string =>
  post(path, `Content-Type: application/json\r\n${headers}Content-Length: ${body.length}`) + body

const DOWN: readonly Stage[] = [
  { name: 'graph, at once', sent: [reading('/objects/p/o0')] },
  { name: 'graph as JSON', sent: [reading('/objects/p/o0')], reads: true },
  { name: 'graph as lines', sent: [reading('/objects/p/o0', 'Accept: text/plain\r\n')], reads: true },
  {
    name: 'graph in gzip',
    sent: [reading('/objects/p/o0', 'Accept: text/plain\r\nAccept-Encoding: gzip\r\n')],
    reads: true,
  },
  { name: 'graph, a range', sent: [reading('/objects/p/o0?archive=gzip', 'Range: bytes=1000-\r\n')], reads: true },
  { name: 'graph, less what it has', sent: [reading('/objects/p/o0?have=o20')], reads: true },
  { name: 'list, at once', sent: [listing('/api/getobjects/p', list)] },
  { name: 'list as JSON', sent: [listing('/api/getobjects/p', list)], reads: true },
  {
    name: 'list in gzip',
    sent: [listing('/api/getobjects/p', list, 'Accept: text/plain\r\nAccept-Encoding: gzip\r\n')],
    reads: true,
  },
  {
    name: 'object-stream',
    sent: [
      listing(
        '/api/v2/projects/p/object-stream',
        JSON.stringify({ objectIds: IDS, attributeMask: { exclude: ['to'] } }),
        'X-Speckle-Object-Stream-Heartbeats: true\r\n',
      ),
    ],
    reads: true,
  },
  { name: 'diff', sent: [listing('/api/diff/p', list)] },
  { name: 'single', sent: [reading('/objects/p/o3/single')], reads: true },
  {
    name: 'several at once on one connection',
    sent: [reading('/objects/p/o0'), reading('/objects/p/o1'), reading('/objects/p/o2')],
    reads: true,
  },
  { name: 'idle after an answer', sent: [reading('/objects/p/none')], reads: true },
]

/** The ways to go: by a reset, by closing, by only ending what it sends and then closing. */
const LEAVE: readonly ((socket: Socket) => void)[] = [
  (socket) => void socket.resetAndDestroy(),
  (socket) => void socket.destroy(),
  (socket) => void socket.end(() => socket.destroy()),
]

/**
 * Goes away once the server has begun: when its first bytes have come, when `hasBegun` says so, or else after a moment.
 */
async function goAway(
  port: number,
  { sent, reads = false }: Stage,
  leave: (socket: Socket) => void,
  hasBegun: () => Promise<void> = () => sleep(5),
): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, 'connect')
  for (const piece of sent) if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), closed, sleep(100)])
  if (reads) await Promise.race([once(socket, 'readable'), closed])
  else await hasBegun()
  leave(socket)
  await closed
}

async function seed({ url }: FolderHost): Promise<void> {
  assert.equal((await fetch(`${url}/objects/p`, jsonUpload(OBJECTS))).status, 200)
  for (const path of ['/objects/p/o0', '/objects/p/o0?have=o20']) await (await fetch(`${url}${path}`)).arrayBuffer()
}

for (const [direction, stages] of [
  ['up', UP],
  ['down', DOWN],
] as const) {
  test(`case 7: a client that leaves at any stage frees files, connections, timers and memory, ${direction}`, async (t) => {
    const host = await openHost(t)
    const { url, port, folder, service, server } = host
    await seed(host)
    server.closeAllConnections()
    await sleep(20)
    const before = holdings(folder)
    for (const stage of stages) {
      await Promise.all(LEAVE.map(async (leave) => goAway(port, stage, leave)))
      await returnsTo(before, folder, stage.name)
    }
    const held = (await (await fetch(`${url}/api/diff/p`, idList(IDS.map((id) => `new-${id}`)))).json()) as Record<
      string,
      boolean
    >
    assert.ok(
      Object.values(held).every((isHeld) => !isHeld),
      'nothing of what broke off is there',
    )
    assert.equal(
      (await fetch(`${url}/objects/p`, { ...jsonUpload([]), body: NEW_BATCH })).status,
      200,
      'there is memory for an upload',
    )
    await closesByItself(service)
  })
}

test('case 7: clients leave while they wait for access, for memory, and for others', async (t) => {
  let waiting = 0
  let letGo: () => void = () => undefined
  const gate = new Promise<void>((resolve) => (letGo = resolve))
  const slow: Access<unknown> = {
    authenticate: async ({ path }) => {
      waiting++
      if (path.includes('slow')) await gate
      return { subject: '' }
    },
    authorize: () => true,
  }
  const host = await openHost(t, slow)
  const { port, url, folder } = host
  await seed(host)
  const before = holdings(folder)
  const allWait = waiting + 20
  const clients = Array.from({ length: 20 }, async () =>
    goAway(port, { name: '', sent: [reading('/objects/slow/o0')] }, LEAVE[0], () =>
      eventually(() => waiting === allWait, 'all wait for access'),
    ),
  )
  await Promise.all(clients)
  letGo()
  await returnsTo(before, folder, 'access')
  assert.equal(waiting, allWait)
  await Promise.all(Array.from({ length: 12 }, async () => goAway(port, UP[5], LEAVE[0])))
  await returnsTo(before, folder, 'many uploads')
  await Promise.all(
    Array.from({ length: 30 }, async (_, n) =>
      goAway(port, { name: '', sent: [reading(`/objects/p/o${n % 8}`)] }, LEAVE[1]),
    ),
  )
  await returnsTo(before, folder, 'many walks')
  assert.equal((await fetch(`${url}/objects/p`, { ...jsonUpload([]), body: NEW_BATCH })).status, 200)
})
