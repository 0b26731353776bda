import { isUtf8 } from 'node:buffer'

const STRIDE_BYTES = 4_096
const CONTINUATION_BYTES_MAX = 3

/**
 * The position of the first byte that makes the text invalid UTF-8 (the first of its broken sequence); -1 if the text
 * is valid UTF-8.
 */
export function firstBrokenByte(bytes: Uint8Array): number {
  for (let from = 0; from < bytes.length;) {
    const to = strideEnd(bytes, from)
    if (!isUtf8(bytes.subarray(from, to))) return firstBrokenSequence(bytes, from, to)
    from = to
  }
  return -1
}

/** About a stride further, and not inside a sequence. */
function strideEnd(bytes: Uint8Array, from: number): number {
  const end = from + STRIDE_BYTES
  if (end >= bytes.length) return bytes.length
  let to = end
  while (end - to < CONTINUATION_BYTES_MAX && (bytes[to] & 0xc0) === 0x80) to--
  return to
}

function firstBrokenSequence(bytes: Uint8Array, from: number, to: number): number {
  let at = from
  while (at < to) {
    const lead = bytes[at]
    const end = at + (lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4)
    if (end > to || !isUtf8(bytes.subarray(at, end))) return at
    at = end
  }
  return to
}
