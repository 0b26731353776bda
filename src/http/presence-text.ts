import type { IdSet } from '../object/id-set.ts'

const PIECE_BYTES = 65_536
/**
 * Bytes that are written between two checks of the remaining room: an escaped character, or a value with its brackets.
 */
const STEP_BYTES_MAX = 16
/** Counting takes about 2 ms. */
const COUNTED_ID_BYTES_MAX = 1_048_576
const HEX_DIGITS = Buffer.from('0123456789abcdef')
const TRUE = Buffer.from(':true')
const FALSE = Buffer.from(':false')
const OPEN = 0x7b
const CLOSE = 0x7d
const COMMA = 0x2c
const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const UNICODE_ESCAPE = Buffer.from('\\u00')

/**
 * `{"<id>": true, ...}` with every id of the set, in its order, as bytes in large buffers: as an object an id such as `__proto__` would be lost, and a
 * million ids would be as many strings.
 */
export async function* presenceText(ids: IdSet, held: Uint8Array): AsyncGenerator<Uint8Array> {
  let piece = Buffer.allocUnsafe(PIECE_BYTES)
  let at = 0
  piece[at++] = OPEN
  for (let index = 0; index < ids.size; index++) {
    const id = ids.bytesAt(index)
    if (index > 0) piece[at++] = COMMA
    piece[at++] = QUOTE
    // One step more than the id has bytes: its value.
    for (let i = 0; i <= id.length; i++) {
      at = i < id.length ? writeCharacter(piece, at, id[i]) : writeValue(piece, at, held[index] === 1 ? TRUE : FALSE)
      if (at + STEP_BYTES_MAX <= piece.length) continue
      yield piece.subarray(0, at)
      piece = Buffer.allocUnsafe(PIECE_BYTES)
      at = 0
    }
  }
  piece[at++] = CLOSE
  yield piece.subarray(0, at)
}

/**
 * The length of `presenceText` in bytes, so that a client notices when a proxy loses a part of it. `undefined` for more
 * ids than can be counted without keeping other requests waiting.
 */
export function presenceBytes(ids: IdSet, held: Uint8Array): number | undefined {
  if (ids.idBytes > COUNTED_ID_BYTES_MAX) return undefined
  let bytes = 2 + Math.max(0, ids.size - 1)
  for (let index = 0; index < ids.size; index++) {
    const id = ids.bytesAt(index)
    for (let i = 0; i < id.length; i++) bytes += characterBytes(id[i])
    bytes += 2 + (held[index] === 1 ? TRUE : FALSE).length
  }
  return bytes
}

function characterBytes(byte: number): number {
  if (byte < SPACE) return UNICODE_ESCAPE.length + 2
  return byte === QUOTE || byte === BACKSLASH ? 2 : 1
}

/**
 * Quotes, backslashes and control characters are all that JSON wants escaped (RFC 8259 section 7); the rest of UTF-8
 * stays as it is.
 */
function writeCharacter(target: Uint8Array, start: number, byte: number): number {
  let at = start
  if (byte < SPACE) {
    target.set(UNICODE_ESCAPE, at)
    target[at + 4] = HEX_DIGITS[byte >> 4]
    target[at + 5] = HEX_DIGITS[byte & 0xf]
    return at + 6
  }
  if (byte === QUOTE || byte === BACKSLASH) target[at++] = BACKSLASH
  target[at++] = byte
  return at
}

function writeValue(target: Uint8Array, start: number, value: Uint8Array): number {
  target[start] = QUOTE
  target.set(value, start + 1)
  return start + 1 + value.length
}
