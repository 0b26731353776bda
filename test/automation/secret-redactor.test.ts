import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { SecretRedactor } from '../../src/automation/runtime/index.ts'
import { processorMs } from '../support/processor.ts'

const SECRET = 'pä$$ "w/ord\\+1\n'
const redactor = new SecretRedactor([SECRET, 'abc', 'plainkey'])

test('redaction removes every spelling of a secret', () => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const spellings = [
    SECRET,
    JSON.stringify(SECRET).slice(1, -1),
    encodeURIComponent(SECRET),
    encodeURIComponent(SECRET).toLowerCase(),
    encodeURI(SECRET),
    Array.from(SECRET, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
    new URLSearchParams({ x: SECRET }).toString().slice(2),
    Buffer.from(SECRET).toString('hex'),
    Buffer.from(SECRET).toString('hex').toUpperCase(),
  ]
  for (const spelling of spellings)
    assert.equal(redactor.text(`before ${spelling} after ${spelling}`), 'before ****** after ******')
  for (const text of ['plainkey', 'u:plainkey', 'us:plainkey', 'use:plainkey', 'user:plainkey:realm']) {
    for (const form of [base64(text), Buffer.from(text).toString('base64url')]) {
      const shown = redactor.text(`Basic ${form}`)
      assert.match(shown, /\*{6}/, text)
      assert.doesNotMatch(
        Buffer.from(shown.slice(6).replaceAll('*', ''), 'base64').toString('latin1'),
        /plainke|lainkey/,
      )
    }
  }
})

test('redaction removes a secret in other letters and backwards', () => {
  for (const text of [
    'PLAINKEY',
    'Plainkey',
    'yeknialp',
    'YEKNIALP',
    Array.from(SECRET).toReversed().join('').toUpperCase(),
  ])
    assert.equal(redactor.text(`<${text}>`), '<******>')
  const [begin, end] = ['plain', 'key']
  assert.equal(redactor.text(begin) + redactor.text(end), 'plainkey', 'what the documents say of two outputs')
})

test('redaction removes a secret from values that Node prints', () => {
  for (const secret of [`it's "all" \`here\``, 'a\u001b[1mb\u007fc', "back\\slash's"]) {
    const shown = inspect(
      { secret, list: [secret], error: Object.assign(new Error('x'), { secret }) },
      { breakLength: Infinity },
    )
    const clean = new SecretRedactor([secret]).text(shown)
    assert.equal(clean.match(/\*{6}/g)?.length, 3, clean)
  }
})

test('redaction keeps other text and ignores secrets that are too short', () => {
  for (const text of ['', 'abc', 'plainke', 'a level of 3 % and "quotes"', 'cGxhaW4='])
    assert.equal(redactor.text(text), text)
  assert.equal(new SecretRedactor([]).text('plainkey'), 'plainkey')
})

test('redaction covers every text in a value, including names', () => {
  const value = { plainkey: ['plainkey', 7, null, true, { deep: 'a plainkey here' }] }
  assert.deepEqual(redactor.json(value), { '******': ['******', 7, null, true, { deep: 'a ****** here' }] })
})

test('redaction removes each line of a multi-line key', () => {
  const lines = Array.from({ length: 12 }, (_, n) =>
    Buffer.from(`line ${n} of a key, which is long`).toString('base64'),
  )
  const key = new SecretRedactor([['-----BEGIN KEY-----', ...lines, '{', '-----END KEY-----'].join('\n')])
  for (const line of [lines[0], lines[11], Buffer.from(lines[5]).toString('hex')])
    assert.equal(key.text(`it is ${line}.`), 'it is ******.')
  assert.equal(key.text('{ a: 1 }'), '{ a: 1 }')
})

test('redaction removes half of a long secret in every spelling', () => {
  const token = Array.from({ length: 100 }, (_, n) => `${n}/x`).join('.')
  const half = token.slice(0, Math.ceil(token.length / Math.ceil(token.length / 200)))
  const long = new SecretRedactor([token])
  for (const text of [
    token,
    half,
    encodeURIComponent(half),
    Buffer.from(half).toString('hex'),
    Buffer.from(half).toString('base64'),
    half.replaceAll('/', '\\/'),
  ]) {
    assert.match(long.text(`<${text}>`), /^<\*{6}.{0,4}>$/)
  }
})

test('redaction of long texts and secrets is fast', () => {
  const beganMs = processorMs()
  const long = new SecretRedactor(['%'.repeat(2_000), 'a'.repeat(10_000), '\\'.repeat(2_000)])
  for (const text of ['%'.repeat(100_000), 'a'.repeat(9_999), '%25'.repeat(30_000), '\\'.repeat(50_000)])
    long.text(text)
  assert.ok(processorMs() - beganMs < 5_000)
})

test('redaction of texts that nearly contain a long secret is fast', () => {
  const long = new SecretRedactor(['0123456789abcdef'.repeat(1_000), 'Zm9v+YmFy/'.repeat(300)])
  const startedMs = performance.now()
  for (const word of ['a'.repeat(390), 'Zm9v+YmFy/'.repeat(19), '%41', '\\u0041'])
    long.text(`${word} `.repeat(Math.ceil(200_000 / word.length)))
  assert.ok(performance.now() - startedMs < 5_000)
})
