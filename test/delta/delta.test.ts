import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 as zlibCrc32 } from 'node:zlib'
import { createRandom, type Random } from '../../bench/model/random.ts'
import { crc32, crc32OfAscii } from '../../src/delta/crc32.ts'
import { applyDelta, DELTA_CHARACTERS_MAX, DeltaFault, parseDelta } from '../../src/delta/delta.ts'
import { DeltaEncoder } from '../../src/delta/encode.ts'
import { closureText, encodeDelta, hexId } from './support.ts'

const MB = 1_048_576

function roundTrip(base: string, text: string): string | undefined {
  const delta = encodeDelta('base', base, text)
  if (delta !== undefined)
    assert.equal(Buffer.from(applyDelta(parseDelta(delta), Buffer.from(base), 64 * MB)).toString(), text)
  return delta
}

test('the CRC-32 equals that of zlib', () => {
  for (const text of ['', 'a', '123456789', 'ü€😀'.repeat(1_000)])
    assert.equal(crc32(Buffer.from(text)), zlibCrc32(Buffer.from(text)))
})

test('the CRC-32 of characters behind other bytes equals that of zlib', () => {
  for (const [before, text] of [
    ['', ''],
    ['', '123456789'],
    ['commit o s0', ' 12.5'],
  ])
    assert.equal(crc32OfAscii(text, zlibCrc32(before)), zlibCrc32(before + text))
})

test('a changed closure costs little more than its changed ids', () => {
  const delta = roundTrip(
    closureText(20_000, () => false),
    closureText(20_000, (at) => at % 1_000 === 7),
  )
  assert.ok(delta !== undefined && delta.length < 20 * 64, `${delta?.length} characters`)
})

test('insertions, deletions and moves are found', () => {
  const words = Array.from({ length: 2_000 }, (_, at) => `"${hexId(at)}":${at}`)
  const base = `{${words.join()}}`
  const put = words.toSpliced(1_000, 0, '"new":"one"')
  const taken = words.toSpliced(500, 3)
  const moved = [...words.slice(700), ...words.slice(0, 700)]
  for (const changed of [put, taken, moved]) {
    const delta = roundTrip(base, `{${changed.join()}}`)
    assert.ok(delta !== undefined && delta.length < 200, `${delta?.length} characters`)
  }
})

test('texts with little in common have no delta', () => {
  const random = createRandom(1)
  const noise = (length: number): string =>
    Array.from({ length }, () => String.fromCharCode(33 + random.below(90))).join('')
  assert.equal(roundTrip(noise(1_000), noise(1_000)), undefined)
  assert.equal(roundTrip('', noise(300_000)), undefined)
  assert.equal(roundTrip('{}', '{"a":1}'), undefined)
  assert.equal(roundTrip(noise(300_000), ''), undefined)
})

test('characters of every width stay whole, wherever texts differ', () => {
  const pieces = ['a', '\ufeff', 'é', 'è', '€', '₭', '😀', '😁', '\\n', '"', '0123456789abcdefghij']
  const random = createRandom(2)
  for (let round = 0; round < 300; round++) {
    const parts = Array.from({ length: 200 }, () => pieces[random.below(pieces.length)])
    const changed = edited(parts, pieces, random)
    roundTrip(parts.join(''), changed.join(''))
  }
  assert.ok(roundTrip('é'.repeat(200), `${'é'.repeat(100)}è${'é'.repeat(100)}`) !== undefined)
})

test('slices of any size yield the same delta', () => {
  const base = closureText(300, () => false)
  const text = closureText(300, (at) => at % 20 === 3)
  const whole = encodeDelta('base', base, text)
  for (const bytes of [1, 7, 100, 4_096]) assert.equal(encodeDelta('base', base, text, bytes), whole)
  assert.ok(whole !== undefined)
})

test('a large new text is abandoned without reading all of it', () => {
  const text = Buffer.alloc(8 * MB, 'the same in no base, ')
  const encoder = new DeltaEncoder('base', Buffer.from(closureText(100, () => false)), text)
  let slices = 0
  while (!encoder.advance(65_536)) slices++
  assert.ok(slices < 8, `${slices} slices`)
  assert.equal(encoder.take(), undefined)
})

test('a malformed delta is refused with the place', () => {
  const refused: readonly [string, RegExp][] = [
    ['{}', /must be a JSON array/],
    ['[1,', /must be a JSON array: /],
    ['[]', /the id of its base/],
    ['[7,1]', /the id of its base/],
    ['["b"]', /the CRC-32 of the object/],
    ['["b",-1]', /the CRC-32 of the object/],
    ['["b",4294967296]', /the CRC-32 of the object/],
    ['["b",1,0,1]', /in threes/],
    ['["b",1,0.5,1,""]', /element 2 .* a whole number$/],
    ['["b",1,0,-1,""]', /element 3 .* 0 or more/],
    ['["b",1,0,1,2]', /element 4 .* a string/],
    [`["b",1${',0,0,""'.repeat(DELTA_CHARACTERS_MAX / 7)}]`, /may have 1048576 characters/],
  ]
  for (const [json, message] of refused)
    assert.throws(
      () => parseDelta(json),
      (error) => error instanceof DeltaFault && error.kind === 'malformed' && message.test(error.message),
      json.slice(0, 40),
    )
})

test('a delta for another base, or for a text over the limit, yields nothing', () => {
  const base = Buffer.from(closureText(100, () => false))
  const delta = parseDelta(
    encodeDelta(
      'base',
      base.toString(),
      closureText(100, (at) => at === 50),
    ) as string,
  )
  const other = Buffer.from(closureText(100, (at) => at === 3))
  const kindOf =
    (kind: DeltaFault['kind']) =>
    (error: unknown): boolean =>
      error instanceof DeltaFault && error.kind === kind
  assert.throws(() => applyDelta(delta, other, MB), kindOf('base'))
  assert.throws(() => applyDelta(delta, base.subarray(0, 200), MB), kindOf('base'))
  assert.throws(() => applyDelta(delta, base, 1_000), kindOf('size'))
  assert.throws(() => applyDelta({ baseId: 'b', crc32: 0, steps: [-1, 5, ''] }, base, MB), kindOf('base'))
  assert.throws(
    () =>
      applyDelta(
        {
          baseId: 'b',
          crc32: 0,
          steps: Array.from({ length: 300_000 }, (_, at) => [-1_000, 1_000, ''][at % 3]).with(0, 0),
        },
        base,
        10 * MB,
      ),
    kindOf('size'),
  )
})

/** Some parts others, some gone, some more. */
function edited(parts: readonly string[], pieces: readonly string[], random: Random): readonly string[] {
  return parts.flatMap((part) => {
    if (!random.oneIn(20)) return [part]
    return [[], [pieces[random.below(pieces.length)]], [part, pieces[random.below(pieces.length)]]][random.below(3)]
  })
}
