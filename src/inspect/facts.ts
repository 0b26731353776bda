import { isObjectId, OBJECT_ID_BYTES_MAX } from '../object/id.ts'
import type { ScanListener } from './json-scanner.ts'
import { decodesTo, decodeString, ESCAPED_BYTES_PER_BYTE_MAX } from './json-string.ts'
import { IdColumn } from './id-column.ts'
import type { OneLineText } from './one-line-text.ts'

const ID_KEY = Buffer.from('id')
const REFERENCE_KEY = Buffer.from('referencedId')
const CLOSURE_KEY = Buffer.from('__closure')

/** The kinds of values that the scanner reports. */
const ID = 1
const REFERENCE = 2
const CLOSURE = 3

const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b

/** The value of a top-level `id` member. `start` and `end` delimit its text between the quotes, if it is a string. */
export interface IdMember {
  readonly at: number
  readonly isString: boolean
  readonly start: number
  readonly end: number
  readonly escaped: boolean
}

/**
 * Gathers the facts of an object that a store needs while it is scanned: its id (the last of several, like
 * `JSON.parse`), the ids of `referencedId` members at any depth, and the keys of a top-level `__closure` object.
 */
export class ObjectFacts implements ScanListener {
  readonly #text: OneLineText
  /** Keys of `__closure`; of several `__closure` members, the last one's. */
  readonly claims: IdColumn = new IdColumn(16)
  #source: Uint8Array = new Uint8Array(0)
  #references: IdColumn = new IdColumn(1)
  #inClosure = false
  #id: IdMember | undefined
  #memberCount = 0

  constructor(text: OneLineText) {
    this.#text = text
  }

  /**
   * References go to `references` as they are found; the other facts are those of this source until the next `start`.
   */
  start(source: Uint8Array, references: IdColumn): void {
    this.#source = source
    this.#references = references
    this.claims.clear()
    this.#inClosure = false
    this.#id = undefined
    this.#memberCount = 0
  }

  /** The last top-level `id` member so far. */
  get id(): IdMember | undefined {
    return this.#id
  }

  get isEmpty(): boolean {
    return this.#memberCount === 0
  }

  onKey(start: number, end: number, escaped: boolean, depth: number): number {
    if (depth === 1) return this.#onTopLevelKey(start, end, escaped)
    if (depth === 2 && this.#inClosure) this.#addId(this.claims, start, end, escaped)
    return this.#isReferenceKey(start, end, escaped) ? REFERENCE : 0
  }

  onString(asked: number, start: number, end: number, escaped: boolean): void {
    if (asked === REFERENCE) this.#addId(this.#references, start, end, escaped)
    else if (asked === ID) this.#id = { at: start - 1, isString: true, start, end, escaped }
  }

  onOther(asked: number, start: number, firstByte: number): void {
    if (asked === ID) this.#id = { at: start, isString: false, start, end: start, escaped: false }
    else if (asked === CLOSURE) this.#inClosure = firstByte === OPEN_OBJECT
  }

  onBrokenSpace(start: number, end: number): void {
    this.#text.drop(start, end)
  }

  onLineSeparator(start: number, end: number): void {
    this.#text.escape(start, end)
  }

  #onTopLevelKey(start: number, end: number, escaped: boolean): number {
    this.#memberCount++
    this.#inClosure = false
    const first = this.#source[start]
    if (first !== 0x69 && first !== 0x72 && first !== 0x5f && first !== BACKSLASH) return 0
    if (decodesTo(this.#source, start, end, escaped, ID_KEY)) return ID
    if (this.#isReferenceKey(start, end, escaped)) return REFERENCE
    if (!decodesTo(this.#source, start, end, escaped, CLOSURE_KEY)) return 0
    this.claims.clear()
    return CLOSURE
  }

  #isReferenceKey(start: number, end: number, escaped: boolean): boolean {
    if (end - start < REFERENCE_KEY.length || (end - start > REFERENCE_KEY.length && !escaped)) return false
    const first = this.#source[start]
    return (first === 0x72 || first === BACKSLASH) && decodesTo(this.#source, start, end, escaped, REFERENCE_KEY)
  }

  /** A text that cannot be an id cannot name an object, so it is not a reference. */
  #addId(names: IdColumn, start: number, end: number, escaped: boolean): void {
    if (!escaped) {
      if (isObjectId(this.#source, start, end)) names.add(this.#source, start, end)
      return
    }
    const decoded = decodeId(this.#source, start, end)
    if (decoded !== undefined && isObjectId(decoded)) names.add(decoded, 0, decoded.length)
  }
}

/** The UTF-8 of an escaped string that may be an id; `undefined` if it is too long or invalid Unicode. */
export function decodeId(source: Uint8Array, start: number, end: number): Uint8Array | undefined {
  return end - start > OBJECT_ID_BYTES_MAX * ESCAPED_BYTES_PER_BYTE_MAX ? undefined : decodeString(source, start, end)
}
