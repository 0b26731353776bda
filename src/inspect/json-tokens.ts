import type { StowageErrorCode } from '../errors.ts'

/** The broken rule of a scanned text, and the byte. */
export class ScanFault extends Error {
  override readonly name = 'ScanFault'
  readonly code: StowageErrorCode
  readonly at: number

  constructor(code: StowageErrorCode, rule: string, at: number) {
    super(rule)
    this.code = code
    this.at = at
  }
}

const QUOTE = 0x22
const ZERO = 0x30
const NINE = 0x39
const BACKSLASH = 0x5c

/** Behind the word that starts at `from` like `literal`. */
export function literalEnd(bytes: Uint8Array, from: number, literal: Uint8Array): number {
  for (let i = 1; i < literal.length; i++) {
    if (bytes[from + i] !== literal[i])
      throw new ScanFault('invalid_json', 'a word other than true, false and null', from)
  }
  return from + literal.length
}

/** Behind the escape that starts at `from` with a backslash. */
export function escapeEnd(bytes: Uint8Array, from: number): number {
  switch (bytes[from + 1]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return from + 2
    case 0x75:
      for (let at = from + 2; at < from + 6; at++) {
        if (!isHexDigit(bytes[at])) throw new ScanFault('invalid_json', 'an escape \\u without four hex digits', from)
      }
      return from + 6
    default:
      throw new ScanFault('invalid_json', 'an escape that JSON does not have', from)
  }
}

function isHexDigit(byte: number): boolean {
  const letter = byte | 0x20
  return (byte >= ZERO && byte <= NINE) || (letter >= 0x61 && letter <= 0x66)
}
