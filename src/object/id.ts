import { isUtf8 } from 'node:buffer'
import { StowageError } from '../errors.ts'

export const OBJECT_ID_BYTES_MAX = 512
export const PROJECT_ID_BYTES_MAX = 128

const QUOTED_CHARACTERS_MAX = 64
const DEL = 0x7f
const LONE_SURROGATE = /\p{Surrogate}/u
/**
 * Controls, line ends, and characters that change the direction of the text around them, which could make a message
 * seem to say something else.
 */
const UNPRINTABLE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/**
 * Whether the bytes from `start` up to `end` can be an object's id: 1 to 512 bytes of UTF-8 without C0, DEL, C1, U+2028
 * and U+2029. Everything else is an id, also `.`, `../x` and `C:\x`, because no id ever becomes a path. Two ids are
 * equal if their bytes are: there is no Unicode normalization.
 */
export function isObjectId(bytes: Uint8Array, start: number = 0, end: number = bytes.length): boolean {
  if (end <= start || end - start > OBJECT_ID_BYTES_MAX) return false
  for (let at = start; at < end; at++) {
    const byte = bytes[at]
    if (byte < 0x20 || byte === DEL) return false
    if (byte > DEL) return brokenRule(bytes.subarray(start, end), OBJECT_ID_BYTES_MAX) === undefined
  }
  return true
}

/**
 * The rule that the bytes break as an id of at most `bytesMax` bytes, as the end of a sentence about that id;
 * `undefined` if they are one.
 */
export function brokenRule(bytes: Uint8Array, bytesMax: number): string | undefined {
  if (bytes.length === 0) return `is empty; it must be 1 to ${bytesMax} bytes of UTF-8`
  if (bytes.length > bytesMax) return `is ${bytes.length} bytes long; it must be 1 to ${bytesMax} bytes of UTF-8`
  if (!isUtf8(bytes)) return 'is not UTF-8 or holds a lone surrogate; it must be well-formed Unicode'
  for (let at = 0; at < bytes.length; at++) {
    const codePoint = refusedCodePoint(bytes, at)
    if (codePoint === undefined) continue
    const name = codePoint.toString(16).toUpperCase().padStart(4, '0')
    return `holds U+${name} at byte ${at}; it must be free of control characters (C0, DEL, C1), U+2028 and U+2029`
  }
  return undefined
}

/** The id as UTF-8. Throws `invalid_id` naming the rule that it breaks, and `what` of a request holds the id. */
export function checkObjectId(id: string, what: string = 'object id'): Uint8Array {
  return checkId(id, what, OBJECT_ID_BYTES_MAX)
}

/**
 * The project's id as UTF-8: at most 128 bytes, otherwise by the rules of object ids. Throws `invalid_id` as
 * `checkObjectId` does.
 */
export function checkProjectId(id: string, what: string = 'project id'): Uint8Array {
  return checkId(id, what, PROJECT_ID_BYTES_MAX)
}

/** Foreign text as a message may show it: cut, in quotes, and in one line whatever reads it. */
export function quoted(text: string): string {
  return quotedPath(text.length > QUOTED_CHARACTERS_MAX ? `${text.slice(0, QUOTED_CHARACTERS_MAX)}…` : text)
}

/** The same in full, for the path of a file: its end says most. */
export function quotedPath(path: string): string {
  return JSON.stringify(path).replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function checkId(id: string, what: string, bytesMax: number): Uint8Array {
  if (LONE_SURROGATE.test(id))
    throw new StowageError('invalid_id', `${what} ${quoted(id)} holds a lone surrogate; it must be well-formed Unicode`)
  const bytes = Buffer.from(id, 'utf8')
  const broken = brokenRule(bytes, bytesMax)
  if (broken !== undefined) throw new StowageError('invalid_id', `${what} ${quoted(id)} ${broken}`)
  return bytes
}

function refusedCodePoint(utf8: Uint8Array, at: number): number | undefined {
  const byte = utf8[at]
  if (byte < 0x20 || byte === DEL) return byte
  if (byte === 0xc2 && utf8[at + 1] < 0xa0) return utf8[at + 1]
  if (byte === 0xe2 && utf8[at + 1] === 0x80 && (utf8[at + 2] === 0xa8 || utf8[at + 2] === 0xa9))
    return 0x2000 | (utf8[at + 2] & 0x3f)
  return undefined
}
