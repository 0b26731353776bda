/* Ids of 32 lower-case hex digits, as most clients make them, in half of their bytes. */

export const HEX_ID_BYTES = 32
export const PACKED_ID_BYTES = 16

export const NOT_HEX = 0xff
const DIGITS: Uint8Array = Buffer.from('0123456789abcdef')
/** The value of each digit, by its character; `NOT_HEX` of others. */
export const NIBBLES: Uint8Array = new Uint8Array(256).fill(NOT_HEX)
for (const [value, digit] of DIGITS.entries()) NIBBLES[digit] = value

/** The two digits of each byte: the first in the lower half, as the memory of each little-endian machine has them. */
export const DIGIT_PAIRS: Uint16Array = new Uint16Array(256)
for (let byte = 0; byte < 256; byte++) DIGIT_PAIRS[byte] = DIGITS[byte >> 4] | (DIGITS[byte & 0xf] << 8)

/**
 * Writes the 16 bytes that these 32 digits stand for. Returns `false` if one of them is none; what is written then means
 * nothing.
 */
export function packHexId(digits: Uint8Array, start: number, packed: Uint8Array, at: number): boolean {
  let met = 0
  for (let i = start, to = at; to < at + PACKED_ID_BYTES; i += 2, to++) {
    const high = NIBBLES[digits[i]]
    const low = NIBBLES[digits[i + 1]]
    met |= high | low
    packed[to] = (high << 4) | low
  }
  return met <= 0xf
}

/** Writes the 32 digits for 16 bytes. */
export function unpackHexId(packed: Uint8Array, at: number, digits: Uint8Array, start: number): void {
  for (let i = start, from = at; from < at + PACKED_ID_BYTES; i += 2, from++) {
    digits[i] = DIGITS[packed[from] >> 4]
    digits[i + 1] = DIGITS[packed[from] & 0xf]
  }
}
