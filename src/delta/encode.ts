import { crc32 } from './crc32.ts'
import { DELTA_CHARACTERS_MAX } from './delta.ts'

/**
 * The base is cut into blocks of this many bytes, each of which can be found anywhere. A part that the text shares with
 * the base is certainly found if it has 31 bytes.
 */
const BLOCK_BYTES = 16
/**
 * Multiplier of the rolling hash, and the factor that removes the byte that leaves its window: the multiplier to the
 * power of the block's bytes.
 */
const FACTOR = 0x01000193
const LEAVING: number = power(FACTOR, BLOCK_BYTES)
/** A delta must save at least so much of the text, or the text is better sent whole. */
const SHARE_MAX = 0.75
/** The approximate cost of a step besides its insertion. */
const STEP_CHARACTERS = 8
/** A text whose beginning of this length is not in the base is given up. */
const BEGINNING_BYTES = 65_536

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Finds the delta (see `Delta`) from one text to another, both in UTF-8, by the method of rsync: a rolling hash finds
 * blocks of the base in the text, and each find is extended to both sides. The place where the last copy would continue
 * is tried first, since most changes replace a value by one of the same length.
 */
export class DeltaEncoder {
  readonly #baseId: string
  readonly #base: Uint8Array
  readonly #text: Uint8Array
  /** The start of a block of the base with this hash, plus 1. */
  readonly #blocks: Int32Array
  readonly #mask: number
  readonly #steps: (number | string)[] = [0, 0, '']
  #indexed = 0
  /** The text up to here is in the steps; the end of the last copy in the base; the place of the next search. */
  #written = 0
  #cursor = 0
  #at = 0
  #hash = 0
  /** The byte of the text after the last hashed block, -1 if there is none. */
  #hashedEnd = -1
  #inserted = 0

  constructor(baseId: string, base: Uint8Array, text: Uint8Array) {
    this.#baseId = baseId
    this.#base = base
    this.#text = text
    const slots = 1 << Math.max(4, 32 - Math.clz32(base.length / BLOCK_BYTES))
    this.#blocks = new Int32Array(slots)
    this.#mask = slots - 1
  }

  /** Works on about this many bytes. Returns whether all is done. */
  advance(bytes: number): boolean {
    const base = this.#base
    const indexEnd = Math.min(base.length - BLOCK_BYTES, this.#indexed + bytes)
    for (; this.#indexed <= indexEnd; this.#indexed += BLOCK_BYTES) {
      const slot = hashOf(base, this.#indexed) & this.#mask
      if (this.#blocks[slot] === 0) this.#blocks[slot] = this.#indexed + 1
    }
    if (this.#indexed <= base.length - BLOCK_BYTES) return false
    const last = this.#text.length - BLOCK_BYTES
    for (const end = Math.min(last + 1, this.#at + bytes); this.#at < end && this.#isWorthwhile();) this.#search()
    return this.#at > last || !this.#isWorthwhile()
  }

  /**
   * The delta as JSON; `undefined` if the text is better sent whole. Only after all steps. `textCrc32` is for callers
   * that know it.
   */
  take(textCrc32?: number): string | undefined {
    this.#insertUpTo(this.#text.length)
    if (!this.#isWorthwhile()) return undefined
    const json = JSON.stringify([this.#baseId, textCrc32 ?? crc32(this.#text), ...trimmed(this.#steps)])
    return json.length > DELTA_CHARACTERS_MAX || json.length > this.#text.length * SHARE_MAX ? undefined : json
  }

  #isWorthwhile(): boolean {
    const characters = this.#inserted + (this.#steps.length / 3) * STEP_CHARACTERS
    const charactersMax = SHARE_MAX * (this.#at > BEGINNING_BYTES ? this.#at : this.#text.length)
    return characters <= charactersMax && characters <= DELTA_CHARACTERS_MAX
  }

  /** Searches for the block at the current place of the text, and continues after the find. */
  #search(): void {
    const at = this.#at
    const expected = this.#cursor + at - this.#written
    if (this.#isSame(expected, at)) return this.#copy(expected, at)
    const found = this.#blocks[this.#hashAt(at) & this.#mask] - 1
    if (found >= 0 && this.#isSame(found, at)) return this.#copy(found, at)
    this.#at = at + 1
    this.#inserted += 1
  }

  #isSame(inBase: number, inText: number): boolean {
    const base = this.#base
    const text = this.#text
    if (inBase + BLOCK_BYTES > base.length) return false
    for (let i = 0; i < BLOCK_BYTES; i++) if (base[inBase + i] !== text[inText + i]) return false
    return true
  }

  /** Extends the match to both sides, but not into the middle of a character, which an insertion could not hold. */
  #copy(inBase: number, inText: number): void {
    const base = this.#base
    const text = this.#text
    let start = inText
    while (
      start > this.#written &&
      inBase + start - inText > 0 &&
      base[inBase + start - inText - 1] === text[start - 1]
    )
      start--
    let end = inText + BLOCK_BYTES
    while (end < text.length && inBase + end - inText < base.length && base[inBase + end - inText] === text[end]) end++
    while (start < end && isContinuation(text[start])) start++
    while (end > start && end < text.length && isContinuation(text[end])) end--
    this.#at = Math.max(end, inText + 1)
    if (end === start) return
    this.#inserted -= inText - start
    this.#insertUpTo(start)
    const from = inBase + start - inText
    this.#steps.push(from - this.#cursor, end - start, '')
    this.#cursor = from + end - start
    this.#written = end
  }

  #insertUpTo(end: number): void {
    this.#steps[this.#steps.length - 1] = decoder.decode(this.#text.subarray(this.#written, end))
  }

  /** The hash of the text's block at `at`, rolled on from the block before if that was hashed. */
  #hashAt(at: number): number {
    const text = this.#text
    const end = at + BLOCK_BYTES
    if (this.#hashedEnd === end - 1 && at > 0)
      this.#hash = (Math.imul(this.#hash, FACTOR) + text[end - 1] - Math.imul(text[at - 1], LEAVING)) | 0
    else this.#hash = rollingHash(text, at)
    this.#hashedEnd = end
    return spread(this.#hash)
  }
}

function hashOf(bytes: Uint8Array, at: number): number {
  return spread(rollingHash(bytes, at))
}

function rollingHash(bytes: Uint8Array, at: number): number {
  let hash = 0
  for (let i = at; i < at + BLOCK_BYTES; i++) hash = (Math.imul(hash, FACTOR) + bytes[i]) | 0
  return hash
}

/** Mixes the high bits into the bits that choose a slot. */
function spread(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 8
}

function power(base: number, exponent: number): number {
  let product = 1
  for (let i = 0; i < exponent; i++) product = Math.imul(product, base)
  return product
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

/** Without the first step if that does nothing. */
function trimmed(steps: readonly (number | string)[]): readonly (number | string)[] {
  return steps[1] === 0 && steps[2] === '' ? steps.slice(3) : steps
}
