import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { decodeUpload } from '../../src/decode/decode-upload.ts'
import { StowageError, type StowageErrorCode } from '../../src/errors.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { FORM_TYPE, type Part, codeOf, decode, errorOf, file, inChunks, multipart, source, texts } from './support.ts'
import { parseContentType } from '../../src/decode/header-value.ts'

const plain = '[{"id":"a"},{"id":"b"}]'
const objects = ['{"id":"a"}', '{"id":"b"}']
const gzip = gzipSync(plain)
const FORM = { type: FORM_TYPE }

function form(...parts: readonly Part[]): ReturnType<typeof source> {
  return source(multipart(parts), FORM)
}

test('whole bodies are accepted as JSON, as gzipped JSON, and with both declared', async () => {
  for (const chunk of [1, 3, 65_536]) {
    assert.deepEqual(await texts(source(plain, { chunk })), objects)
    assert.deepEqual(
      await texts(source(plain, { chunk, type: 'Application/JSON; charset="UTF-8"', encoding: 'identity' })),
      objects,
    )
    assert.deepEqual(await texts(source(gzip, { chunk, encoding: 'GZIP' })), objects)
    assert.deepEqual(await texts(source(gzip, { chunk, type: 'application/gzip' })), objects)
    assert.deepEqual(await texts(source(gzip, { chunk, type: 'application/gzip', encoding: 'gzip' })), objects)
  }
  assert.deepEqual(await texts(source('[]')), [])
})

test('other types and encodings are refused before reading, with the accepted ones named', async () => {
  async function* unread(): AsyncGenerator<Uint8Array> {
    assert.fail('the body was read')
    yield new Uint8Array(0)
  }
  const refused: readonly (readonly [string | undefined, string | undefined])[] = [
    [undefined, undefined],
    ['', undefined],
    ['text/plain', undefined],
    ['application/x-ndjson', undefined],
    ['application/json;', 'br'],
    ['application/json; charset=utf-16', undefined],
    ['application/gzip', 'deflate'],
    ['multipart/mixed; boundary=x', undefined],
    ['application/json; a; b', undefined],
    [FORM_TYPE, 'gzip'],
    ['application/json', 'gzip, gzip'],
  ]
  for (const [contentType, contentEncoding] of refused) {
    const error = await errorOf(
      decode({ contentType: parseContentType(contentType), contentEncoding, contentLength: undefined, body: unread() }),
    )
    assert.equal(error?.code, 'unsupported_media_type', `${contentType} ${contentEncoding}`)
  }
  assert.match(
    (await errorOf(decode(source(plain, { type: 'text/xml' }))))?.message ?? '',
    /"text\/xml".*multipart\/form-data, application\/gzip, or application\/json/,
  )
})

test('content, type and encoding of a whole body must agree', async () => {
  for (const [body, sent] of [
    [gzip, {}],
    [plain, { encoding: 'gzip' }],
    [plain, { type: 'application/gzip' }],
    ['', { encoding: 'gzip' }],
    [gzip.subarray(0, 1), { encoding: 'gzip' }],
  ] as const) {
    assert.equal(await codeOf(decode(source(body, sent))), 'invalid_request')
  }
  assert.equal(
    await codeOf(decode(source(gzipSync(gzip), { type: 'application/gzip', encoding: 'gzip' }))),
    'invalid_gzip',
  )
})

test('files of real clients are accepted', async () => {
  const wire: Record<string, Part> = {
    'gzip, as the contract recommends': file(gzip, 'application/gzip'),
    'gzip with a part header too (.NET)': file(gzip, 'application/gzip', 'Content-Encoding: gzip'),
    'plain text (.NET, older)': file(plain, 'text/plain; charset=utf-8'),
    'a blob of a browser': {
      headers: [
        'Content-Disposition: form-data; name="object-batch"; filename="blob"',
        'Content-Type: application/json',
      ],
      content: plain,
    },
    'no type at all (Python)': file(plain),
    'gzip without a type': file(gzip),
    'bytes of no kind': file(gzip, 'application/octet-stream'),
    'JSON of no kind': file(plain, 'application/octet-stream'),
    'JSON encoded as gzip': file(gzip, 'application/json', 'Content-Encoding: gzip'),
  }
  for (const [what, part] of Object.entries(wire)) assert.deepEqual(await texts(form(part)), objects, what)
  const all = await decode(form(...Object.values(wire)))
  assert.deepEqual(
    all.map(({ part, index }) => [part, index]),
    Object.keys(wire).flatMap((_, part) => [
      [part, 0],
      [part, 1],
    ]),
  )
})

test('content, type and headers of a file must agree', async () => {
  const refused: readonly (readonly [Part, StowageErrorCode])[] = [
    [file(plain, 'application/gzip'), 'invalid_request'],
    [file(plain, 'application/json', 'Content-Encoding: gzip'), 'invalid_request'],
    [file(gzip, 'application/json'), 'invalid_request'],
    [file(gzip, 'text/plain'), 'invalid_request'],
    [file(plain, 'image/png'), 'unsupported_media_type'],
    [file(plain, 'application/json; charset=latin1'), 'unsupported_media_type'],
    [file(plain, 'application/json', 'Content-Encoding: br'), 'unsupported_media_type'],
    [file(gzipSync(gzip), 'application/gzip', 'Content-Encoding: gzip'), 'invalid_gzip'],
    [file(''), 'invalid_json'],
  ]
  for (const [part, code] of refused) {
    const error = await errorOf(decode(form(file(plain), part)))
    assert.equal(error?.code, code, part.headers.join())
    assert.match(error?.message ?? '', /part 1/)
  }
})

test('an upload cut at any place is refused, in every form', async () => {
  const twice = multipart([file(gzip, 'application/gzip'), file(plain)])
  const bodies = [
    [Buffer.from(plain), {}, 0],
    [gzip, { encoding: 'gzip' }, 0],
    [twice, FORM, '\r\n'.length],
  ] as const
  for (const [body, sent, optionalBytes] of bodies) {
    assert.ok((await decode(source(body, sent))).length >= 2)
    for (let length = 0; length < body.length - optionalBytes; length++) {
      const error = await errorOf(decode(source(body.subarray(0, length), { ...sent, chunk: 50 })))
      assert.equal(error?.statusCode, 400, `cut at ${length}`)
    }
  }
})

test('a body at the limit is accepted, and one byte more is refused with and without a length', async () => {
  const body = `[{"id":"${'x'.repeat(10_000)}"}]`
  const exact = { requestBytesMax: body.length }
  for (const length of [undefined, body.length]) {
    assert.equal((await decode(source(body, { length, chunk: 999 }), exact)).length, 1)
    assert.equal(
      await codeOf(decode(source(body, { length, chunk: 999 }), { requestBytesMax: body.length - 1 })),
      'request_too_large',
    )
  }
  let pulled = false
  async function* unread(): AsyncGenerator<Uint8Array> {
    pulled = true
    yield Buffer.from(body)
  }
  assert.equal(
    await codeOf(
      decode(
        {
          contentType: parseContentType('application/json'),
          contentEncoding: undefined,
          contentLength: body.length,
          body: unread(),
        },
        { requestBytesMax: 100 },
      ),
    ),
    'request_too_large',
  )
  assert.equal(pulled, false)
})

test('the inflated bytes and the objects of all parts together are bounded', async () => {
  const three = form(file(gzip), file(gzip), file(plain))
  assert.equal((await decode(three, { inflatedBytesMax: 2 * plain.length, objectsMax: 6 })).length, 6)
  assert.equal(
    await codeOf(decode(form(file(gzip), file(gzip)), { inflatedBytesMax: 2 * plain.length - 1 })),
    'inflated_too_large',
  )
  assert.equal(await codeOf(decode(form(file(gzip), file(plain), file(gzip)), { objectsMax: 5 })), 'too_many_objects')
})

test('a fault in the last part fails the upload after the first part was yielded', async () => {
  const damaged = Buffer.from(gzip)
  damaged[gzip.length - 1] ^= 1
  assert.equal(await codeOf(decode(form(file(plain), file(damaged)))), 'invalid_gzip')
  assert.equal(await codeOf(decode(form(file(plain), file('[{},]')))), 'invalid_json')
})

test('one huge chunk is yielded in small batches', async () => {
  const body = Buffer.from(`[${'{"id":"abcdefgh"},'.repeat(100_000)}{}]`)
  const sizes: number[] = []

  const whole = source(body, { chunk: body.length })
  for await (const batch of decodeUpload(whole, DEFAULT_LIMITS, { signal: new AbortController().signal }))
    sizes.push(batch.reduce((sum, { bytes }) => sum + bytes.length, 0))
  assert.ok(sizes.length > 5 && Math.max(...sizes) <= 262_144)
})

/** A body that stalls after its first bytes and says when it was let go. */
function stalling(
  first: Uint8Array,
  onStall: () => void,
): { readonly body: AsyncIterable<Uint8Array>; readonly state: { returned: boolean } } {
  const state = { returned: false }
  let sent = false
  const iterator: AsyncIterator<Uint8Array> = {
    next: () => {
      if (sent) {
        onStall()
        return new Promise(() => undefined)
      }
      sent = true
      return Promise.resolve({ done: false, value: first })
    },
    return: () => {
      state.returned = true
      return Promise.resolve({ done: true, value: undefined })
    },
  }
  return { body: { [Symbol.asyncIterator]: () => iterator }, state }
}

test('an abort ends a stalled body at every stage and releases it', async () => {
  const begun = multipart([file(gzip, 'application/gzip'), file(plain)])
  const beginnings = [
    [Buffer.from(plain.slice(0, 9)), 'application/json'],
    [gzip.subarray(0, 1), 'application/gzip'],
    [gzip.subarray(0, 25), 'application/gzip'],
    ...[3, 40, 150, 180, 300].map((length) => [begun.subarray(0, length), FORM.type] as const),
  ] as const
  for (const [first, contentType] of beginnings) {
    const abort = new AbortController()
    const { body, state } = stalling(first, () => setImmediate(() => abort.abort(new Error('the client is gone'))))
    const ended = errorOf(
      decode(
        { contentType: parseContentType(contentType), contentEncoding: undefined, contentLength: undefined, body },
        {},
        abort.signal,
      ),
    )
    assert.equal((await ended)?.code, 'request_aborted')
    assert.ok(state.returned)
  }
})

test('an abort keeps its own reason, and a failing body is an aborted request', async () => {
  const closing = AbortSignal.abort(new StowageError('closing', 'the service is closing'))
  assert.equal(await codeOf(decode(source(plain), {}, closing)), 'closing')
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('[')
    throw new Error('ECONNRESET')
  }
  const error = await errorOf(
    decode({
      contentType: parseContentType('application/json'),
      contentEncoding: undefined,
      contentLength: undefined,
      body: failing(),
    }),
  )
  assert.equal(error?.code, 'request_aborted')
  assert.match(String(error?.cause), /ECONNRESET/)
})

test('a consumer that stops early and a refusal release the body', async () => {
  const bodies = [
    [Buffer.from(plain), 'application/json'],
    [multipart([file(plain), file(plain)]), FORM.type],
    [Buffer.from('[x'), 'application/json'],
    [gzip, 'application/json'],
  ] as const
  for (const [bytes, contentType] of bodies) {
    let ended = false
    async function* watched(): AsyncGenerator<Uint8Array> {
      try {
        yield* inChunks(bytes)
        yield Buffer.alloc(10)
      } finally {
        ended = true
      }
    }
    try {
      const upload = {
        contentType: parseContentType(contentType),
        contentEncoding: undefined,
        contentLength: undefined,
        body: watched(),
      }
      for await (const batch of decodeUpload(upload, DEFAULT_LIMITS, { signal: new AbortController().signal }))
        if (batch.length > 0) break
    } catch (error) {
      assert.ok(error instanceof StowageError)
    }
    assert.ok(ended)
  }
})
