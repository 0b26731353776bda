import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'

const SILENT = 1_000

interface Line {
  readonly url: string
  readonly healthUrl: string
}

/** The status of a GET over a connection of its own, from an address of this machine. */
function statusOf(
  url: string,
  localAddress: string,
  headers: Record<string, string> = {},
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { localAddress, agent: false, headers }, (res) => {
      res.resume().once('end', () => resolve(res.statusCode))
    })
      .on('error', reject)
      .end()
  })
}

/**
 * Connections from one address that send nothing, or the beginning of a request. They come back whenever they are
 * closed.
 */
function silentConnections(t: TestContext, port: number, localAddress: string): { readonly closed: () => number } {
  let [closed, isOver] = [0, false]
  const open = (n: number): void => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    socket.on('error', () => undefined).once('connect', () => socket.write(n % 2 === 0 ? '' : 'GET / HT'))
    socket.resume().once('close', () => {
      closed++
      if (!isOver) setTimeout(open, 1_000, n)
    })
    t.after(() => {
      isOver = true
      socket.destroy()
    })
  }
  for (let n = 0; n < SILENT; n++) open(n)
  return { closed: () => closed }
}

test('1,000 silent connections of one address block neither other clients nor health checks, on either listener', async (t) => {
  const folder = newDataFolder(t)
  const server = await startServer(t, ['--data', folder, '--storage', 'memory', '--json', '--health', '0'])
  const { url, healthUrl } = JSON.parse(server.line) as Line
  assert.match(healthUrl, /^http:\/\/127\.0\.0\.1:[1-9][0-9]*\/healthz$/)
  const attacks = [url, healthUrl].map((at) => silentConnections(t, Number(new URL(at).port), '127.0.0.2'))
  for (let round = 0; round < 5; round++) {
    assert.equal(await statusOf(`${url}/healthz`, '127.0.0.1'), 200)
    assert.equal(await statusOf(healthUrl, '127.0.0.1'), 200)
    assert.equal(await statusOf(`${url}/objects/p/a`, '127.0.0.1'), 401)
  }
  for (const { closed } of attacks) assert.ok(closed() > 0, 'their longest waiting ones are closed')
  const { code, stderr } = await server.stop()
  assert.equal(code, 0)
  assert.match(stderr, /refused at a bound limit=waitingPerAddressMax address=127\.0\.0\.2 times=1\n/)
  assert.ok(stderr.split('\n').length < 40, 'the log does not grow with every connection')
})

test('requests behind a proxy count for the client that it names, and two ports for one listener are refused', async (t) => {
  const folder = newDataFolder(t)
  const bounds = ['--requests-per-address-max', '1', '--waiting-per-address-max', '2', '--trust-proxy', '127.0.0.2']
  const server = await startServer(t, ['--data', folder, '--storage', 'memory', '--json', ...bounds])
  const { url } = JSON.parse(server.line) as Line
  const token = (await stowage(['token', '--data', folder, '--project', 'p', '--access', 'write'])).stdout.trim()
  const slow = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress: '127.0.0.2' })
  t.after(() => slow.destroy())
  await once(slow, 'connect')
  const head = `POST /objects/p HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`
  slow.write(`${head}X-Forwarded-For: 203.0.113.9\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n`)
  await once(slow, 'data')
  const ask = (address: string, from = '127.0.0.2'): Promise<number | undefined> =>
    statusOf(`${url}/objects/p/a`, from, { 'X-Forwarded-For': address })
  assert.deepEqual([await ask('203.0.113.9'), await ask('198.51.100.7')], [503, 401])
  assert.equal(await ask('203.0.113.9', '127.0.0.1'), 401)
  slow.destroy()
  await server.stop()
  const refused = await stowage(['serve', '--data', folder, '--trust-proxy', 'nginx', '--port', '0'])
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /trustProxy names "nginx"; it must be an IP address, a network such as 10\.0\.0\.0\/8/)
  const twice = await stowage(['serve', '--data', folder, '--port', '0', '--health', '9001', '--metrics', '9002'])
  assert.match(twice.stderr, /--health 9001 and --metrics 9002 name two ports/)
})
