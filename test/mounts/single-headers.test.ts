import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import { jwtAccess } from '../../src/index.ts'
import { openService, rawExchange } from '../http/served.ts'
import { HOSTS, listen } from './hosts.ts'

/* Case 38: two different headers of one name where one is meant are refused the same way on every mount. */

const access = jwtAccess({ keys: new Uint8Array(32).fill(7), issuer: 'i', audience: 'a', algorithms: ['HS256'] })
const signed = await new SignJWT({ stowage: { projects: { p: 'write' } } })
  .setProtectedHeader({ alg: 'HS256' })
  .setIssuer('i')
  .setAudience('a')
  .setExpirationTime('1h')
  .sign(new Uint8Array(32).fill(7))

const TWICE: readonly (readonly [string, readonly string[], number])[] = [
  ['Authorization', [`Bearer ${signed}`, 'Bearer x.y.z'], 401],
  ['Authorization', ['Bearer x.y.z', `Bearer ${signed}`], 401],
  ['Content-Type', [`application/json\r\nAuthorization: Bearer ${signed}`, 'application/gzip'], 415],
  ['Content-Type', [`application/gzip\r\nAuthorization: Bearer ${signed}`, 'application/json'], 415],
]

for (const host of HOSTS) {
  void test(`${host.name}: duplicate headers are refused where one is expected`, async (t) => {
    const service = openService({ access })
    t.after(() => service.close({ graceMs: 0 }))
    const port = await listen(t, await host.open(service, '/models'), service)
    const ask = async (headers: readonly string[], hosts = 'Host: x\r\n'): Promise<string> => {
      const lines = headers.map((line) => `${line}\r\n`).join('')
      const text = `POST /models/objects/p HTTP/1.1\r\n${hosts}Connection: close\r\n${lines}Content-Length: 12\r\n\r\n[{"id":"a"}]`
      return rawExchange(port, [text])
    }
    const usual = [`Authorization: Bearer ${signed}`, 'Content-Type: application/json']
    assert.match(await ask(usual), /^HTTP\/1\.1 200 /)
    for (const [name, values, status] of TWICE) {
      const more = name === 'Content-Type' ? [] : ['Content-Type: application/json']
      const answer = await ask([...values.map((value) => `${name}: ${value}`), ...more])
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), `${name} ${values.join(' | ')}`)
    }
    assert.match(await ask(usual, 'Host: x\r\nHost: y\r\n'), /^HTTP\/1\.1 400 /)
    assert.match(await ask([...usual, 'Content-Length: 13']), /^HTTP\/1\.1 400 /)
  })
}
