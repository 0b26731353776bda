import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonFault } from '../../src/inspect/json-fault.ts'
import { injured, randomObjectText, seeded } from './random-json.ts'

const CASES: readonly (readonly [text: string, rule: RegExp, line: number, column: number, at: number])[] = [
  ['{"a":}', /^expected a value, found "}"$/, 1, 6, 5],
  ['{\n  "a": 1,\n  "é": tru\n}', /^a word other than true, false and null$/, 3, 8, 20],
  ["{'a':1}", /^expected a key in quotes, or "}", found "'"$/, 1, 2, 1],
  ['{"a":1,}', /^expected a key in quotes, found "}"$/, 1, 8, 7],
  ['{"a" 1}', /^expected a colon after the key, found "1"$/, 1, 6, 5],
  ['{"a":"two\nlines"}', /^a string holds the control character U\+000A unescaped$/, 1, 10, 9],
  ['{"a":"\\x"}', /^an escape that JSON does not have$/, 1, 7, 6],
  ['{"a":01}', /^expected a comma or the closing bracket, found "1"$/, 1, 7, 6],
  ['{"a":1} {}', /^expected the end of the object, found "{"$/, 1, 9, 8],
  ['{"a":"<b>"}>', /^expected the end of the object, found ">"$/, 1, 12, 11],
  ['{"a":\u0001}', /^expected a value, found the byte 0x01$/, 1, 6, 5],
  ['{', /^the text ends before the object does$/, 1, 2, 1],
  ['\n{"a":[1,', /^the text ends before the object does$/, 2, 9, 9],
  ['{"a":"x', /^the text ends before the object does$/, 1, 8, 7],
  ['{"a":{"b":1}', /^the text ends before the object does$/, 1, 13, 12],
  ['  \n', /^there is nothing but white space$/, 2, 1, 3],
  ['name=House', /^it must be one object, which starts with "\{"$/, 1, 1, 0],
  ['\ufeff{}', /^it must be one object/, 1, 1, 0],
]

test('an error names the broken rule of JSON and the place', () => {
  for (const [text, rule, ...place] of CASES) {
    const fault = jsonFault(Buffer.from(text)) ?? assert.fail(text)
    assert.match(fault.rule, rule, text)
    assert.deepEqual([fault.line, fault.column, fault.at], place, text)
  }
})

test('a fault is found in every text that JSON.parse refuses, and in no other', () => {
  const random = seeded(20_261_121)
  for (let count = 0; count < 2_000; count++) {
    const whole = randomObjectText(random)
    const bytes = count % 3 === 0 ? Buffer.from(whole) : injured(random, Buffer.from(whole))
    const text = bytes.toString('utf8')
    const isObject = /^[ \t\r\n]*\{/.test(text) && isJson(text)
    assert.equal(jsonFault(Buffer.from(text)) === undefined, isObject, JSON.stringify(text))
  }
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
