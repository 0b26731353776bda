import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateRawSync, gzipSync } from 'node:zlib'
import { Yielder } from '../../src/async/yielder.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { gunzip } from '../../src/decode/gunzip.ts'
import { processorMs } from '../support/processor.ts'
import { codeOf, errorOf, inChunks, randomFrom } from './support.ts'

async function inflate(bytes: Uint8Array, { chunk = 65_536, bytesMax = 100_000_000 } = {}): Promise<Buffer> {
  const pieces: Buffer[] = []
  const options = {
    tally: { inflatedBytes: 0 },
    code: 'inflated_too_large',
    bytesMax,
    what: 'the body',
    yielder: new Yielder(REAL_ENVIRONMENT),
  } as const
  for await (const piece of gunzip(inChunks(bytes, chunk), options)) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

const text = Buffer.from('[{"id":"a","v":1},{"id":"b","v":2}]')

test('gunzip inflates one member and many, regardless of chunks', async () => {
  const random = randomFrom(1)
  const noise = Buffer.from(Array.from({ length: 600_000 }, () => 0x20 + Math.floor(random() * 90)))
  for (const content of [text, Buffer.alloc(1_000_000, 'ab'), noise]) {
    const bytes = gzipSync(content)
    const chunks = bytes.length < 5_000 ? [1, 2, 3, 100] : [4_095, 4_096, 4_097]
    for (const chunk of chunks) assert.ok((await inflate(bytes, { chunk })).equals(content))
  }
  const members = [gzipSync(text.subarray(0, 9)), gzipSync(''), gzipSync(text.subarray(9), { level: 0 })]
  for (const chunk of [1, 5, 1_000]) assert.ok((await inflate(Buffer.concat(members), { chunk })).equals(text))
})

test('gunzip refuses input cut at any place', async () => {
  const bytes = Buffer.concat([gzipSync(text), gzipSync('more')])
  const firstMember = gzipSync(text).length
  for (let length = 0; length < bytes.length; length++) {
    assert.equal(
      await codeOf(inflate(bytes.subarray(0, length), { chunk: 7 })),
      length === firstMember ? undefined : 'invalid_gzip',
      `cut at ${length}`,
    )
  }
})

test('gunzip refuses a wrong checksum, a wrong length, and any flipped bit after the header', async () => {
  const bytes = gzipSync(text)
  for (let at = 10; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes)
    damaged[at] ^= 0x10
    assert.equal(await codeOf(inflate(damaged)), 'invalid_gzip', `byte ${at}`)
  }
  const wrongChecksum = Buffer.from(bytes)
  wrongChecksum[bytes.length - 8] ^= 1
  assert.match((await errorOf(inflate(wrongChecksum)))?.message ?? '', /the body.*incorrect data check/)
})

test('gunzip refuses bytes after the last member, even zeros', async () => {
  const bytes = gzipSync(text)
  for (const tail of [
    Buffer.from([0]),
    Buffer.alloc(9_000),
    Buffer.from('x'),
    Buffer.concat([Buffer.from([0]), bytes]),
    Buffer.from([0x1f]),
    Buffer.from([0x1f, 0x8b, 8]),
  ]) {
    for (const chunk of [1, bytes.length, 65_536]) {
      assert.equal(
        await codeOf(inflate(Buffer.concat([bytes, tail]), { chunk })),
        'invalid_gzip',
        `${tail.length} bytes, chunks of ${chunk}`,
      )
    }
  }
})

test('gunzip refuses text and other compressions', async () => {
  for (const bytes of [text, deflateRawSync(text), Buffer.from([0x1f, 0x8b, 7, 0, 0, 0, 0, 0, 0, 0])]) {
    assert.equal(await codeOf(inflate(bytes)), 'invalid_gzip')
  }
})

test('gunzip sees the end of a content that fills a buffer of output exactly', async () => {
  for (const length of [16_384, 16_384 + 65_536, 16_384 + 65_536 + 262_144]) {
    const content = Buffer.alloc(length, 'abcdefg')
    const bytes = gzipSync(content)
    for (const chunk of [bytes.length - 8, bytes.length]) {
      assert.ok((await inflate(bytes, { chunk })).equals(content), `${length} bytes`)
      assert.ok((await inflate(Buffer.concat([bytes, bytes]), { chunk })).equals(Buffer.concat([content, content])))
      for (const tail of [Buffer.from([0]), Buffer.from('x'), bytes.subarray(0, -1)])
        assert.equal(await codeOf(inflate(Buffer.concat([bytes, tail]), { chunk })), 'invalid_gzip', `${length} bytes`)
      assert.equal(await codeOf(inflate(bytes, { chunk, bytesMax: length - 1 })), 'inflated_too_large')
    }
  }
})

test('gunzip refuses gzip inside gzip', async () => {
  for (const chunk of [1, 65_536]) {
    const refused = await errorOf(inflate(gzipSync(gzipSync(text)), { chunk }))
    assert.equal(refused?.code, 'invalid_gzip')
    assert.match(refused?.message ?? '', /gzip again/)
  }
  const divided = Buffer.concat([gzipSync(Buffer.from([0x1f])), gzipSync(Buffer.from([0x8b, 8]))])
  assert.equal(await codeOf(inflate(divided)), 'invalid_gzip')
})

test('gunzip accepts inflated bytes up to the limit and refuses one more', async () => {
  const bytes = gzipSync(text)
  assert.equal((await inflate(bytes, { bytesMax: text.length })).length, text.length)
  assert.equal(await codeOf(inflate(bytes, { bytesMax: text.length - 1 })), 'inflated_too_large')
})

test('gunzip accepts thousands of members and quickly refuses 100,000', async () => {
  const member = gzipSync('{},')
  const many = (count: number): Buffer => Buffer.concat(Array.from({ length: count }, () => member))
  assert.equal((await inflate(many(5_000))).length, 15_000)
  const beganMs = processorMs()
  assert.equal(await codeOf(inflate(many(100_000))), 'invalid_gzip')
  for (const chunk of [7, 1_000]) assert.equal(await codeOf(inflate(many(10_001), { chunk })), 'invalid_gzip')
  assert.ok(processorMs() - beganMs < 10_000)
})

test('a consumer that stops early ends the source', async () => {
  let ended = false
  async function* endless(): AsyncGenerator<Uint8Array> {
    try {
      yield gzipSync(Buffer.alloc(5_000_000))
      assert.fail('read on')
    } finally {
      ended = true
    }
  }
  const options = {
    tally: { inflatedBytes: 0 },
    code: 'inflated_too_large',
    bytesMax: 100_000_000,
    what: 'the body',
    yielder: new Yielder(REAL_ENVIRONMENT),
  } as const
  for await (const piece of gunzip(endless(), options)) if (piece.length > 0) break
  assert.ok(ended)
})
