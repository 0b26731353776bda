import { StowageError } from '../errors.ts'
import type { Yielder } from '../async/yielder.ts'

/** Done in one go, before the event loop may turn. */
const STRETCH_BYTES = 262_144
const BACKSLASH = 0x5c
const LOWER_U = 0x75
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20

/** The character for each letter of a two-character escape (RFC 8259, section 7); 0 for other letters. */
const SIMPLE_ESCAPES = new Uint8Array(128)
for (const [letter, meaning] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) {
  SIMPLE_ESCAPES[letter.charCodeAt(0)] = meaning.charCodeAt(0)
}

/**
 * Decodes a valid JSON string's text (between its quotes) or a form value in place, since neither ever grows, and
 * returns the decoded bytes: a view of `bytes`. A string of megabytes that holds a JSON array has an escape for each
 * quote, and becomes no JavaScript string. Throws `invalid_json` for a lone surrogate, `invalid_request` for a broken
 * percent escape.
 */
export async function unescapeInPlace(bytes: Uint8Array, kind: 'json' | 'form', yielder: Yielder): Promise<Uint8Array> {
  const cursor: Cursor = { bytes, from: 0, to: 0 }
  const stretch = kind === 'json' ? unescapeJson : unescapeForm
  while (cursor.from < bytes.length) {
    stretch(cursor, Math.min(bytes.length, cursor.from + STRETCH_BYTES))
    await yielder.due()
  }
  return bytes.subarray(0, cursor.to)
}

interface Cursor {
  readonly bytes: Uint8Array
  from: number
  to: number
}

function unescapeJson(cursor: Cursor, until: number): void {
  const { bytes } = cursor
  let { from, to } = cursor
  while (from < until) {
    const byte = bytes[from++]
    if (byte !== BACKSLASH) {
      bytes[to++] = byte
      continue
    }
    const letter = bytes[from++]
    if (letter !== LOWER_U) {
      bytes[to++] = SIMPLE_ESCAPES[letter]
      continue
    }
    const codePoint = escapedCodePoint(bytes, from)
    from += codePoint < 0x10000 ? 4 : 10
    to = writeUtf8(bytes, to, codePoint)
  }
  cursor.from = from
  cursor.to = to
}

function unescapeForm(cursor: Cursor, until: number): void {
  const { bytes } = cursor
  let { from, to } = cursor
  while (from < until) {
    const byte = bytes[from++]
    if (byte === PERCENT) {
      const decoded = hexDigit(bytes[from]) * 16 + hexDigit(bytes[from + 1])
      if (Number.isNaN(decoded))
        throw new StowageError('invalid_request', 'the form contains a "%" without two hex digits after it')
      bytes[to++] = decoded
      from += 2
    } else {
      bytes[to++] = byte === PLUS ? SPACE : byte
    }
  }
  cursor.from = from
  cursor.to = to
}

/** Of the four hex digits at `at`, with the escape of a low surrogate that follows a high one. */
function escapedCodePoint(bytes: Uint8Array, at: number): number {
  const unit = hex4(bytes, at)
  if (unit < 0xd800 || unit > 0xdfff) return unit
  const low = bytes[at + 4] === BACKSLASH && bytes[at + 5] === LOWER_U ? hex4(bytes, at + 6) : 0
  if (unit < 0xdc00 && low >= 0xdc00 && low <= 0xdfff) return 0x10000 + (unit - 0xd800) * 0x400 + (low - 0xdc00)
  throw new StowageError('invalid_json', 'the string "objects" holds a lone surrogate; it must be well-formed Unicode')
}

function writeUtf8(bytes: Uint8Array, at: number, codePoint: number): number {
  let to = at
  if (codePoint < 0x80) {
    bytes[to++] = codePoint
    return to
  }
  if (codePoint < 0x800) {
    bytes[to++] = 0xc0 | (codePoint >> 6)
  } else if (codePoint < 0x10000) {
    bytes[to++] = 0xe0 | (codePoint >> 12)
    bytes[to++] = 0x80 | ((codePoint >> 6) & 0x3f)
  } else {
    bytes[to++] = 0xf0 | (codePoint >> 18)
    bytes[to++] = 0x80 | ((codePoint >> 12) & 0x3f)
    bytes[to++] = 0x80 | ((codePoint >> 6) & 0x3f)
  }
  bytes[to++] = 0x80 | (codePoint & 0x3f)
  return to
}

function hex4(bytes: Uint8Array, at: number): number {
  return (
    hexDigit(bytes[at]) * 4096 + hexDigit(bytes[at + 1]) * 256 + hexDigit(bytes[at + 2]) * 16 + hexDigit(bytes[at + 3])
  )
}

/** NaN for anything but a hex digit, including the end of the bytes. */
function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return Number.NaN
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN
}
