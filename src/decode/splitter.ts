import { StowageError } from '../errors.ts'
import { type Limits, tooLarge } from '../limits.ts'
import type { Element } from '../object/element.ts'
import { quoted } from '../object/id.ts'
import { GrowingBuffer } from './growing-buffer.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const ARRAY_OPEN = 0x5b
const ARRAY_CLOSE = 0x5d
const OBJECT_OPEN = 0x7b
const OBJECT_CLOSE = 0x7d
/** In ASCII a closing bracket is its opening one plus two. */
const CLOSE_FROM_OPEN = 2

/** Bytes that matter outside strings. */
const STRUCTURE = byteTable(QUOTE, ARRAY_OPEN, ARRAY_CLOSE, OBJECT_OPEN, OBJECT_CLOSE)
/** Bytes that matter inside strings. */
const STRING_STOP = byteTable(QUOTE, BACKSLASH)
/** Elements that exist as objects at a time: a chunk can hold a hundred thousand. */
const ELEMENTS_AT_ONCE = 1_024
/** Letters outside strings are those of `true`, `false` and `null`, and of exponents. */
const LETTERS_IN_A_ROW = 5
const NO_CHUNK = new Uint8Array(0)
const NO_WORDS = new DataView(NO_CHUNK.buffer)
const WHITE_SPACE = byteTable(0x20, 0x09, 0x0a, 0x0d)

/** Of an element that is too large, how much is searched for its id. */
const ID_SEARCH_BYTES = 2_048
/** An `"id"` before any nested value; a quote inside a string is escaped, so it cannot look like one. */
const VISIBLE_ID = /^\{[^{[]*?"id"\s*:\s*"([^"\\]+)"/

/** The state of the splitter between elements. */
type Place = 'before-array' | 'after-open' | 'after-element' | 'after-comma' | 'after-array'

const EXPECTED: Record<Place, string> = {
  'before-array': '"[", the start of the array of objects',
  'after-open': 'an object or "]"',
  'after-element': '"," or "]"',
  'after-comma': 'an object',
  'after-array': 'nothing more',
}

export interface SplitterOptions {
  /** Named in errors and handed on with each element. */
  readonly part: number
  readonly limits: Pick<Limits, 'objectBytesMax' | 'nestingMax' | 'objectsMax'>
  /** Counts over all parts of one request. */
  readonly tally: ObjectCounter
  /** Elements may be arrays as well, as deltas are. */
  readonly takesArrays?: boolean
}

export interface ObjectCounter {
  objects: number
}

/**
 * Cuts a JSON text (RFC 8259) that is one array into its elements, over bytes and across chunk borders, without
 * building values. It checks the grammar of the array, and that brackets and strings inside the elements close; the
 * inspection checks the rest of each element. All methods throw `invalid_json`, `invalid_object` (an element that is
 * not an object), `nesting_too_deep`, `object_too_large` and `too_many_objects`.
 */
export class ElementSplitter {
  readonly #part: number
  readonly #limits: SplitterOptions['limits']
  readonly #tally: ObjectCounter
  /** For each open bracket of the element the byte that closes it. */
  readonly #closers: Uint8Array
  readonly #takesArrays: boolean
  readonly #gathered: GrowingBuffer
  #chunk: Uint8Array = NO_CHUNK
  /** The chunk, to be read four bytes at a time. */
  #words: DataView = NO_WORDS
  /** The position in the chunk. */
  #at = 0
  #place: Place = 'before-array'
  #depth = 0
  #inString = false
  #escaped = false
  #index = -1
  #consumed = 0

  constructor(options: SplitterOptions) {
    this.#part = options.part
    this.#limits = options.limits
    this.#tally = options.tally
    this.#takesArrays = options.takesArrays ?? false
    this.#gathered = new GrowingBuffer({ bytesMax: options.limits.objectBytesMax })
    this.#closers = new Uint8Array(options.limits.nestingMax)
  }

  /** The most bytes that it may hold after a chunk of this size. */
  memoryBytesWith(chunkBytes: number): number {
    return this.#gathered.capacityBytes + this.#gathered.growthFor(chunkBytes)
  }

  /** Whether the last chunk has elements that were not taken yet. */
  get hasMore(): boolean {
    return this.#at < this.#chunk.length
  }

  /**
   * The elements that end in this chunk; if there are very many, the first ones, and then `more` has the next. Elements
   * that lie entirely in the chunk are views of it. The bytes of an unfinished element are copied, so the chunk may be
   * overwritten once the elements have been used.
   */
  push(chunk: Uint8Array): Element[] {
    this.#chunk = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    this.#words = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    this.#at = 0
    return this.more()
  }

  /** The next elements of the chunk that was pushed last. */
  more(): Element[] {
    const bytes = this.#chunk
    const elements: Element[] = []
    let at = this.#at
    while (at < bytes.length && elements.length < ELEMENTS_AT_ONCE) {
      if (this.#depth === 0) {
        at = this.#betweenElements(bytes, at)
        if (at === bytes.length) break
      }
      const start = at
      at = this.#insideElement(bytes, start)
      if (this.#gathered.length + at - start > this.#limits.objectBytesMax)
        throw this.#objectTooLarge(bytes.subarray(start, at))
      if (this.#depth === 0) elements.push(this.#cut(bytes.subarray(start, at)))
      else this.#gathered.add(bytes.subarray(start, at))
    }
    this.#at = at
    if (at === bytes.length) {
      this.#consumed += bytes.length
      this.#chunk = NO_CHUNK
      this.#words = NO_WORDS
      this.#at = 0
    }
    return elements
  }

  /** The text is complete. */
  end(): void {
    if (this.#depth > 0) throw this.#invalid(`the text ends inside element ${this.#index}`, 0)
    if (this.#place === 'after-array') return
    const found = this.#consumed === 0 ? 'it is empty' : 'the text ends'
    throw this.#invalid(`expected ${EXPECTED[this.#place]}, but ${found}`, 0)
  }

  /** Reads up to the first byte of the next element. */
  #betweenElements(bytes: Uint8Array, from: number): number {
    let at = from
    for (; at < bytes.length; at++) {
      const byte = bytes[at]
      if (WHITE_SPACE[byte] !== 0) continue
      if ((this.#place === 'after-open' || this.#place === 'after-comma') && byte !== ARRAY_CLOSE) {
        this.#beginElement(byte, at)
        return at
      }
      this.#place = this.#placeAfter(byte, at)
    }
    return at
  }

  #placeAfter(byte: number, at: number): Place {
    if (this.#place === 'before-array' && byte === ARRAY_OPEN) return 'after-open'
    if (this.#place === 'after-element' && byte === COMMA) return 'after-comma'
    if ((this.#place === 'after-element' || this.#place === 'after-open') && byte === ARRAY_CLOSE) return 'after-array'
    if (this.#consumed + at === 0 && byte === 0xef) {
      throw this.#invalid('the text starts with a byte order mark; JSON text has none (RFC 8259, section 8.1)', at)
    }
    throw this.#unexpected(byte, at)
  }

  #beginElement(byte: number, at: number): void {
    this.#index++
    if (byte !== OBJECT_OPEN && byte !== ARRAY_OPEN) {
      throw startsScalar(byte) ? this.#notAnObject() : this.#unexpected(byte, at)
    }
    if (++this.#tally.objects > this.#limits.objectsMax) {
      throw new StowageError(
        'too_many_objects',
        `the request holds more than ${this.#limits.objectsMax} objects, the limit of one upload (${this.#where()})`,
      )
    }
  }

  /** Reads up to the end of the element, or of the bytes. */
  #insideElement(bytes: Uint8Array, from: number): number {
    const closers = this.#closers
    const words = this.#words
    const end = bytes.length
    let depth = this.#depth
    let at = this.#inString ? this.#insideString(bytes, from) : from
    for (;;) {
      let stops = 0
      while (at < end - 3 && (stops = stopsOutsideStrings(words.getInt32(at, true))) === 0) at += 4
      if (stops !== 0) at += firstStop(stops)
      const lettersEnd = Math.min(end, at + LETTERS_IN_A_ROW)
      while (at < lettersEnd && STRUCTURE[bytes[at]] === 0) at++
      if (at >= end) break
      const byte = bytes[at++]
      if (STRUCTURE[byte] === 0) continue
      if (byte === QUOTE) {
        at = this.#insideString(bytes, at)
      } else if (byte === OBJECT_OPEN || byte === ARRAY_OPEN) {
        if (depth === closers.length) throw this.#tooDeep(at - 1)
        closers[depth++] = byte + CLOSE_FROM_OPEN
      } else {
        if (closers[--depth] !== byte) throw this.#mismatch(byte, closers[depth], at - 1)
        if (depth === 0) break
      }
    }
    this.#depth = depth
    return at
  }

  /**
   * Reads up to the byte after the closing quote. Remembers a string, and an escape in it, that continues in the next
   * chunk.
   */
  #insideString(bytes: Uint8Array, from: number): number {
    const words = this.#words
    const end = bytes.length
    let at = this.#escaped ? from + 1 : from
    this.#inString = false
    this.#escaped = false
    for (;;) {
      let stops = 0
      while (at < end - 3 && (stops = stopsInsideStrings(words.getInt32(at, true))) === 0) at += 4
      if (stops !== 0) at += firstStop(stops)
      while (at < end && STRING_STOP[bytes[at]] === 0) at++
      if (at < end && bytes[at] === QUOTE) return at + 1
      if (at < end) at += 2
      if (at < end) continue
      this.#inString = true
      this.#escaped = at > end
      return end
    }
  }

  #cut(lastPiece: Uint8Array): Element {
    const bytes = this.#gathered.length === 0 ? lastPiece : this.#gathered.take(lastPiece)
    if (bytes[0] === ARRAY_OPEN && !this.#takesArrays) throw this.#notAnObject()
    this.#place = 'after-element'
    return { bytes, part: this.#part, index: this.#index }
  }

  #where(at?: number): string {
    const element = this.#index < 0 ? '' : `, element ${this.#index}`
    return `part ${this.#part}${element}${at === undefined ? '' : `, byte ${this.#consumed + at}`}`
  }

  #invalid(problem: string, at: number): StowageError {
    return new StowageError('invalid_json', `${problem} (${this.#where(at)})`)
  }

  #unexpected(byte: number, at: number): StowageError {
    return this.#invalid(`expected ${EXPECTED[this.#place]}, but found ${byteName(byte)}`, at)
  }

  #mismatch(byte: number, closer: number, at: number): StowageError {
    return this.#invalid(`expected ${byteName(closer)} to close the open bracket, but found ${byteName(byte)}`, at)
  }

  #notAnObject(): StowageError {
    return new StowageError(
      'invalid_object',
      `each element of the array must be a JSON object, but this one is not (${this.#where()})`,
    )
  }

  #tooDeep(at: number): StowageError {
    return new StowageError(
      'nesting_too_deep',
      `an object may nest at most ${this.#limits.nestingMax} levels of arrays and objects (${this.#where(at)})`,
    )
  }

  #objectTooLarge(piece: Uint8Array): StowageError {
    const head = this.#gathered.length === 0 ? piece : this.#gathered.held()
    const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, ID_SEARCH_BYTES)).toString('utf8')
    const id = VISIBLE_ID.exec(text)?.[1]
    return tooLarge(
      'object_too_large',
      `an object (${this.#where()}${id === undefined ? '' : `, id ${quoted(id)}`})`,
      this.#limits.objectBytesMax,
    )
  }
}

/**
 * Bit 7 of each byte that may matter outside strings, of four bytes. All brackets have bit 6, which digits, signs,
 * spaces and commas lack; letters have it as well.
 */
function stopsOutsideStrings(word: number): number {
  return ((word & 0x40404040) << 1) | zeroBytes(word ^ 0x22222222)
}

/** Bit 7 of each byte that matters inside strings, of four bytes. */
function stopsInsideStrings(word: number): number {
  return zeroBytes(word ^ 0x22222222) | zeroBytes(word ^ 0x5c5c5c5c)
}

/**
 * Bit 7 of each zero byte, of four; above the first one it may be set as well (Warren, Hacker's Delight, section 6-1).
 */
function zeroBytes(word: number): number {
  return (word - 0x01010101) & ~word & 0x80808080
}

/** The place of the first byte whose bit 7 is set. */
function firstStop(stops: number): number {
  return (31 - Math.clz32(stops & -stops)) >> 3
}

function byteTable(...members: readonly number[]): Uint8Array {
  const table = new Uint8Array(256)
  for (const byte of members) table[byte] = 1
  return table
}

function startsScalar(byte: number): boolean {
  return (
    byte === QUOTE || byte === 0x2d || (byte >= 0x30 && byte <= 0x39) || byte === 0x74 || byte === 0x66 || byte === 0x6e
  )
}

function byteName(byte: number): string {
  return byte > 0x20 && byte < 0x7f
    ? JSON.stringify(String.fromCharCode(byte))
    : `byte 0x${byte.toString(16).padStart(2, '0')}`
}
