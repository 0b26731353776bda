import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { s3Blobs, type S3BlobsOptions } from '../../adapters/s3/index.ts'
import { MB } from '../../src/limits.ts'
import type { BlobStore } from '../../src/storage/backend.ts'
import { listenUntilEnd } from '../support/listen.ts'

/*
 * What the adapter does when a store fails, with a server that answers what the test says. `test/engines` has a real one.
 */

const CREDENTIALS = { accessKeyId: 'key', secretAccessKey: 'secret' }

interface Asked {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** Answers one request, or nothing, or breaks the connection. */
type Answer = (asked: Asked, response: ServerResponse) => void

interface FakeStore {
  readonly blobs: BlobStore
  /** Without the probe at the opening, and without the sweep. */
  readonly asked: Asked[]
}

/** A store that has been opened, and gives these answers one after the other. */
async function fakeStore(
  t: TestContext,
  answers: readonly Answer[],
  options: Partial<S3BlobsOptions> = {},
): Promise<FakeStore> {
  const asked: Asked[] = []
  const left = [...answers]
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const one = { method, url, headers, body: Buffer.concat(chunks) }
      if (url.endsWith('/conditional-writes')) status(method === 'GET' ? 200 : 412)(one, response)
      else if (method === 'GET' && url.includes('uploads=')) status(200)(one, response)
      else {
        asked.push(one)
        const answer = left.shift() ?? status(418)
        answer(one, response)
      }
    })
  })
  const { url } = await listenUntilEnd(t, server)
  const blobs = s3Blobs({ endpoint: url, bucket: 'bucket', prefix: 'at/', credentials: CREDENTIALS, ...options })
  t.after(() => blobs.close())
  await blobs.ready?.()
  return { blobs, asked }
}

function status(code: number, { s3Code, headers = {}, body = '' }: AnswerParts = {}): Answer {
  return (_asked, response) => {
    response.writeHead(code, headers)
    response.end(s3Code === undefined ? body : `<Error><Code>${s3Code}</Code><Message>for a test</Message></Error>`)
  }
}

interface AnswerParts {
  readonly s3Code?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
}

/** The connection breaks instead of an answer. */
const broken: Answer = (_asked, response) => void response.destroy()
/** The head of an answer comes, and half of what it announces. */
const cutShort: Answer = (_asked, response) => {
  response.writeHead(206, { 'content-length': '10' })
  response.write('01234', () => response.destroy())
}
const silent: Answer = () => undefined

async function* content(sizeBytes: number): AsyncGenerator<Uint8Array> {
  for (let left = sizeBytes; left > 0; left -= 100_000) yield Buffer.alloc(Math.min(left, 100_000), 1)
}

/** What a HEAD tells of the object that the first of these requests put. */
function ownObject(asked: readonly Asked[], sizeBytes: number): Answer {
  return (one, response) => {
    const nonce = String(asked[0].headers['x-amz-meta-stowage-nonce'])
    status(200, { headers: { 'content-length': String(sizeBytes), 'x-amz-meta-stowage-nonce': nonce } })(one, response)
  }
}

function named(name: string): (error: unknown) => boolean {
  return (error) => error instanceof Error && error.name === name
}

test('a put carries its conditions and its checksum, and is signed', async (t) => {
  const { blobs, asked } = await fakeStore(t, [status(200)])
  assert.deepEqual(await blobs.put('p/one', content(10)), { sizeBytes: 10 })
  const [{ method, url, headers, body }] = asked
  assert.equal(`${method} ${url}`, 'PUT /bucket/at/p/one.b')
  assert.equal(headers['if-none-match'], '*')
  assert.equal(headers['content-md5'], createHash('md5').update(Buffer.alloc(10, 1)).digest('base64'))
  assert.match(headers.authorization ?? '', /^AWS4-HMAC-SHA256 Credential=key\/\d{8}\/us-east-1\/s3\/aws4_request/)
  assert.equal(body.length, 10)
})

test('broken connections, SlowDown and short answers are tried again', async (t) => {
  const answers = [broken, status(503, { s3Code: 'SlowDown' }), status(500), cutShort]
  const { blobs, asked } = await fakeStore(t, [...answers, status(206, { body: '0123456789' })])
  assert.equal(Buffer.from(await blobs.read('p/one', 5, 15)).toString(), '0123456789')
  assert.deepEqual(
    asked.map(({ headers }) => headers.range),
    Array.from({ length: 5 }, () => 'bytes=5-14'),
  )
})

test('a store that stays away ends as storage_unavailable, and one that is full as storage_full', async (t) => {
  const away = await fakeStore(
    t,
    Array.from({ length: 9 }, () => status(503, { s3Code: 'SlowDown' })),
  )
  await assert.rejects(away.blobs.read('p/one', 0, 10), { code: 'storage_unavailable' })
  assert.equal(away.asked.length, 6)
  for (const answer of [
    status(507),
    status(400, { s3Code: 'XMinioStorageFull' }),
    status(403, { s3Code: 'QuotaExceeded' }),
  ]) {
    const full = await fakeStore(t, [answer])
    await assert.rejects(full.blobs.put('p/one', content(10)), { code: 'storage_full' })
    assert.equal(full.asked.length, 1, 'no other attempt')
  }
})

test('a store that says nothing is given up after the time limit', async (t) => {
  const answer = status(206, { body: '01' })
  // More answers than one, since a busy machine may be late itself.
  const { blobs } = await fakeStore(t, [silent, answer, answer, answer, answer], { timeoutMs: 500 })
  assert.equal((await blobs.read('p/one', 0, 2)).length, 2)
})

test('an abort ends a call while the store says nothing', async (t) => {
  const controller = new AbortController()
  const reason = new Error('the caller went away')
  const { blobs } = await fakeStore(t, [() => controller.abort(reason)])
  await assert.rejects(blobs.read('p/one', 0, 2, { signal: controller.signal }), (error) => error === reason)
})

test('a put whose answer was lost finds its own object; that of another writer is no success', async (t) => {
  const own: Answer[] = [broken, status(412)]
  const lost = await fakeStore(t, [...own, (one, response) => ownObject(lost.asked, 10)(one, response)])
  assert.deepEqual(await lost.blobs.put('p/one', content(10)), { sizeBytes: 10 })
  assert.deepEqual(
    lost.asked.map(({ method }) => method),
    ['PUT', 'PUT', 'HEAD'],
  )
  const other = status(200, { headers: { 'content-length': '10', 'x-amz-meta-stowage-nonce': 'other' } })
  const foreign = await fakeStore(t, [broken, status(412), other])
  await assert.rejects(foreign.blobs.put('p/one', content(10)), named('BlobExistsError'))
  const taken = await fakeStore(t, [status(412)])
  await assert.rejects(taken.blobs.put('p/one', content(10)), named('BlobExistsError'))
  assert.equal(taken.asked.length, 1, 'nothing to look for after the first answer')
})

test('a store that closes the connection at each attempt is asked what it holds', async (t) => {
  const other = status(200, { headers: { 'content-length': '10', 'x-amz-meta-stowage-nonce': 'other' } })
  const attempts: Answer[] = Array.from({ length: 6 }, () => broken)
  const foreign = await fakeStore(t, [...attempts, other])
  await assert.rejects(foreign.blobs.put('p/one', content(10)), named('BlobExistsError'))
  const own = await fakeStore(t, [...attempts, (one, response) => ownObject(own.asked, 10)(one, response)])
  assert.deepEqual(await own.blobs.put('p/one', content(10)), { sizeBytes: 10 })
  const absent = await fakeStore(t, [...attempts, status(404), status(404)])
  await assert.rejects(absent.blobs.put('p/one', content(10)), { code: 'storage_unavailable' })
})

test('what is above 8 MiB goes in parts; a refused completion leaves no parts', async (t) => {
  const begun = status(200, { body: '<UploadId>a/b</UploadId>' })
  const part = status(200, { headers: { etag: '"e"' } })
  const failed = status(200, { s3Code: 'InternalError' })
  const whole = await fakeStore(t, [begun, part, part, failed, status(200)])
  assert.deepEqual(await whole.blobs.put('p/one', content(8 * MB + 1)), { sizeBytes: 8 * MB + 1 })
  assert.deepEqual(
    whole.asked.map(({ method, body }) => `${method} ${body.length > 1_000 ? body.length : ''}`),
    ['POST ', `PUT ${8 * MB}`, 'PUT ', 'POST ', 'POST '],
  )
  assert.equal(whole.asked[4].headers['if-none-match'], '*')
  assert.match(whole.asked[4].body.toString(), /<Part><PartNumber>2<\/PartNumber><ETag>&#34;e&#34;<\/ETag><\/Part>/)
  const refused = await fakeStore(t, [begun, part, part, status(412), status(204)])
  await assert.rejects(refused.blobs.put('p/one', content(8 * MB + 1)), named('BlobExistsError'))
  assert.equal(refused.asked[4].method, 'DELETE')
  assert.match(refused.asked[4].url, /uploadId=a%2Fb/)
})

test('a completion whose answer was lost is a success', async (t) => {
  const begun = status(200, { body: '<UploadId>u</UploadId>' })
  const part = status(200, { headers: { etag: '"e"' } })
  const gone = status(404, { s3Code: 'NoSuchUpload' })
  const { blobs, asked } = await fakeStore(t, [
    begun,
    part,
    part,
    broken,
    gone,
    status(204),
    (one, response) => ownObject(asked, 8 * MB + 1)(one, response),
  ])
  assert.deepEqual(await blobs.put('p/one', content(8 * MB + 1)), { sizeBytes: 8 * MB + 1 })
})

test('credentials are asked for once, again before they expire, and again when the store says that they have', async (t) => {
  let given = 0
  const credentials = async () => {
    given++
    const expiration = new Date(Date.now() + (given === 1 ? 60_000 : 3_600_000))
    return { accessKeyId: `key${given}`, secretAccessKey: 'secret', sessionToken: 'token', expiration }
  }
  const ok = status(206, { body: '01' })
  const { blobs, asked } = await fakeStore(t, [ok, ok, status(400, { s3Code: 'ExpiredToken' }), ok], { credentials })
  for (let read = 0; read < 3; read++) await blobs.read('p/one', 0, 2)
  const keys = asked.map(({ headers }) => /Credential=(\w+)\//.exec(headers.authorization ?? '')?.[1])
  assert.equal(new Set(keys.slice(0, 3)).size, 1, 'fresh ones are kept')
  assert.notEqual(keys[3], keys[2])
  assert.equal(asked[0].headers['x-amz-security-token'], 'token')
})

test('a store that ignores conditions is refused, and so is a bucket that does not exist', async (t) => {
  const ignoring = await listenUntilEnd(
    t,
    createServer((request, response) => void request.resume().on('end', () => response.end())),
  )
  const options = { bucket: 'bucket', credentials: CREDENTIALS }
  const careless = s3Blobs({ endpoint: ignoring.url, ...options })
  await assert.rejects(careless.ready?.() ?? Promise.resolve(), /bucket bucket at .* ignores If-None-Match/)
  const missing = await listenUntilEnd(
    t,
    createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(404).end('<Error><Code>NoSuchBucket</Code></Error>'))
    }),
  )
  const nowhere = s3Blobs({ endpoint: missing.url, ...options })
  await assert.rejects(nowhere.ready?.() ?? Promise.resolve(), /NoSuchBucket.*create the bucket/)
  for (const blobs of [careless, nowhere]) await blobs.close()
})

test('a place that was never used is opened without a write; its store is checked before the first put', async (t) => {
  const asked: string[] = []
  const empty = await listenUntilEnd(
    t,
    createServer((request, response) => {
      if (request.url?.includes('uploads=') !== true) asked.push(`${request.method} ${request.url}`)
      const isAbsent = request.method === 'GET' && request.url?.includes('conditional-writes') === true
      request.resume().on('end', () => response.writeHead(isAbsent ? 404 : 200).end())
    }),
  )
  const blobs = s3Blobs({ endpoint: empty.url, bucket: 'bucket', prefix: 'at/', credentials: CREDENTIALS })
  t.after(() => blobs.close())
  await blobs.ready?.()
  for await (const batch of blobs.list('')) assert.deepEqual(batch, [])
  assert.deepEqual(asked.slice(0, 1), ['GET /bucket/at/conditional-writes'])
  assert.ok(asked.every((line) => line.startsWith('GET ')))
  const puts = await Promise.allSettled([1, 2].map((at) => blobs.put(`p/${at}`, content(10))))
  assert.deepEqual(asked.slice(2), Array<string>(2).fill('PUT /bucket/at/conditional-writes'))
  for (const put of puts) {
    assert.ok(put.status === 'rejected')
    assert.match(String((put.reason as Error).cause), /ignores If-None-Match/)
  }
})

test('options that cannot work are refused at once', () => {
  const refuses = (options: Partial<S3BlobsOptions>, message: RegExp): void => {
    assert.throws(() => s3Blobs({ bucket: 'bucket', credentials: CREDENTIALS, ...options }), message)
  }
  refuses({ endpoint: 'http://s3.example.org' }, /would send all data in the clear: use https:, or set isHttpAllowed/)
  refuses({ endpoint: 's3.example.org' }, /it must be an https: address/)
  refuses({ endpoint: 'https://user@s3.example.org' }, /without a user/)
  refuses({ bucket: 'a/b' }, /is not the name of an S3 bucket/)
  refuses({ prefix: '/begins' }, /cannot begin keys/)
  refuses({ prefix: '../up/' }, /cannot begin keys/)
  refuses({ credentials: { accessKeyId: '', secretAccessKey: '' } }, /must have the texts accessKeyId/)
  assert.equal(s3Blobs({ bucket: 'bucket' }).place, 'bucket bucket at https://s3.us-east-1.amazonaws.com')
})
