import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StowageError } from '../../src/errors.ts'
import { checkObjectId, checkProjectId, isObjectId, quoted } from '../../src/object/id.ts'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const codePoint = (value: number): string => String.fromCodePoint(value)
const isInvalidId = (error: unknown): boolean => error instanceof StowageError && error.code === 'invalid_id'

const ACCEPTED = [
  'a',
  '../x',
  '.',
  '..',
  '/',
  '\\',
  'C:\\con',
  'C:',
  'nul',
  'single',
  '%00',
  '%2F',
  ' ',
  'a b',
  '"',
  '{}',
  '__proto__',
  'é',
  'e\u0301',
  '\u00a0',
  '\ufeff',
  '\u2027',
  '\u202a',
  '\ufffd',
  '\u{10ffff}',
  '🏠',
  'x'.repeat(512),
  'é'.repeat(256),
]
const CONTROLS = [
  ...Array.from({ length: 32 }, (_, value) => value),
  ...Array.from({ length: 33 }, (_, value) => 0x7f + value),
  0x2028,
  0x2029,
]
const REFUSED = [
  '',
  'x'.repeat(513),
  'é'.repeat(257),
  'x'.repeat(1_048_576),
  ...CONTROLS.flatMap((value) => [codePoint(value), `a${codePoint(value)}é`, `é${codePoint(value)}`]),
]

test('every id that no rule refuses is stored as its UTF-8 bytes', () => {
  for (const id of ACCEPTED) {
    assert.deepEqual(Buffer.from(checkObjectId(id)), Buffer.from(id, 'utf8'))
    assert.equal(isObjectId(utf8(id)), true, quoted(id))
  }
})

test('control characters, line separators and wrong lengths are refused', () => {
  for (const id of REFUSED) {
    assert.throws(() => checkObjectId(id), isInvalidId, quoted(id))
    assert.equal(isObjectId(utf8(id)), false, quoted(id))
  }
})

test('lone surrogates are refused, as text and as bytes', () => {
  for (const id of ['\ud800', 'a\udfff', '\udc00\ud800', 'é\ud800']) assert.throws(() => checkObjectId(id), isInvalidId)
  for (const bytes of [[0xed, 0xa0, 0x80], [0x61, 0xff], [0xc3], [0xc0, 0xaf], [0xf4, 0x90, 0x80, 0x80]]) {
    assert.equal(isObjectId(Uint8Array.from(bytes)), false)
  }
})

test('isObjectId reads only its range of the buffer', () => {
  const bytes = utf8('\tid\n\u0085é\u2028')
  assert.equal(isObjectId(bytes, 1, 3), true)
  assert.equal(isObjectId(bytes, 6, 8), true)
  assert.equal(isObjectId(bytes, 6, 7), false)
  assert.equal(isObjectId(bytes, 1, 1), false)
  assert.equal(isObjectId(bytes, 0, 3), false)
  assert.equal(isObjectId(bytes, 6, bytes.length), false)
})

test('project ids follow the same rules, with 128 bytes', () => {
  assert.equal(checkProjectId('p'.repeat(128)).length, 128)
  assert.equal(checkProjectId('../..').length, 5)
  for (const id of ['', 'p'.repeat(129), 'a\tb', '\ud800']) assert.throws(() => checkProjectId(id), isInvalidId)
})

test('the message names the broken rule and shows no raw foreign text', () => {
  assert.throws(() => checkObjectId('ab\u0085'), /object id "ab\\u0085" holds U\+0085 at byte 2/)
  assert.throws(
    () => checkProjectId('x'.repeat(1_000)),
    (error: Error) => error.message.length < 200 && /1000 bytes long; it must be 1 to 128/.test(error.message),
  )
  for (const id of REFUSED) {
    assert.throws(
      () => checkObjectId(id),
      (error: Error) => CONTROLS.every((value) => !error.message.includes(codePoint(value))),
    )
  }
})

test('quoted text cannot change the direction or break the line of the text around it', () => {
  assert.equal(
    quoted('a\u202eb\u2066c\u200f\ufeff\u061c\n\u2028"'),
    '"a\\u202eb\\u2066c\\u200f\\ufeff\\u061c\\n\\u2028\\""',
  )
  assert.equal(quoted('Größe 🏠 مبنى'), '"Größe 🏠 مبنى"')
})
