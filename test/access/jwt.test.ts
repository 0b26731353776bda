import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { type CryptoKey, exportSPKI, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { claimAuthorize, type Principal } from '../../src/access/access.ts'
import { jwtAccess, type JwtAccessOptions } from '../../src/access/jwt.ts'
import type { StowageError } from '../../src/errors.ts'

const NOW_SECONDS = 1_800_000_000
const secret = new Uint8Array(randomBytes(32))
const [rsa, ec, ed] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('ES256'), generateKeyPair('EdDSA')])
const usual: JwtAccessOptions = {
  keys: secret,
  issuer: 'https://issuer.example',
  audience: 'stowage',
  algorithms: ['HS256'],
  clock: { now: () => NOW_SECONDS * 1_000 },
}
const claims: JWTPayload = {
  iss: usual.issuer,
  aud: usual.audience,
  sub: 'ada',
  jti: 't-1',
  exp: NOW_SECONDS + 60,
  iat: NOW_SECONDS - 60,
  stowage: { projects: { demo: 'write' } },
}

function sign(payload: JWTPayload = claims, alg = 'HS256', key: Uint8Array | CryptoKey = secret): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg }).sign(key)
}

async function present(
  authorization: string | undefined,
  options: Partial<JwtAccessOptions> = {},
): Promise<Principal | undefined> {
  const headers = new Headers(authorization === undefined ? {} : { authorization })
  return jwtAccess({ ...usual, ...options }).authenticate({ headers, method: 'GET', path: '/', host: undefined })
}

async function accepted(token: string, options: Partial<JwtAccessOptions> = {}): Promise<boolean> {
  const reasons: string[] = []
  const principal = await present(`Bearer ${token}`, { ...options, onRefused: (reason) => reasons.push(reason) })
  for (const part of token.split('.'))
    assert.ok(
      part.length < 4 || reasons.every((reason) => !reason.includes(part)),
      'a reason holds a part of the token',
    )
  return principal !== undefined
}

function without(name: string): JWTPayload {
  return Object.fromEntries(Object.entries(claims).filter(([key]) => key !== name))
}

/** A token with exactly this text as its claims, which no library would sign. */
async function signText(payload: string): Promise<string> {
  const head = Buffer.from('{"alg":"HS256"}').toString('base64url')
  const body = Buffer.from(payload).toString('base64url')
  const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return `${head}.${body}.${Buffer.from(await crypto.subtle.sign('HMAC', key, Buffer.from(`${head}.${body}`))).toString('base64url')}`
}

test('a valid token yields its subject, its id and its rights', async () => {
  const principal = await present(`Bearer ${await sign()}`)
  assert.deepEqual(principal, { subject: 'ada', tokenId: 't-1', projects: new Map([['demo', 'write']]) })
  assert.equal(claimAuthorize(principal, 'demo', 'write'), true)
  assert.equal(claimAuthorize(principal, 'other', 'read'), false)
})

test('only a claim with sealedSecrets true lets a backup read sealed secrets', async () => {
  for (const [sealedSecrets, expected] of [
    [true, true],
    ['true', undefined],
    [1, undefined],
    [undefined, undefined],
  ]) {
    const token = await sign({ ...claims, stowage: { projects: { demo: 'read' }, sealedSecrets } })
    const principal = await present(`Bearer ${token}`)
    assert.equal(principal?.readsSealedSecrets, expected)
  }
})

test('a token without the claim authenticates and grants nothing', async () => {
  const principal = await present(`Bearer ${await sign(without('stowage'))}`)
  assert.equal(principal?.subject, 'ada')
  assert.equal(claimAuthorize(principal, 'demo', 'read'), false)
})

test('the Authorization header holds exactly one bearer token', async () => {
  const token = await sign()
  for (const header of [`Bearer ${token}`, `bearer ${token}`, `BEARER   ${token}`])
    assert.ok(await present(header), header.slice(0, 10))
  const refused = [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    token,
    `Basic ${token}`,
    `Bearer ${token} ${token}`,
    `Bearer ${token}, Bearer ${token}`,
    `Bearer ${token},`,
    `Bearer\t${token}`,
    `Bearer "${token}"`,
    `Bearer=${token}`,
    'Bearer ====',
    'Bearer a=b',
  ]
  for (const header of refused) assert.equal(await present(header), undefined, header?.slice(0, 10))
})

test('token times are checked to the second', async () => {
  const cases: readonly (readonly [JWTPayload, boolean])[] = [
    [{ exp: NOW_SECONDS + 1 }, true],
    [{ exp: NOW_SECONDS }, false],
    [{ exp: NOW_SECONDS - 1 }, false],
    [{ exp: 0 }, false],
    [{ exp: -1 }, false],
    [{ nbf: NOW_SECONDS }, true],
    [{ nbf: NOW_SECONDS + 1 }, false],
    [{ iat: NOW_SECONDS }, true],
    [{ iat: NOW_SECONDS + 1 }, false],
  ]
  for (const [change, expected] of cases)
    assert.equal(await accepted(await sign({ ...claims, ...change })), expected, JSON.stringify(change))
  const options = { clockToleranceSeconds: 5 }
  for (const [change, expected] of [
    [{ exp: NOW_SECONDS - 4 }, true],
    [{ exp: NOW_SECONDS - 5 }, false],
    [{ iat: NOW_SECONDS + 5 }, true],
    [{ iat: NOW_SECONDS + 6 }, false],
    [{ nbf: NOW_SECONDS + 5 }, true],
    [{ nbf: NOW_SECONDS + 6 }, false],
  ] as const) {
    assert.equal(
      await accepted(await sign({ ...claims, ...change }), options),
      expected,
      `5 s of tolerance, ${JSON.stringify(change)}`,
    )
  }
})

test('exp, issuer and audience are required and must match exactly', async () => {
  for (const name of ['exp', 'iss', 'aud'])
    assert.equal(await accepted(await sign(without(name))), false, `without ${name}`)
  for (const name of ['iat', 'sub', 'jti'])
    assert.equal(await accepted(await sign(without(name))), true, `without ${name}`)
  for (const change of [
    { iss: 'https://issuer.example/' },
    { iss: '' },
    { aud: 'Stowage' },
    { aud: 'stowage2' },
    { aud: [] },
    { aud: ['other'] },
  ]) {
    assert.equal(await accepted(await sign({ ...claims, ...change })), false, JSON.stringify(change))
  }
  assert.equal(await accepted(await sign({ ...claims, aud: ['other', 'stowage'] })), true)
})

test('a token with claims of the wrong type is refused', async () => {
  assert.equal(await accepted(await signText(JSON.stringify(claims))), true, 'the control')
  for (const change of [
    '"exp":"1900000000"',
    '"exp":1e400',
    '"exp":null',
    '"exp":[1900000000]',
    '"iat":"0"',
    '"nbf":true',
    '"sub":1',
    '"jti":{}',
    '"iss":["https://issuer.example"]',
  ]) {
    assert.equal(await accepted(await signText(`${JSON.stringify(claims).slice(0, -1)},${change}}`)), false, change)
  }
  for (const text of ['', '[]', 'null', '"x"', '{', `${JSON.stringify(claims)}x`])
    assert.equal(await accepted(await signText(text)), false, text.slice(0, 5))
})

test('only the allowed algorithms verify a token', async () => {
  const pairs = [
    ['RS256', rsa],
    ['ES256', ec],
    ['EdDSA', ed],
  ] as const
  for (const [alg, pair] of pairs) {
    for (const [other, otherPair] of pairs) {
      const options = { keys: otherPair.publicKey, algorithms: [other] }
      assert.equal(
        await accepted(await sign(claims, alg, pair.privateKey), options),
        alg === other,
        `${alg} against ${other}`,
      )
    }
    assert.equal(
      await accepted(await sign(), { keys: pair.publicKey, algorithms: [alg, 'HS256'] }),
      false,
      'a shared secret against a public key',
    )
    assert.equal(
      await accepted(await sign(claims, alg, pair.privateKey), { algorithms: [alg, 'HS256'] }),
      false,
      "a public key's algorithm against a shared secret",
    )
  }
  const long = new Uint8Array(randomBytes(64))
  assert.equal(await accepted(await sign(claims, 'HS512', long), { keys: long }), false)
  assert.equal(await accepted(await sign(claims, 'HS512', long), { keys: long, algorithms: ['HS256', 'HS512'] }), true)
})

test('a token without a signature, or one signed with a public key as the secret, is refused', async () => {
  const unsigned = new UnsecuredJWT(claims).encode()
  const pem = await exportSPKI(rsa.publicKey)
  const forged = await sign(claims, 'HS256', Buffer.from(pem))
  for (const options of [
    usual,
    { keys: rsa.publicKey, algorithms: ['RS256'] },
    { keys: [secret, rsa.publicKey], algorithms: ['RS256', 'HS256'] },
  ]) {
    assert.equal(await accepted(forged, options), false)
    for (const alg of ['none', 'None', 'NONE', 'nOnE']) {
      const head = Buffer.from(JSON.stringify({ alg })).toString('base64url')
      assert.equal(await present(`Bearer ${head}.${unsigned.split('.')[1]}.`, options), undefined)
    }
  }
  assert.throws(() => jwtAccess({ ...usual, keys: Buffer.from(pem), algorithms: ['HS256', 'RS256'] }), /PEM/)
})

test('an asymmetric key in DER form is not accepted as a shared secret, and RSA keys need 2,048 bits', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const edwards = generateKeyPairSync('ed25519')
  for (const der of [
    publicKey.export({ format: 'der', type: 'spki' }),
    publicKey.export({ format: 'der', type: 'pkcs1' }),
    privateKey.export({ format: 'der', type: 'pkcs8' }),
    privateKey.export({ format: 'der', type: 'pkcs1' }),
    elliptic.publicKey.export({ format: 'der', type: 'spki' }),
    elliptic.privateKey.export({ format: 'der', type: 'sec1' }),
    edwards.publicKey.export({ format: 'der', type: 'spki' }),
  ])
    assert.throws(() => jwtAccess({ ...usual, keys: new Uint8Array(der), algorithms: ['HS256', 'RS256'] }), /DER/)
  jwtAccess({ ...usual, keys: new Uint8Array(48).fill(0x30), algorithms: ['HS256'] })
  const rsaOf = async (modulusLength: number): Promise<CryptoKey> => {
    const algorithm = {
      name: 'RSASSA-PKCS1-v1_5',
      modulusLength,
      publicExponent: new Uint8Array([1, 0, 1]),
      hash: 'SHA-256',
    }
    return (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])).publicKey
  }
  const small = await rsaOf(1_024)
  assert.throws(
    () => jwtAccess({ ...usual, keys: small, algorithms: ['RS256'] }),
    /has 1024 bits; it must have 2048 or more/,
  )
  jwtAccess({ ...usual, keys: await rsaOf(2_048), algorithms: ['RS256'] })
})

test('a changed token is refused, regardless of the position', async () => {
  const token = await sign()
  const other = await sign({ ...claims, sub: 'eve' })
  assert.equal(
    await accepted([...token.split('.').slice(0, 1), other.split('.')[1], token.split('.')[2]].join('.')),
    false,
  )
  for (let at = 0; at < token.length - 1; at += 7) {
    const swapped = token[at] === 'A' ? 'B' : 'A'
    assert.equal(await present(`Bearer ${token.slice(0, at)}${swapped}${token.slice(at + 1)}`), undefined, `at ${at}`)
  }
  for (const text of ['x', 'a.b', 'a.b.c', 'a.b.c.d', '..', `${token}.`, `.${token}`, token.slice(0, -5)])
    assert.equal(await accepted(text), false, text.slice(0, 8))
})

test('critical and unknown header members are refused', async () => {
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', crit: ['x'], x: 1 })
    .sign(secret, { crit: { x: true } })
  assert.equal(await accepted(token), false)
})

test('tokens of up to 8 KB are accepted, and longer ones are refused', async () => {
  async function ofLength(length: number): Promise<string> {
    const padding = Math.floor(((length - (await sign({ ...claims, padding: '' })).length) * 3) / 4)
    for (let more = -4; more <= 4; more++) {
      const token = await sign({ ...claims, padding: 'x'.repeat(padding + more) })
      if (token.length === length) return token
    }
    throw new Error('no padding makes this length')
  }
  assert.equal(await accepted(await ofLength(8_192)), true)
  assert.equal(await accepted(await ofLength(8_193)), false)
  assert.equal(await accepted(await sign({ ...claims, padding: 'x'.repeat(100_000) })), false)
})

test('any of several keys may have signed the token', async () => {
  const old = new Uint8Array(randomBytes(32))
  const options = { keys: [rsa.publicKey, old, secret], algorithms: ['HS256', 'RS256'] }
  for (const token of [await sign(), await sign(claims, 'HS256', old), await sign(claims, 'RS256', rsa.privateKey)])
    assert.equal(await accepted(token, options), true)
  assert.equal(await accepted(await sign(claims, 'HS256', new Uint8Array(randomBytes(32))), options), false)
  assert.equal(await accepted(await sign({ ...claims, exp: 1 }, 'HS256', old), options), false)
})

test('tokens are revoked by jti, and an unreadable revocation list refuses all tokens', async () => {
  const token = await sign()
  const asked: string[] = []
  assert.equal(
    await accepted(token, {
      isRevoked: (jti) => {
        asked.push(jti)
        return false
      },
    }),
    true,
  )
  assert.deepEqual(asked, ['t-1'])
  assert.equal(await accepted(token, { isRevoked: () => Promise.resolve(true) }), false)
  assert.equal(await accepted(await sign(without('jti')), { isRevoked: () => false }), false)
  const failing = { isRevoked: () => Promise.reject(new Error('the database is gone')) }
  await assert.rejects(
    present(`Bearer ${token}`, failing),
    (error: StowageError) => error.code === 'access_unavailable' && error.statusCode === 503 && error.isRetryable,
  )
  assert.equal(await accepted(await sign({ ...claims, exp: 1 }), failing), false)
})

test('options that allow too much or nothing throw', async () => {
  const short = await crypto.subtle.importKey('raw', randomBytes(8), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'verify',
  ])
  const wrong: readonly Partial<JwtAccessOptions>[] = [
    { keys: new Uint8Array(1) },
    { keys: new Uint8Array(31) },
    { keys: [secret, new Uint8Array(31)] },
    { keys: short },
    { keys: [] },
    { keys: Array.from({ length: 17 }, () => secret) },
    { keys: rsa.privateKey, algorithms: ['RS256'] },
    { keys: rsa.publicKey },
    { keys: new URL('https://keys.example') },
    { keys: new URL('file:///keys'), algorithms: ['RS256'] },
    { keys: 'a secret as a string, of many bytes' as unknown as Uint8Array },
    { algorithms: [] },
    { algorithms: ['none'] },
    { algorithms: ['HS256', 'none'] },
    { algorithms: ['RS256'] },
    { issuer: '' },
    { audience: '' },
    { audience: undefined },
    { clockToleranceSeconds: -1 },
    { clockToleranceSeconds: 301 },
    { clockToleranceSeconds: Number.NaN },
  ]
  for (const change of wrong)
    assert.throws(() => jwtAccess({ ...usual, ...change }), TypeError, Object.keys(change).join())
})

test('a secret still verifies after its owner wipes the buffer', async () => {
  const copy = secret.slice()
  const access = jwtAccess({ ...usual, keys: copy })
  const headers = new Headers({ authorization: `Bearer ${await sign()}` })
  copy.fill(0)
  assert.ok(await access.authenticate({ headers, method: 'GET', path: '/', host: undefined }))
})
