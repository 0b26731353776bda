import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type RequestListener, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type Duplex, PassThrough } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { type ConnectionLimitEvent, type ConnectionLimitOptions, limitConnections } from '../../src/index.ts'
import { eventually } from '../support/patience.ts'
import { listenUntilEnd } from '../support/listen.ts'

interface Limited {
  readonly port: number
  readonly told: ConnectionLimitEvent[]
  readonly open: () => Promise<number>
}

async function limited(t: TestContext, listener: RequestListener, options: ConnectionLimitOptions): Promise<Limited> {
  const told: ConnectionLimitEvent[] = []
  const server = createServer(listener)
  limitConnections(server, { ...options, onLimit: (event) => told.push(event) })
  const { port } = await listenUntilEnd(t, server)
  const open = (): Promise<number> =>
    new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))))
  return { port, told, open }
}

interface Silent {
  readonly socket: Socket
  isClosed: boolean
}

/** A connection from this address that sends so much and no more. */
async function silent(t: TestContext, port: number, localAddress: string, text = ''): Promise<Silent> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  const connection = { socket, isClosed: false }
  socket.on('error', () => undefined).on('close', () => (connection.isClosed = true))
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  socket.resume().write(text)
  return connection
}

interface Asked {
  readonly status: number | undefined
  readonly text: string
  readonly headers: IncomingMessage['headers']
}

function ask(port: number, localAddress: string, headers: Record<string, string> = {}): Promise<Asked> {
  return new Promise((resolve, reject) => {
    const req = request({ port, host: '127.0.0.1', localAddress, agent: false, headers }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      res.on('end', () => resolve({ status: res.statusCode, text, headers: res.headers })).on('error', reject)
    })
    req.on('error', reject).end()
  })
}

const answerOk: RequestListener = (_req, res) => void res.end('ok')

test('an address with too many waiting connections loses its own oldest ones, and others keep theirs', async (t) => {
  const { port, told, open } = await limited(t, answerOk, { waitingPerAddressMax: 5 })
  const other = await silent(t, port, '127.0.0.3')
  const many: Silent[] = []
  for (let n = 0; n < 20; n++) many.push(await silent(t, port, '127.0.0.2', n % 2 === 0 ? '' : 'GET / HTTP/1.1\r\nHo'))
  await eventually(async () => (await open()) === 6, 'only five of them and the other one are open')
  await eventually(() => many.slice(0, 15).every(({ isClosed }) => isClosed), 'the first fifteen are closed')
  assert.ok(many.slice(15).every(({ isClosed }) => !isClosed))
  assert.equal(other.isClosed, false)
  assert.deepEqual(
    new Set(told.map((event) => JSON.stringify(event))),
    new Set(['{"limit":"waitingPerAddressMax","address":"127.0.0.2"}']),
  )
  assert.equal((await ask(port, '127.0.0.2')).status, 200)
  assert.equal((await ask(port, '127.0.0.1')).status, 200)
})

test('on a server that listens for IPv6 as well, each IPv4 client counts on its own', () => {
  const told: ConnectionLimitEvent[] = []
  const server = createServer(answerOk)
  limitConnections(server, { waitingPerAddressMax: 1, onLimit: (event) => told.push(event) })
  let remotePort = 50_000
  const connectFrom = (address: string): Duplex => {
    const end = { remoteAddress: `::ffff:${address}`, remotePort: remotePort++ }
    const socket = Object.assign(new PassThrough(), end)
    server.emit('connection', socket)
    return socket
  }
  const [one, other] = [connectFrom('192.0.2.1'), connectFrom('192.0.2.2')]
  assert.deepEqual([one.destroyed, other.destroyed, told], [false, false, []])
  const another = connectFrom('192.0.2.1')
  assert.deepEqual([one.destroyed, other.destroyed, another.destroyed], [true, false, false])
  assert.deepEqual(told, [{ limit: 'waitingPerAddressMax', address: '192.0.2.1' }])
  for (const socket of [other, another]) socket.destroy()
})

test('a connection over a limit is closed although its listener throws', () => {
  const server = createServer(answerOk)
  const onLimit = (): never => assert.fail('a fault of the host')
  limitConnections(server, { waitingPerAddressMax: 1, onLimit })
  const sockets = [1, 2].map((remotePort) =>
    Object.assign(new PassThrough(), { remoteAddress: '192.0.2.1', remotePort }),
  )
  server.emit('connection', sockets[0])
  assert.throws(() => server.emit('connection', sockets[1]), /a fault of the host/)
  assert.equal(sockets[0].destroyed, true)
  sockets[1].destroy()
})

test('a full server replaces a waiting connection of the address with most of them', async (t) => {
  const { port, told, open } = await limited(t, answerOk, { connectionsMax: 10 })
  const one = await silent(t, port, '127.0.0.3')
  const many: Silent[] = []
  for (let n = 0; n < 9; n++) many.push(await silent(t, port, '127.0.0.2'))
  assert.equal((await ask(port, '127.0.0.1')).text, 'ok')
  await eventually(() => many[0].isClosed, 'the longest waiting one of the many is closed')
  assert.deepEqual([one.isClosed, many[1].isClosed, await open()], [false, false, 9])
  assert.deepEqual(told, [{ limit: 'connectionsMax', address: '127.0.0.2' }])
})

test('connections with an active request are never closed, and wait again afterwards', async (t) => {
  const held: ServerResponse[] = []
  const { port, told } = await limited(t, (_req, res) => void held.push(res), { connectionsMax: 3 })
  const text = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
  const busy = [await silent(t, port, '127.0.0.2', text), await silent(t, port, '127.0.0.2', text)]
  busy.push(await silent(t, port, '127.0.0.2', text))
  await eventually(() => held.length === 3, 'all three have asked')
  const late = await silent(t, port, '127.0.0.1')
  await eventually(() => late.isClosed, 'there is no room for a fourth')
  assert.deepEqual(
    busy.map(({ isClosed }) => isClosed),
    [false, false, false],
  )
  const answered = once(busy[1].socket, 'data')
  held[1].end()
  await answered
  await silent(t, port, '127.0.0.1')
  await eventually(() => busy[1].isClosed, 'the one that was answered gives way')
  assert.deepEqual(
    told.map(({ address }) => address),
    ['127.0.0.1', '127.0.0.2'],
  )
})

test('requests of an address over its limit get a normal 503, and other addresses are served', async (t) => {
  const held: ServerResponse[] = []
  const listener: RequestListener = (req, res) => (req.url === '/' ? void res.end('ok') : void held.push(res))
  const { port, told } = await limited(t, listener, { requestsPerAddressMax: 2 })
  for (let n = 0; n < 2; n++) await silent(t, port, '127.0.0.2', 'GET /held HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(() => held.length === 2, 'two requests are under way')
  const refused = await ask(port, '127.0.0.2')
  assert.deepEqual([refused.status, refused.headers['retry-after'], refused.headers.connection], [503, '2', 'close'])
  assert.deepEqual(JSON.parse(refused.text), {
    message: '2 requests of this address are in progress, the limit; try again shortly',
    statusCode: 503,
    code: 'overloaded',
  })
  assert.equal((await ask(port, '127.0.0.1')).text, 'ok')
  assert.deepEqual(told, [{ limit: 'requestsPerAddressMax', address: '127.0.0.2' }])
  for (const res of held) res.end()
  await eventually(async () => (await ask(port, '127.0.0.2')).status === 200, 'there is room again')
})

test('behind a trusted proxy, connections count for the client that it names', async (t) => {
  const held: ServerResponse[] = []
  const listener: RequestListener = (req, res) => (req.url === '/' ? void res.end('ok') : void held.push(res))
  const { port, open } = await limited(t, listener, {
    waitingPerAddressMax: 1,
    requestsPerAddressMax: 1,
    trustProxy: { proxies: ['127.0.0.2'] },
  })
  const forwarded = (address: string): Record<string, string> => ({ 'X-Forwarded-For': address })
  for (let n = 0; n < 5; n++) await silent(t, port, '127.0.0.2')
  await silent(t, port, '127.0.0.2', 'GET /held HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n')
  await eventually(() => held.length === 1, 'a request of one client is under way')
  assert.equal(await open(), 6)
  assert.equal((await ask(port, '127.0.0.2', forwarded('203.0.113.9'))).status, 503)
  assert.equal((await ask(port, '127.0.0.2', forwarded('198.51.100.7'))).status, 200)
  assert.equal((await ask(port, '127.0.0.3', forwarded('203.0.113.9'))).status, 200, 'nobody else may say so')
})

test('an upgraded connection is in use until it closes', async (t) => {
  const server = createServer(answerOk)
  limitConnections(server, { waitingPerAddressMax: 1 })
  server.on('upgrade', (_req, socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'))
  const { port } = await listenUntilEnd(t, server)
  const web = await silent(
    t,
    port,
    '127.0.0.2',
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: it\r\n\r\n',
  )
  await once(web.socket, 'data')
  const first = await silent(t, port, '127.0.0.2')
  await silent(t, port, '127.0.0.2')
  await eventually(() => first.isClosed, 'the longest waiting connection is closed')
  assert.equal(web.isClosed, false)
  web.socket.destroy()
})

test('invalid limits are refused', () => {
  for (const options of [{ connectionsMax: 0 }, { waitingPerAddressMax: 1.5 }, { requestsPerAddressMax: -1 }])
    assert.throws(() => limitConnections(createServer(), options), RangeError)
})
