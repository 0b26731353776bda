/**
 * Ready blocks: objects as a pack holds them, compressed by the client. A body of this media type is
 *
 *     opening | header | block | header | block | ... | end
 *
 * The opening is a magic and the version. A header has four numbers of 32 bits, little-endian: the bytes of the block,
 * the bytes that it inflates to, its objects, and the CRC-32 (RFC 1952) of the inflated bytes. The end is a header
 * with the numbers 0, the blocks of the body, the objects of the body, and 0.
 *
 * A block inflates to whole lines `<id> TAB <json> LF`. It is a fragment of raw DEFLATE (RFC 1951) that is not final,
 * ends on a byte boundary and refers to nothing before it: what zlib makes with `Z_FULL_FLUSH`. Neither the id of a
 * line nor anything else is taken from a header without a look at the bytes.
 */
export const BLOCKS_MEDIA_TYPE = 'application/vnd.stowage.blocks'
/** The header of answers that names the media type, on servers that take it. */
export const ACCEPT_HEADER = 'Accept-Post'
/** The inflated bytes after which a block is closed. A line that is longer has a block of its own. */
export const BLOCK_BYTES = 16_384
export const BLOCK_HEADER_BYTES = 16

const MAGIC = 'STOWBLKS'
const VERSION = 1
export const OPENING_BYTES: number = MAGIC.length + 4
/** DEFLATE adds at most 5 bytes to each 16 KB that it cannot compress, and the flush adds 5. */
const EXPANSION_SHIFT = 8
const EXPANSION_BYTES = 64

/** What the header of a block says. */
export interface BlockHeader {
  /** 0 in the end. */
  readonly storedBytes: number
  /** In the end, the number of blocks. */
  readonly rawBytes: number
  /** In the end, those of all blocks. */
  readonly objects: number
  readonly rawCrc32: number
}

/** The first bytes of a body. */
export function encodeOpening(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(OPENING_BYTES)
  for (let i = 0; i < MAGIC.length; i++) bytes[i] = MAGIC.charCodeAt(i)
  new DataView(bytes.buffer).setUint32(MAGIC.length, VERSION, true)
  return bytes
}

/** Whether these are the first bytes of a body of this version. */
export function isOpening(bytes: Uint8Array): boolean {
  return bytes.length === OPENING_BYTES && encodeOpening().every((byte, i) => byte === bytes[i])
}

export function encodeBlockHeader({ storedBytes, rawBytes, objects, rawCrc32 }: BlockHeader): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(BLOCK_HEADER_BYTES)
  const view = new DataView(bytes.buffer)
  for (const [i, value] of [storedBytes, rawBytes, objects, rawCrc32].entries()) view.setUint32(i * 4, value, true)
  return bytes
}

export function encodeEnd(blocks: number, objects: number): Uint8Array<ArrayBuffer> {
  return encodeBlockHeader({ storedBytes: 0, rawBytes: blocks, objects, rawCrc32: 0 })
}

/** Reads exactly `BLOCK_HEADER_BYTES`. */
export function decodeBlockHeader(bytes: Uint8Array): BlockHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, BLOCK_HEADER_BYTES)
  return {
    storedBytes: view.getUint32(0, true),
    rawBytes: view.getUint32(4, true),
    objects: view.getUint32(8, true),
    rawCrc32: view.getUint32(12, true),
  }
}

/** Whether a line of so many bytes belongs into a block that holds so many already. */
export function fitsBlock(openBytes: number, lineBytes: number, blockBytes: number = BLOCK_BYTES): boolean {
  return openBytes === 0 || openBytes + lineBytes <= blockBytes
}

/** More than any compressor makes of so many bytes. */
export function storedBytesMax(rawBytes: number): number {
  return rawBytes + (rawBytes >>> EXPANSION_SHIFT) + EXPANSION_BYTES
}
