import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ObjectScanner, type ScanListener } from '../../src/inspect/json-scanner.ts'
import { ScanFault } from '../../src/inspect/json-tokens.ts'
import { injured, randomObjectText, seeded } from './random-json.ts'

/** Writes down all that the scanner tells, and asks for the value of every member. */
class Recorder implements ScanListener {
  readonly told: string[] = []

  onKey(start: number, end: number, escaped: boolean, depth: number): number {
    return this.told.push(`key ${start}-${end} ${escaped} at ${depth}`)
  }

  onString(asked: number, start: number, end: number, escaped: boolean): void {
    this.told.push(`string ${start}-${end} ${escaped} for ${asked}`)
  }

  onOther(asked: number, start: number, firstByte: number): void {
    this.told.push(`other ${start} ${firstByte} for ${asked}`)
  }

  onBrokenSpace(start: number, end: number): void {
    this.told.push(`space ${start}-${end}`)
  }

  onLineSeparator(start: number, end: number): void {
    this.told.push(`separator ${start}-${end}`)
  }
}

/** What is told, and how it ends, when the scanner stops every `stepBytes`. */
function scanned(bytes: Uint8Array, stepBytes: number, nestingMax = 1_000): string[] {
  const recorder = new Recorder()
  const scanner = new ObjectScanner(recorder, nestingMax)
  scanner.start(bytes)
  try {
    for (let ended = false; !ended;) {
      const at = scanner.at
      ended = scanner.scan(at + stepBytes)
      assert.ok(ended || scanner.at > at, 'it goes on')
    }
    return [...recorder.told, 'ended']
  } catch (error) {
    if (!(error instanceof ScanFault)) throw error
    return [...recorder.told, `${error.code} ${error.at} ${error.message}`]
  }
}

function fault(text: string, nestingMax?: number): string | undefined {
  return scanned(Buffer.from(text), text.length, nestingMax).at(-1)
}

test('a pause at any byte changes no result', () => {
  const random = seeded(3)
  for (let i = 0; i < 2_000; i++) {
    const text = Buffer.from(randomObjectText(random))
    const hurt = injured(random, text)
    const bytes = i % 2 === 0 && hurt.length > 1 && hurt[0] === 0x7b && hurt.at(-1) === 0x7d ? hurt : text
    const whole = scanned(bytes, bytes.length)
    for (const stepBytes of [1, 2, 7])
      assert.deepEqual(scanned(bytes, stepBytes), whole, JSON.stringify(bytes.toString('latin1')))
  }
})

test('a fault has the byte that breaks the rule', () => {
  const faults: readonly (readonly [string, number])[] = [
    ['{"a":01}', 6],
    ['{"a":-}', 6],
    ['{"a":1.}', 7],
    ['{"a":1e}', 7],
    ['{"a":1e+}', 8],
    ['{"a":.5}', 5],
    ['{"a":+1}', 5],
    ['{"a":NaN}', 5],
    ['{"a":tru}', 5],
    ['{"a":nulL}', 5],
    ['{"a":"\t"}', 6],
    ['{"a":"\\u00g0"}', 6],
    ['{"a":"\\x"}', 6],
    ['{"a"}', 4],
    ['{"a":}', 5],
    ['{"a" 1}', 5],
    ['{a:1}', 1],
    ['{,}', 1],
    ['{"a":1,}', 7],
    ['{"a":1 "b":2}', 7],
    ['{"a":[1,]}', 8],
    ['{"a":[1}', 7],
    ['{"a":{]}', 6],
    ['{}}', 2],
    ['{} {}', 3],
    ['{"a":[{}', 8],
    ['{"a":"b}', 8],
    ['{"a":1\v}', 6],
    ["{'a':1}", 1],
    ['{"a":1}//}', 7],
    ['{"\\ud8"}', 2],
  ]
  for (const [text, at] of faults) assert.match(String(fault(text)), new RegExp(`^invalid_json ${at} .`), text)
})

test('levels are counted, including the object itself', () => {
  for (const [opening, closing] of [
    ['[', ']'],
    ['{"a":', '}'],
  ]) {
    const nested = (levels: number): string => `{"a":${opening.repeat(levels - 1)}1${closing.repeat(levels - 1)}}`
    assert.equal(fault(nested(1_000)), 'ended')
    assert.match(String(fault(nested(1_001))), /^nesting_too_deep \d+ .*limit of 1000 levels/)
    assert.match(String(fault(nested(3), 2)), /^nesting_too_deep/)
  }
  assert.equal(fault('{}', 1), 'ended')
  assert.equal(fault('{"a":[[],[],{}]}', 3), 'ended')
  const deep = 100_000
  assert.equal(fault(`{"a":${'['.repeat(deep - 1)}${']'.repeat(deep - 1)}}`, deep), 'ended')
})
