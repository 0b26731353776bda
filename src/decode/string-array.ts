import { StowageError } from '../errors.ts'
import { decodeString } from '../inspect/json-string.ts'
import type { Yielder } from '../async/yielder.ts'

/** Read in one go, before the event loop may turn. */
const STRETCH_STRINGS = 1_024
const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const ARRAY_OPEN = 0x5b
const ARRAY_CLOSE = 0x5d
const SPACE = 0x20

/** Called for each string with a place in a buffer, valid during the call. */
export type StringSink = (bytes: Uint8Array, start: number, end: number) => void

export interface StringArrayOptions {
  /** Names the array in messages. */
  readonly what: string
  readonly yielder: Yielder
}

/**
 * Reads a JSON array of strings from the UTF-8 in `bytes`, from its bracket or white space before it, and returns the
 * place after it. A string without escapes costs no JavaScript string. Throws `invalid_json`, `invalid_request` for an
 * element that is not a string, and `invalid_id` for one with a lone surrogate.
 */
export async function readStringArray(
  bytes: Uint8Array,
  sink: StringSink,
  options: StringArrayOptions,
): Promise<number> {
  const { what, yielder } = options
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== ARRAY_OPEN) throw new StowageError('invalid_request', `${what} must be a JSON array of strings`)
  at = skipSpace(bytes, at + 1)
  if (bytes[at] === ARRAY_CLOSE) return at + 1
  for (let index = 0; ; index++) {
    at = skipSpace(bytes, readString(bytes, at, sink, `element ${index} of ${what}`))
    if (bytes[at] === ARRAY_CLOSE) return at + 1
    if (bytes[at] !== COMMA)
      throw new StowageError('invalid_json', `expected "," or "]" after element ${index} of ${what} (byte ${at})`)
    at = skipSpace(bytes, at + 1)
    if (index % STRETCH_STRINGS === 0) await yielder.due()
  }
}

/** The place of the first byte that is not white space, from `from` on. */
export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from
  while (bytes[at] === SPACE || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++
  return at
}

function readString(bytes: Uint8Array, from: number, sink: StringSink, what: string): number {
  if (bytes[from] !== QUOTE)
    throw new StowageError('invalid_request', `${what} is not a string (byte ${from}); every element must be one`)
  const start = from + 1
  let end = start
  let escaped = false
  for (let byte = bytes[end]; byte !== QUOTE; byte = bytes[end]) {
    if (byte === undefined || byte < SPACE) {
      throw new StowageError(
        'invalid_json',
        `${what} is a string without an end, or with an unescaped control character (byte ${end})`,
      )
    }
    if (byte === BACKSLASH) escaped = true
    end += byte === BACKSLASH ? 2 : 1
  }
  if (escaped) {
    const decoded = decodedString(bytes, start, end, what)
    sink(decoded, 0, decoded.length)
  } else {
    sink(bytes, start, end)
  }
  return end + 1
}

function decodedString(bytes: Uint8Array, start: number, end: number, what: string): Uint8Array {
  let decoded: Uint8Array | undefined
  try {
    decoded = decodeString(bytes, start, end)
  } catch (cause) {
    throw new StowageError('invalid_json', `${what} has an escape that JSON does not allow (byte ${start})`, { cause })
  }
  if (decoded === undefined)
    throw new StowageError('invalid_id', `${what} holds a lone surrogate; it must be well-formed Unicode`)
  return decoded
}
