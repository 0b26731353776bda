const LONE_SURROGATE = /\p{Surrogate}/u
const UTF8 = 'utf8'

/** Bytes that one byte of a decoded string takes at most between its quotes: `\u0061` for `a`. */
export const ESCAPED_BYTES_PER_BYTE_MAX = 6

/**
 * The UTF-8 of a valid JSON string with escapes, from between its quotes; `undefined` if an escape makes a lone
 * surrogate, which UTF-8 cannot hold.
 */
export function decodeString(bytes: Uint8Array, start: number, end: number): Uint8Array | undefined {
  const quotedText = Buffer.from(bytes.buffer, bytes.byteOffset + start - 1, end - start + 2).toString(UTF8)
  const text = JSON.parse(quotedText) as string
  return LONE_SURROGATE.test(text) ? undefined : Buffer.from(text, UTF8)
}

export function equalBytes(bytes: Uint8Array, start: number, end: number, expected: Uint8Array): boolean {
  if (end - start !== expected.length) return false
  for (let i = 0; i < expected.length; i++) if (bytes[start + i] !== expected[i]) return false
  return true
}

/** Whether a string's text between its quotes, escaped or not, decodes to `expected`. */
export function decodesTo(
  bytes: Uint8Array,
  start: number,
  end: number,
  escaped: boolean,
  expected: Uint8Array,
): boolean {
  if (!escaped) return equalBytes(bytes, start, end, expected)
  if (end - start > expected.length * ESCAPED_BYTES_PER_BYTE_MAX) return false
  const decoded = decodeString(bytes, start, end)
  return decoded !== undefined && equalBytes(decoded, 0, decoded.length, expected)
}
