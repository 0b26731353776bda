import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constants, createDeflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib'
import { ForeignFragments } from '../../src/compression/foreign-fragments.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { fragment } from '../support/ready-blocks.ts'

const SECRET = Buffer.from('0123456789abcdef')
const ENVIRONMENTS = [REAL_ENVIRONMENT, { ...REAL_ENVIRONMENT, usesThreadPool: false }]

const FRAGMENTS = ENVIRONMENTS.map((environment) => new ForeignFragments({ environment, secret: SECRET }))

/** Inflated in each way: alone, or among others into one buffer. */
const WAYS: readonly ((stored: Uint8Array, rawBytes: number) => Promise<string>)[] = [
  async (stored, rawBytes) => {
    const raw = new Uint8Array(rawBytes)
    await Promise.resolve()
    FRAGMENTS[0].inflateInto(raw, stored)
    return Buffer.from(raw).toString('latin1')
  },
  ...FRAGMENTS.map(
    (fragments) => async (stored: Uint8Array, rawBytes: number) =>
      Buffer.from(await fragments.inflateLong(stored, rawBytes)).toString('latin1'),
  ),
]

/** The first bits of a block of fixed codes (RFC 1951, 3.2.6), packed into bytes. */
function packed(bits: string): Uint8Array {
  assert.equal(bits.length % 8, 0)
  return Uint8Array.from(bits.match(/.{8}/g) ?? [], (byte) => Number.parseInt(byte.split('').toReversed().join(''), 2))
}

function literal(character: string): string {
  return (0x30 + character.charCodeAt(0)).toString(2).padStart(8, '0')
}

test('a true fragment inflates to its bytes', async () => {
  for (const inflated of WAYS)
    for (const text of ['a', 'text '.repeat(5_000), 'text '.repeat(13_107)])
      assert.equal(await inflated(fragment(Buffer.from(text)), text.length), text)
})

test('a fragment whose last bits make a symbol of the usual end is refused', async () => {
  // A final block that lacks the last three bits of "6" and its end; 03 00 brings both.
  const forged = packed(`110${literal('a')}${literal('b')}${literal('6').slice(0, 5)}`)
  assert.equal(inflateRawSync(Buffer.concat([forged, Buffer.of(3, 0)])).toString('latin1'), 'ab6')
  for (const inflated of WAYS) await assert.rejects(inflated(forged, 3), { code: 'corrupt_data' })
})

test('a block that is left open to copy what follows is refused', async () => {
  const text = 'open'
  const header = Buffer.from([1, 0, 0, 0, 0])
  const lengthBytes = text.length + 5 + SECRET.length
  header.writeUInt16LE(lengthBytes, 1)
  header.writeUInt16LE(~lengthBytes & 0xffff, 3)
  const forged = Buffer.concat([header, Buffer.from(text)])
  for (const inflated of WAYS)
    for (const rawBytes of [text.length, text.length + 5])
      await assert.rejects(inflated(forged, rawBytes), { code: 'corrupt_data' })
})

test('a fragment that refers to what lies before it is refused, also behind one that would complete it', async () => {
  const text = Buffer.from('this text is twice here')
  const stream = createDeflateRaw()
  const parts: Buffer[] = []
  stream.on('data', (part: Buffer) => parts.push(part))
  const flushed = async (): Promise<Buffer> => {
    await new Promise<void>((resolve) => stream.flush(constants.Z_SYNC_FLUSH, resolve))
    return Buffer.concat(parts.splice(0))
  }
  stream.write(text)
  const first = await flushed()
  stream.write(text)
  const second = await flushed()
  assert.ok(second.length < first.length)
  for (const inflated of WAYS) {
    assert.equal(await inflated(first, text.length), text.toString())
    await assert.rejects(inflated(second, text.length), { code: 'corrupt_data' })
    assert.equal(await inflated(first, text.length), text.toString())
  }
})

test('a fragment that inflates to less or more, ends the stream or is cut short is refused', async () => {
  const text = Buffer.from('text '.repeat(100))
  const whole = fragment(text)
  const bomb = fragment(Buffer.alloc(1_048_576))
  for (const inflated of WAYS) {
    await assert.rejects(inflated(whole, text.length - 1), { code: 'corrupt_data' })
    await assert.rejects(inflated(whole, text.length + 1), { code: 'corrupt_data' })
    await assert.rejects(inflated(deflateRawSync(text), text.length), { code: 'corrupt_data' })
    await assert.rejects(inflated(Buffer.concat([deflateRawSync(text), whole]), text.length), { code: 'corrupt_data' })
    await assert.rejects(inflated(whole.subarray(0, -1), text.length), { code: 'corrupt_data' })
    await assert.rejects(inflated(bomb, 16_384), { code: 'corrupt_data' })
    assert.equal(await inflated(whole, text.length), text.toString())
  }
})
