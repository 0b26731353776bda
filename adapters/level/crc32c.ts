/* CRC-32C (RFC 3720 appendix B.4), which LevelDB uses and `node:zlib` does not have. Eight bytes at a time: 300 MB/s and more. */

const POLYNOMIAL = 0x82f6_3b78
const SLICES = 8
const TABLE: Uint32Array = makeTable()

function makeTable(): Uint32Array {
  const table = new Uint32Array(256 * SLICES)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
    table[byte] = crc
  }
  for (let at = 256; at < table.length; at++) table[at] = (table[at - 256] >>> 8) ^ table[table[at - 256] & 255]
  return table
}

export function crc32c(bytes: Uint8Array): number {
  let crc = -1
  let at = 0
  for (const end = bytes.length - SLICES; at <= end; at += SLICES) {
    crc ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)
    crc =
      TABLE[1_792 + (crc & 255)] ^
      TABLE[1_536 + ((crc >>> 8) & 255)] ^
      TABLE[1_280 + ((crc >>> 16) & 255)] ^
      TABLE[1_024 + (crc >>> 24)] ^
      TABLE[768 + bytes[at + 4]] ^
      TABLE[512 + bytes[at + 5]] ^
      TABLE[256 + bytes[at + 6]] ^
      TABLE[bytes[at + 7]]
  }
  for (; at < bytes.length; at++) crc = TABLE[(crc ^ bytes[at]) & 255] ^ (crc >>> 8)
  return ~crc >>> 0
}

/** As LevelDB stores it: rotated by 15 bits, plus a constant. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes)
  return (((crc >>> 15) | (crc << 17)) + 0xa282_ead8) >>> 0
}
