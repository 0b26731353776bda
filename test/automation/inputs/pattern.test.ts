import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { compilePattern, PatternUnsupported } from '../../../src/automation/author/inputs/pattern.ts'
import { processorMs } from '../../support/processor.ts'
import { propertyRuns } from '../../support/runs.ts'

/**
 * Characters on which the two engines, left to themselves, disagree: line ends, white space, marks of syntax, pairs of
 * surrogates.
 */
const CHARACTERS = [
  'a',
  'b',
  'Z',
  'é',
  '0',
  '9',
  '_',
  '-',
  '^',
  ']',
  '[',
  ' ',
  '\t',
  '\n',
  '\v',
  '\f',
  '\r',
  '\u00a0',
  '\u2003',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\u0001',
  '\u{1f600}',
  '\u{10ffff}',
  'λ',
  '&',
  '~',
  '$',
  '.',
  '\\',
]
const CLASS_PARTS = [
  'a',
  'a-c',
  '0-9',
  '\\d',
  '\\D',
  '\\w',
  '\\W',
  '\\s',
  '\\S',
  '\\-',
  '\\]',
  '\\\\',
  '[',
  '&&',
  '~',
  '^',
  '.',
  '$',
  '\\b',
  '\\n',
  '\\u{1f600}',
  '\\ud83d\\ude00',
  '\\p{L}',
  '\\P{L}',
  '\\p{Script=Greek}',
  '\\cA',
  '\\x41-\\x5a',
  ':',
]
const ATOMS = [
  'a',
  'b',
  'Z',
  '0',
  'é',
  '-',
  '_',
  ' ',
  '&',
  '.',
  '\\d',
  '\\D',
  '\\w',
  '\\W',
  '\\s',
  '\\S',
  '\\t',
  '\\n',
  '\\v',
  '\\0',
  '\\x61',
  '\\u0061',
  '\\u{1f600}',
  '\\ud83d\\ude00',
  '\\cA',
  '\\p{Lu}',
  '\\p{gc=Nd}',
  '\\P{sc=Greek}',
  '\\.',
  '\\/',
  '\\$',
  '\\\\',
  '[]',
  '[^]',
  '\u{1f600}',
]

const classes = fc
  .tuple(fc.boolean(), fc.array(fc.constantFrom(...CLASS_PARTS), { minLength: 1, maxLength: 4 }))
  .map(([negated, parts]) => `[${negated ? '^' : ''}${parts.join('')}]`)
const patterns = fc.letrec<{ pattern: string; term: string }>((tie) => ({
  pattern: fc.array(tie('term'), { minLength: 1, maxLength: 4 }).map((terms) => terms.join('')),
  term: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom(...ATOMS),
    classes,
    fc.constantFrom('^', '$', '\\b', '\\B'),
    fc
      .tuple(
        fc.oneof(fc.constantFrom(...ATOMS), classes),
        fc.constantFrom('*', '+', '?', '{2}', '{0,2}', '{1,}', '*?', '+?'),
      )
      .map((parts) => parts.join('')),
    fc
      .tuple(fc.constantFrom('(', '(?:', '(?<n>'), tie('pattern'), fc.constantFrom(')', ')*', ')+', ')?', ')|'))
      .map((parts) => parts.join('')),
  ),
})).pattern
const texts = fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 6 }).map((characters) => characters.join(''))

/**
 * The host's own regular expression. V8 also searches inside of surrogate pairs: `/\B/u` matches in the middle of one,
 * and `/[^a]$/u` does not find U+1F600 with Node 26. So the search is part of the pattern, by code points.
 */
function nativePattern(pattern: string): RegExp | undefined {
  try {
    void new RegExp(pattern, 'u')
    return new RegExp(`^[^]*?(?:${pattern})`, 'u')
  } catch {
    return undefined
  }
}

test('a pattern matches the same texts as an ECMAScript regular expression with the flag u', () => {
  fc.assert(
    fc.property(patterns, fc.array(texts, { minLength: 5, maxLength: 5 }), (pattern, samples) => {
      const native = nativePattern(pattern)
      fc.pre(native !== undefined)
      const compiled = compilePattern(pattern)
      for (const sample of samples)
        assert.equal(compiled.test(sample), native.test(sample), JSON.stringify([pattern, sample]))
    }),
    { numRuns: propertyRuns(250) },
  )
})

test('every character class contains the same characters', () => {
  for (const pattern of [
    '^.$',
    '^\\s$',
    '^\\S$',
    '^[\\s]$',
    '^[^\\S]$',
    '^[^\\s]$',
    '^\\w$',
    '^\\d$',
    '^[^]$',
    '[]',
    '^[\\W_]$',
    '^[a\\-z]$',
    '^[\\b]$',
    '^[[:alpha:]$',
  ]) {
    const native = nativePattern(pattern)
    assert.ok(native)
    const compiled = compilePattern(pattern)
    const differing: number[] = []
    for (let point = 0; point <= 0x10ffff; point += point < 0x3100 || (point > 0xfd00 && point < 0x10010) ? 1 : 997) {
      const text = String.fromCodePoint(point)
      if (compiled.test(text) !== native.test(text)) differing.push(point)
    }
    assert.deepEqual(differing, [], pattern)
  }
})

test('a character above U+FFFF is one character, even at the end', () => {
  const last = '\u{10ffff}'
  for (const pattern of [
    '[^a]$',
    '^[^a]$',
    '^.$',
    '^\\S$',
    '^\\W$',
    '^\\D$',
    '^[^]$',
    '^[^\\s]$',
    '^\\P{L}$',
    '\\u{10ffff}',
  ])
    assert.equal(compilePattern(pattern).test(last), true, pattern)
  for (const pattern of ['^\\s$', '^\\w$', '^\\d$', '[]', '^\\p{L}$', '^[^\\u{10ffff}]$'])
    assert.equal(compilePattern(pattern).test(last), false, pattern)
})

test('patterns that take other engines ages end at once', () => {
  const beganMs = processorMs()
  for (const pattern of [
    '^(a|a)*$',
    '(a+)+$',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
    '(x+x+)+y',
    '^(a?){500}a{500}$',
    '[a-q][^u-z]{500}x$',
    '(?:(?:a|b)*a(?:a|b){999}){1}z?$',
    '(a?){800}a{800}$',
  ]) {
    compilePattern(pattern).test(`${'a'.repeat(4_095)}!`)
  }
  assert.ok(processorMs() - beganMs < 20_000)
})

test('a pattern that cannot run in linear time is refused with the reason', () => {
  const reasons: Readonly<Record<string, RegExp>> = {
    'a(?=b)': /lookaround/,
    'a(?!b)': /lookaround/,
    '(?<=a)b': /lookaround/,
    '(?<!a)b': /lookaround/,
    '(a)\\1': /refers back/,
    '(?<n>a)\\k<n>': /refers back/,
    'a{1001}': /1,000 times/,
    '((a{100}){100}){100}': /1,000 times/,
    '\\p{Script_Extensions=Greek}': /General_Category and Script/,
    '(': /ECMAScript/,
    '\\-': /needless escapes/,
    '(?P<n>a)': /ECMAScript/,
    'a**': /ECMAScript/,
    '\\Aa\\z': /ECMAScript/,
  }
  for (const [pattern, message] of Object.entries(reasons)) {
    assert.throws(
      () => compilePattern(pattern),
      (error) => error instanceof PatternUnsupported && message.test(error.message),
      pattern,
    )
  }
})
