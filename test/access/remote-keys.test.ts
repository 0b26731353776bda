import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { test, type TestContext } from 'node:test'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Access } from '../../src/access/access.ts'
import { jwtAccess } from '../../src/access/jwt.ts'
import type { StowageError } from '../../src/errors.ts'
import { listenUntilEnd } from '../support/listen.ts'

const [first, second] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')])
const [firstJwk, secondJwk] = await Promise.all([first, second].map((pair) => exportJWK(pair.publicKey)))

function sign(key: CryptoKey, kid?: string): Promise<string> {
  return new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', kid })
    .setIssuer('i')
    .setAudience('a')
    .setExpirationTime('1m')
    .sign(key)
}

/** Access by the key set of a server, and how often that was asked. */
async function accessBy(
  context: TestContext,
  listener: RequestListener,
): Promise<{ access: Access<unknown>; asked: () => number }> {
  let asked = 0
  const server = createServer((request, response) => {
    asked++
    listener(request, response)
  })
  const { url } = await listenUntilEnd(context, server)
  const keys = new URL(`${url}/keys`)
  return {
    access: jwtAccess({ keys, issuer: 'i', audience: 'a', algorithms: ['ES256', 'RS256', 'HS256'] }),
    asked: () => asked,
  }
}

async function accepts(access: Access<unknown>, token: string): Promise<boolean> {
  const headers = new Headers({ authorization: `Bearer ${token}` })
  return (await access.authenticate({ headers, method: 'GET', path: '/', host: undefined })) !== undefined
}

function sending(...keys: JWK[]): RequestListener {
  return (_request, response) => response.end(JSON.stringify({ keys }))
}

test('many concurrent requests fetch a key set once', async (context) => {
  const { access, asked } = await accessBy(context, sending({ ...firstJwk, kid: '1' }, { ...secondJwk, kid: '2' }))
  const tokens = await Promise.all([
    sign(first.privateKey, '1'),
    sign(second.privateKey, '2'),
    sign(second.privateKey, '1'),
  ])
  assert.deepEqual(await Promise.all(tokens.map((token) => accepts(access, token))), [true, true, false])
  assert.equal(await accepts(access, tokens[0]), true)
  assert.equal(asked(), 1)
})

test('all keys without ids are tried', async (context) => {
  const { access } = await accessBy(context, sending(firstJwk, secondJwk))
  const stranger = await generateKeyPair('ES256')
  for (const [key, expected] of [
    [first.privateKey, true],
    [second.privateKey, true],
    [stranger.privateKey, false],
  ] as const) {
    assert.equal(await accepts(access, await sign(key)), expected)
  }
})

test('tokens with unknown key ids cause no requests to the key server', async (context) => {
  const { access, asked } = await accessBy(context, sending({ ...firstJwk, kid: '1' }))
  for (let round = 0; round < 5; round++)
    assert.equal(await accepts(access, await sign(first.privateKey, `unknown ${round}`)), false)
  assert.equal(asked(), 1)
})

test('a token that no key set can verify causes no fetch', async (context) => {
  const { access, asked } = await accessBy(
    context,
    sending({ kty: 'oct', k: Buffer.alloc(32).toString('base64url'), kid: '1' }),
  )
  assert.equal(await accepts(access, 'a.b.c'), false)
  const shared = await new SignJWT({})
    .setProtectedHeader({ alg: 'HS256', kid: '1' })
    .setIssuer('i')
    .setAudience('a')
    .setExpirationTime('1m')
    .sign(Buffer.alloc(32))
  assert.equal(await accepts(access, shared), false, 'a shared secret in a key set')
  assert.ok(asked() <= 1)
})

const endless: RequestListener = (_request, response) => {
  const more = (): void => {
    while (response.write(Buffer.alloc(65_536, 0x20))) continue
    response.once('drain', more)
  }
  more()
}

const broken: Readonly<Record<string, RequestListener>> = {
  'an error': (_request, response) => response.writeHead(500).end(),
  'a redirect': (_request, response) => response.writeHead(302, { location: '/keys' }).end(),
  'no JSON': (_request, response) => response.end('<html>'),
  null: (_request, response) => response.end('null'),
  'no keys': (_request, response) => response.end('{"keys": {}}'),
  'keys that are not objects': (_request, response) => response.end('{"keys": [1]}'),
  'too many keys': sending(...Array.from({ length: 33 }, () => firstJwk)),
  'too many bytes': sending({ ...firstJwk, x5u: 'x'.repeat(65_536) }),
  'an endless body': endless,
  'half an answer': (_request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{')
    setImmediate(() => response.destroy())
  },
}

for (const [name, listener] of Object.entries(broken)) {
  test(`a key server that sends ${name} causes a 503 and is not asked again at once`, async (context) => {
    const { access, asked } = await accessBy(context, listener)
    const token = await sign(first.privateKey)
    const now = performance.now()
    context.mock.method(performance, 'now', () => now)
    for (let round = 0; round < 3; round++) {
      await assert.rejects(
        accepts(access, token),
        (error: StowageError) =>
          error.code === 'access_unavailable' && error.statusCode === 503 && error.headers['Retry-After'] === '2',
      )
    }
    assert.equal(asked(), 1)
  })
}
