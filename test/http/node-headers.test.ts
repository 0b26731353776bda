import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { NodeHeaders } from '../../src/http/node-headers.ts'

const LINES = [
  'Host: models.example',
  'Accept: text/plain',
  'Accept: application/json;q=0.5',
  'Authorization: Bearer one',
  'Authorization: Bearer two',
  'Cookie: a=1',
  'Cookie: b=2',
  'X-Empty:',
  'X-Latin: caf\u00e9',
]

/** The headers of a request with `LINES`, as Node has them. */
async function received(t: TestContext): Promise<IncomingMessage> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.after(() => {
    socket.destroy()
    server.close()
  })
  socket.end(Buffer.from(`GET / HTTP/1.1\r\n${LINES.join('\r\n')}\r\n\r\n`, 'latin1'))
  const [req] = (await once(server, 'request')) as [IncomingMessage]
  return req
}

/** What `Headers` of the standard has of the same lines. Its cookies are joined by semicolons, as RFC 9113 has it. */
function standard(): Headers {
  const headers = new Headers()
  for (const line of LINES) {
    const colon = line.indexOf(':')
    headers.append(line.slice(0, colon), line.slice(colon + 1))
  }
  return headers
}

test('headers of a request read like those of the standard', async (t) => {
  const headers = new NodeHeaders(await received(t))
  const expected = standard()
  for (const name of [...expected.keys(), 'Authorization', 'ACCEPT', 'absent', 'constructor', '__proto__']) {
    assert.equal(headers.get(name), expected.get(name), name)
    assert.equal(headers.has(name), expected.has(name), name)
  }
  assert.equal(headers.get('authorization'), 'Bearer one, Bearer two')
})

test('headers that a middleware of the host set are read like those of the standard', async (t) => {
  const req = await received(t)
  Object.assign(req.headers, { Authorization: 'Bearer three', 'x-list': ['a', 'b'], Cookie: 'c=3' })
  const headers = new NodeHeaders(req)
  const expected = standard()
  expected.append('authorization', 'Bearer three')
  for (const value of ['a', 'b']) expected.append('x-list', value)
  expected.append('cookie', 'c=3')
  for (const name of expected.keys()) assert.equal(headers.get(name), expected.get(name), name)
  assert.deepEqual([...headers], [...expected])
})

test('they can be gone through, copied and changed like those of the standard', async (t) => {
  const headers = new NodeHeaders(await received(t))
  const expected = standard()
  assert.deepEqual([...headers], [...expected])
  assert.deepEqual([...headers.keys()], [...expected.keys()])
  assert.deepEqual([...headers.values()], [...expected.values()])
  assert.deepEqual([...new Headers(headers)], [...expected])
  assert.equal(new Request('http://models.example', { headers }).headers.get('accept'), expected.get('accept'))
  const told: string[] = []
  headers.forEach((value, name, all) => told.push(`${name}=${value} ${all === headers}`))
  assert.equal(told.length, [...expected].length)
  assert.ok(told.includes('x-empty= true'), told.join('\n'))
  headers.set('accept', 'text/html')
  headers.append('Accept', 'text/css')
  headers.delete('Authorization')
  assert.equal(headers.get('accept'), 'text/html, text/css')
  assert.equal(headers.has('authorization'), false)
  assert.deepEqual(headers.getSetCookie(), [])
})

test('a service that answers uploads and downloads makes Node load neither fetch nor the tables of languages', async () => {
  const script = fileURLToPath(new URL('unused-parts.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, script])
  assert.equal(stdout, '200 200')
})
