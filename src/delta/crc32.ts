/** The CRC-32 polynomial of RFC 1952, reflected. */
const POLYNOMIAL = 0xedb88320
const TABLE: Int32Array = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (POLYNOMIAL & -(crc & 1))
  return crc
})

/** The CRC-32 of RFC 1952, section 8, of the bytes. Browsers have none. */
export function crc32(bytes: Uint8Array): number {
  let crc = -1
  for (let at = 0; at < bytes.length; at++) crc = (crc >>> 8) ^ TABLE[(crc ^ bytes[at]) & 0xff]
  return ~crc >>> 0
}

/** The same for the characters of a text, behind bytes whose CRC-32 is `before`. Without the copy that bytes would be. */
export function crc32OfAscii(text: string, before: number): number {
  let crc = ~before
  for (let at = 0; at < text.length; at++) crc = (crc >>> 8) ^ TABLE[(crc ^ text.charCodeAt(at)) & 0xff]
  return ~crc >>> 0
}
