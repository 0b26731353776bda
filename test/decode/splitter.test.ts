import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ElementSplitter, type SplitterOptions } from '../../src/decode/splitter.ts'
import { StowageError } from '../../src/errors.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { processorMs } from '../support/processor.ts'
import { randomFrom } from './support.ts'

function split(text: string | Uint8Array, chunk: number, limits: Partial<SplitterOptions['limits']> = {}): string[] {
  const bytes = Buffer.from(text as string)
  const splitter = new ElementSplitter({ part: 0, limits: { ...DEFAULT_LIMITS, ...limits }, tally: { objects: 0 } })
  const found: string[] = []
  for (let at = 0; at < bytes.length; at += chunk) {
    const piece = Uint8Array.from(bytes.subarray(at, at + chunk))
    for (const element of splitter.push(piece)) {
      assert.equal(element.index, found.length)
      found.push(Buffer.from(element.bytes).toString())
    }
    piece.fill(0x7d)
  }
  splitter.end()
  return found
}

function failure(text: string | Uint8Array, chunk = 7, limits: Partial<SplitterOptions['limits']> = {}): StowageError {
  try {
    split(text, chunk, limits)
  } catch (error) {
    assert.ok(error instanceof StowageError, String(error))
    return error
  }
  return assert.fail(
    `accepted: ${Buffer.from(text as string)
      .toString()
      .slice(0, 100)}`,
  )
}

const random = randomFrom(7)

function pick<T>(choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)]
}

const SPACES = ['', '', '', ' ', '\n', '\t\r\n ']
const STRINGS = [
  '""',
  '"a"',
  '"\\\\"',
  '"\\""',
  '"\\\\\\""',
  '"[{"',
  '"}]"',
  '"\\u005d,"',
  '"é\u2028😀"',
  `"${'x'.repeat(50)}"`,
]

function value(depth: number): string {
  const kind = depth > 4 ? 0 : Math.floor(random() * 4)
  if (kind === 0) return pick([...STRINGS, '0', '-1.5e+3', 'true', 'false', 'null'])
  if (kind === 1) return object(depth + 1)
  return `[${list(() => value(depth + 1))}]`
}

function object(depth: number): string {
  return `{${list(() => `${pick(SPACES)}${pick(STRINGS)}${pick(SPACES)}:${pick(SPACES)}${value(depth)}`)}}`
}

function list(item: () => string): string {
  return Array.from({ length: Math.floor(random() * 4) }, item).join(`${pick(SPACES)},${pick(SPACES)}`)
}

test('generated arrays are split into their elements, regardless of chunks', () => {
  for (let round = 0; round < 150; round++) {
    const elements = Array.from({ length: Math.floor(random() * 6) }, () => object(0))
    const text = `${pick(SPACES)}[${pick(SPACES)}${elements.join(`${pick(SPACES)},${pick(SPACES)}`)}${pick(SPACES)}]${pick(SPACES)}`
    for (const chunk of [1, 2, 3, 5, 64, text.length]) assert.deepEqual(split(text, chunk), elements)
  }
})

/** The slow reference: what `JSON.parse` makes of the whole, against what it makes of the elements. */
function referenceElements(text: string): unknown[] | undefined {
  const whole = parse(text)
  if (!Array.isArray(whole)) return undefined
  return whole.every((element) => typeof element === 'object' && element !== null && !Array.isArray(element))
    ? whole
    : undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function splitElements(text: string, chunk: number): unknown[] | undefined {
  try {
    const elements = split(text, chunk).map(parse)
    return elements.includes(undefined) ? undefined : elements
  } catch (error) {
    assert.ok(error instanceof StowageError, String(error))
    return undefined
  }
}

/** Without the halves of characters that a cut left. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString()
}

test('the splitter and the inspection together accept the same damaged texts as JSON.parse', () => {
  const junk = ['[', ']', '{', '}', ',', ',,', '"', '\\', ' ', '1', 'null', '\u0000', '[]', '{}', '//', "'"]
  let accepted = 0
  for (let round = 0; round < 3_000; round++) {
    let text = `[${Array.from({ length: 1 + Math.floor(random() * 3) }, () => object(2)).join(',')}]`
    for (let damage = 0; damage < 1 + random() * 2; damage++) {
      const at = Math.floor(random() * (text.length + 1))
      text = wellFormed(
        text.slice(0, at) + (random() < 0.5 ? pick(junk) : '') + text.slice(at + Math.floor(random() * 2)),
      )
    }
    const expected = referenceElements(text)
    if (expected !== undefined) accepted++
    assert.deepEqual(splitElements(text, 1 + Math.floor(random() * 20)), expected, text)
  }
  assert.ok(accepted > 50, `only ${accepted} damaged texts were still good`)
})

test('every proper prefix of a text is refused', () => {
  const text = ' [ {"a":[1,{"b":"\\"]"}]} , {"c":"\\\\"} ] '
  assert.equal(split(text, 3).length, 2)
  for (let length = 0; length < text.trimEnd().length; length++)
    assert.equal(failure(text.slice(0, length), 4).code, 'invalid_json')
})

test('an error names the part, the element and the byte', () => {
  assert.match(failure('[{"a":1},{"b":2]').message, /part 0, element 1, byte 15/)
  assert.match(failure('[{}] x').message, /nothing more.*"x".*byte 5/)
  assert.match(failure('[{},]').message, /expected an object.*"\]"/)
  assert.match(failure('[{} {}]').message, /expected "," or "\]"/)
  assert.match(failure('').message, /empty/)
})

test('a byte order mark is refused, and so is a text that is not an array of objects', () => {
  const marked = failure(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('[]')]))
  assert.equal(marked.code, 'invalid_json')
  assert.match(marked.message, /byte order mark/)
  for (const utf16 of ['fffe5b005d00', 'feff005b005d'])
    assert.equal(failure(Buffer.from(utf16, 'hex')).code, 'invalid_json')
  for (const element of ['1', '"a"', 'null', 'true', '-1', '[]', '[[{}]]'])
    assert.equal(failure(`[{},${element}]`).code, 'invalid_object')
  for (const text of ['{}', '1', '"[]"', 'null', '\u00a0[]', '\u000b[]'])
    assert.equal(failure(text).code, 'invalid_json')
})

test('an object at the limit is accepted, and one byte more is refused with its id', () => {
  const sized = (bytes: number): string => `{"id":"abc","x":"${'y'.repeat(bytes - 19)}"}`
  for (const chunk of [1, 13, 1_000]) {
    assert.deepEqual(split(`[ ${sized(100)} ]`, chunk, { objectBytesMax: 100 }), [sized(100)])
    const refused = failure(`[{},${sized(101)}]`, chunk, { objectBytesMax: 100 })
    assert.equal(refused.code, 'object_too_large')
    assert.match(refused.message, /element 1.*100 bytes/)
    if (chunk > 1) assert.match(refused.message, /id "abc"/)
  }
})

test('an endless object stops at its limit, without buffering more', () => {
  const splitter = new ElementSplitter({
    part: 0,
    limits: { ...DEFAULT_LIMITS, objectBytesMax: 1_000_000 },
    tally: { objects: 0 },
  })
  const text = Buffer.alloc(65_536, 'x')
  const before = process.memoryUsage().arrayBuffers
  splitter.push(Buffer.from('[{"id":"big","a":"'))
  for (let pushed = 0; pushed < 960_000; pushed += text.length) assert.equal(splitter.push(text).length, 0)
  assert.throws(() => splitter.push(text), { code: 'object_too_large', message: /"big"/ })
  assert.ok(process.memoryUsage().arrayBuffers - before < 5_000_000)
})

test('nesting up to the limit is accepted, and one level more is refused', () => {
  const nested = (levels: number): string => `[${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}]`
  assert.equal(split(nested(20), 3, { nestingMax: 20 }).length, 1)
  assert.equal(failure(nested(21), 3, { nestingMax: 20 }).code, 'nesting_too_deep')
  assert.equal(failure(`[{"a":${'['.repeat(20)}`, 3, { nestingMax: 20 }).code, 'nesting_too_deep')
})

test('objects up to the limit are accepted across all parts, and one more is refused', () => {
  assert.equal(split(`[${'{},'.repeat(9)}{}]`, 4, { objectsMax: 10 }).length, 10)
  assert.equal(failure(`[${'{},'.repeat(10)}{}]`, 4, { objectsMax: 10 }).code, 'too_many_objects')
  const tally = { objects: 0 }
  const splitter = (part: number): ElementSplitter =>
    new ElementSplitter({ part, limits: { ...DEFAULT_LIMITS, objectsMax: 3 }, tally })
  splitter(0).push(Buffer.from('[{},{}]'))
  assert.throws(() => splitter(1).push(Buffer.from('[{},{}]')), { code: 'too_many_objects' })
})

test('megabytes of opening brackets are refused at once', () => {
  for (const pattern of ['[', '[{"a":', '{"a":']) {
    const bytes = Buffer.alloc(5_000_000, pattern)
    const beganMs = processorMs()
    const { statusCode } = failure(bytes, 262_144)
    assert.equal(statusCode, 400)
    assert.ok(processorMs() - beganMs < 3_000)
  }
})
