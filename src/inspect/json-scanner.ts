import { escapeEnd, literalEnd, ScanFault } from './json-tokens.ts'

export { ScanFault } from './json-tokens.ts'

/**
 * Receives the scanner's findings in an object. Positions are bytes of the scanned text; strings come without their
 * quotes.
 */
export interface ScanListener {
  /**
   * The key of a member of an object at `depth` (1: the whole). A return value other than 0 requests the member's value
   * under that number.
   */
  onKey(start: number, end: number, escaped: boolean, depth: number): number
  onString(asked: number, start: number, end: number, escaped: boolean): void
  /** A value that is not a string, by its first byte. */
  onOther(asked: number, start: number, firstByte: number): void
  /** A run of white space between tokens that holds CR, LF or TAB. */
  onBrokenSpace(start: number, end: number): void
  /** U+0085, U+2028 or U+2029, unescaped inside a string. */
  onLineSeparator(start: number, end: number): void
}

const FIRST_KEY = 0
const NEXT_KEY = 1
const COLON = 2
const VALUE = 3
const FIRST_ELEMENT = 4
const AFTER_VALUE = 5
const IN_KEY = 6
const IN_TEXT = 7
const ENDED = 8

const EXPECTED: readonly string[] = [
  'a key in quotes, or "}"',
  'a key in quotes',
  'a colon after the key',
  'a value',
  'a value, or "]"',
  'a comma or the closing bracket',
  '',
  '',
  'the end of the object',
]

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const SPACE = 0x20

const LITERALS: ReadonlyMap<number, Uint8Array> = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]),
)

const PLAIN = 0
const NEVER_PLAIN = 1
const SEPARATOR_LEAD = 2

/**
 * The class of each byte inside a string: all but quotes, backslashes, controls and the first bytes of U+0085, U+2028
 * and U+2029 are skipped.
 */
const STRING_BYTES: Uint8Array = new Uint8Array(256).fill(NEVER_PLAIN, 0, 0x20)
STRING_BYTES[QUOTE] = STRING_BYTES[BACKSLASH] = NEVER_PLAIN
STRING_BYTES[0xc2] = STRING_BYTES[0xe2] = SEPARATOR_LEAD

const OBJECT = 0
const ARRAY = 1

/**
 * Validates one JSON object (RFC 8259) over its bytes and reports its findings to a listener, without building values.
 * It needs no recursion, and it can stop at any point and continue later. The text must be UTF-8 and must start with
 * `{` and end with `}`: only a string can extend past that last byte, so only strings compare their position with the
 * end.
 */
export class ObjectScanner {
  readonly #listener: ScanListener
  readonly #nestingMax: number
  /** At each depth, whether an array or an object is open there. */
  #open: Uint8Array = new Uint8Array(64)
  #bytes: Uint8Array = new Uint8Array(0)
  #at = 0
  #stop = 0
  #depth = 0
  #state: number = ENDED
  #stringStart = 0
  #escaped = false
  #asked = 0

  constructor(listener: ScanListener, nestingMax: number) {
    this.#listener = listener
    this.#nestingMax = nestingMax
  }

  start(bytes: Uint8Array): void {
    this.#bytes = bytes
    this.#at = 1
    this.#depth = 1
    this.#open[1] = OBJECT
    this.#state = FIRST_KEY
  }

  get at(): number {
    return this.#at
  }

  /**
   * Continues up to `until` or a few bytes beyond. True once the whole text is known to be one object; throws
   * `ScanFault` if it is not.
   */
  scan(until: number): boolean {
    const bytes = this.#bytes
    const stop = Math.min(until, bytes.length)
    this.#stop = stop
    let at = this.#at
    while (at < stop) {
      const state = this.#state
      if (state === IN_TEXT || state === IN_KEY) {
        at = this.#string(at, stop)
        continue
      }
      const byte = bytes[at]
      if (byte <= SPACE) at = this.#space(at, byte)
      else if (state === AFTER_VALUE) at = this.#afterValue(at, byte)
      else if (state === VALUE) at = this.#value(at, byte)
      else if (byte === QUOTE && state <= NEXT_KEY) at = this.#openString(at, IN_KEY)
      else if (byte === 0x3a && state === COLON) {
        this.#state = VALUE
        at++
      } else if (byte === CLOSE_OBJECT && state === FIRST_KEY) at = this.#close(at)
      else if (state === FIRST_ELEMENT) at = byte === CLOSE_ARRAY ? this.#close(at) : this.#value(at, byte)
      else throw unexpected(byte, state, at)
    }
    this.#at = at
    if (at < bytes.length) return false
    if (this.#state !== ENDED) throw new ScanFault('invalid_json', 'the text ends before the object does', bytes.length)
    return true
  }

  #value(at: number, byte: number): number {
    if (byte === QUOTE) return this.#openString(at, IN_TEXT)
    if (this.#asked !== 0) {
      this.#listener.onOther(this.#asked, at, byte)
      this.#asked = 0
    }
    if (byte === OPEN_OBJECT) return this.#push(at, OBJECT, FIRST_KEY)
    if (byte === OPEN_ARRAY) return this.#push(at, ARRAY, FIRST_ELEMENT)
    const state = this.#state
    this.#state = AFTER_VALUE
    if (byte <= NINE && (byte >= ZERO || byte === MINUS)) return this.#number(at)
    const literal = LITERALS.get(byte)
    if (literal === undefined) throw unexpected(byte, state, at)
    return literalEnd(this.#bytes, at, literal)
  }

  /** Numbers mostly come in lists, so this continues with the ones that follow at once. */
  #number(from: number): number {
    const bytes = this.#bytes
    let at = numberEnd(bytes, from)
    if (this.#open[this.#depth] === OBJECT) return at
    while (
      at < this.#stop &&
      bytes[at] === COMMA &&
      (bytes[at + 1] === MINUS || (bytes[at + 1] >= ZERO && bytes[at + 1] <= NINE))
    )
      at = numberEnd(bytes, at + 1)
    return at
  }

  #afterValue(at: number, byte: number): number {
    const kind = this.#open[this.#depth]
    if (byte === COMMA) {
      this.#state = kind === OBJECT ? NEXT_KEY : VALUE
      return at + 1
    }
    if (byte === (kind === OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY)) return this.#close(at)
    throw unexpected(byte, AFTER_VALUE, at)
  }

  #push(at: number, kind: number, state: number): number {
    const depth = this.#depth + 1
    if (depth > this.#nestingMax)
      throw new ScanFault(
        'nesting_too_deep',
        `arrays and objects are nested deeper than the limit of ${this.#nestingMax} levels`,
        at,
      )
    if (depth >= this.#open.length) this.#open = grown(this.#open)
    this.#open[depth] = kind
    this.#depth = depth
    this.#state = state
    return at + 1
  }

  #close(at: number): number {
    this.#depth--
    this.#state = this.#depth === 0 ? ENDED : AFTER_VALUE
    return at + 1
  }

  #openString(at: number, state: number): number {
    this.#state = state
    this.#stringStart = at + 1
    this.#escaped = false
    return at + 1
  }

  /** From inside a string to after its closing quote, or to `stop` if that comes first. */
  #string(from: number, stop: number): number {
    const bytes = this.#bytes
    let at = from
    for (;;) {
      while (
        at < stop - 3 &&
        (STRING_BYTES[bytes[at]] |
          STRING_BYTES[bytes[at + 1]] |
          STRING_BYTES[bytes[at + 2]] |
          STRING_BYTES[bytes[at + 3]]) ===
          PLAIN
      )
        at += 4
      while (at < stop && STRING_BYTES[bytes[at]] === PLAIN) at++
      if (at >= stop) return at
      const byte = bytes[at]
      if (byte === QUOTE) break
      if (byte === BACKSLASH) {
        this.#escaped = true
        at = escapeEnd(bytes, at)
      } else if (STRING_BYTES[byte] === SEPARATOR_LEAD) at = this.#separator(at)
      else throw new ScanFault('invalid_json', `a string holds the control character U+${hex4(byte)} unescaped`, at)
    }
    this.#endString(at)
    return at + 1
  }

  #endString(end: number): void {
    if (this.#state === IN_KEY) {
      this.#asked = this.#listener.onKey(this.#stringStart, end, this.#escaped, this.#depth)
      this.#state = COLON
      return
    }
    this.#state = AFTER_VALUE
    if (this.#asked === 0) return
    this.#listener.onString(this.#asked, this.#stringStart, end, this.#escaped)
    this.#asked = 0
  }

  /** Behind the character that starts here with 0xC2 or 0xE2. */
  #separator(at: number): number {
    const bytes = this.#bytes
    const width = bytes[at] === 0xc2 ? 2 : 3
    const breaksLines = width === 2 ? bytes[at + 1] === 0x85 : bytes[at + 1] === 0x80 && (bytes[at + 2] & 0xfe) === 0xa8
    if (breaksLines) this.#listener.onLineSeparator(at, at + width)
    return at + width
  }

  #space(start: number, first: number): number {
    const bytes = this.#bytes
    let broken = false
    let at = start
    for (let byte = first; byte <= SPACE; byte = bytes[++at]) {
      if (byte === SPACE) continue
      if (byte !== 0x0a && byte !== 0x0d && byte !== 0x09) throw unexpected(byte, this.#state, at)
      broken = true
    }
    if (broken) this.#listener.onBrokenSpace(start, at)
    return at
  }
}

/**
 * The end of the number that starts at `from`. It is in this file because the engine inlines it only here: a third of
 * the speed on lists of numbers.
 */
function numberEnd(bytes: Uint8Array, from: number): number {
  let at = from
  if (bytes[at] === MINUS) at++
  at = bytes[at] === ZERO ? at + 1 : digitsEnd(bytes, at)
  if (bytes[at] === DOT) at = digitsEnd(bytes, at + 1)
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    at++
    if (bytes[at] === 0x2b || bytes[at] === MINUS) at++
    at = digitsEnd(bytes, at)
  }
  return at
}

function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from
  for (let byte = bytes[at]; byte >= ZERO && byte <= NINE; byte = bytes[++at]);
  if (at === from) throw new ScanFault('invalid_json', 'a number lacks a digit', at)
  return at
}

function unexpected(byte: number, state: number, at: number): ScanFault {
  const found =
    byte > SPACE && byte < 0x7f
      ? JSON.stringify(String.fromCharCode(byte))
      : `the byte 0x${byte.toString(16).padStart(2, '0')}`
  return new ScanFault('invalid_json', `expected ${EXPECTED[state]}, found ${found}`, at)
}

function hex4(value: number): string {
  return value.toString(16).toUpperCase().padStart(4, '0')
}

function grown(array: Uint8Array): Uint8Array {
  const larger = new Uint8Array(array.length * 2)
  larger.set(array)
  return larger
}
