/** The most bytes of a block that is stored without compression (RFC 1951, section 3.2.4). */
const STORED_BLOCK_BYTES_MAX = 65_535
const STORED_HEADER_BYTES = 5

/**
 * These bytes as a raw DEFLATE fragment that holds them uncompressed. Like every fragment it is not final and ends on a
 * byte boundary.
 */
export function storedFragment(raw: Uint8Array): Uint8Array {
  const blocks = Math.ceil(raw.length / STORED_BLOCK_BYTES_MAX)
  const fragment = Buffer.allocUnsafe(raw.length + blocks * STORED_HEADER_BYTES)
  for (let from = 0, to = 0; from < raw.length;) {
    const part = raw.subarray(from, from + STORED_BLOCK_BYTES_MAX)
    fragment.writeUInt8(0, to)
    fragment.writeUInt16LE(part.length, to + 1)
    fragment.writeUInt16LE(part.length ^ 0xffff, to + 3)
    fragment.set(part, to + STORED_HEADER_BYTES)
    from += part.length
    to += STORED_HEADER_BYTES + part.length
  }
  return fragment
}
