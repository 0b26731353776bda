/**
 * Headers of ustar (POSIX.1-1988), to the extent that an archive needs them: plain files with short ASCII names. Such a
 * file needs no index, so an export appends entry after entry, and the leftover of a killed one is valid up to its last
 * whole entry. Every `tar` reads it.
 */

export const BLOCK_BYTES = 512
/** Two empty blocks. */
export const END_BYTES: number = 2 * BLOCK_BYTES

const NAME_BYTES_MAX = 100
/** The largest value of 11 octal digits. */
const SIZE_MAX = 0o77777777777
const CHECKSUM = { start: 148, end: 156 }
/** Digits, NUL, space: as POSIX and every `tar` write it. No byte of the field may vary, for it is not in the sum. */
const CHECKSUM_FIELD = /^[0-7]{6}\0 $/

export interface TarHeader {
  readonly name: string
  readonly sizeBytes: number
}

/** Bytes of zeros behind so many bytes of content. */
export function paddingOf(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES
}

/** The block before the content. Owner, mode and time are the same for all, so that equal content makes equal bytes. */
export function encodeHeader({ name, sizeBytes }: TarHeader): Buffer {
  if (!/^[\w./-]+$/.test(name) || name.length > NAME_BYTES_MAX || sizeBytes > SIZE_MAX)
    throw new RangeError(`an entry ${JSON.stringify(name)} of ${sizeBytes} bytes cannot be in an archive`)
  const block = Buffer.alloc(BLOCK_BYTES)
  block.write(name, 0, 'latin1')
  block.write('0000644\0', 100, 'latin1')
  block.write('0000000\0', 108, 'latin1')
  block.write('0000000\0', 116, 'latin1')
  block.write(`${octal(sizeBytes, 11)}\0`, 124, 'latin1')
  block.write('00000000000\0', 136, 'latin1')
  block.write('0', 156, 'latin1')
  block.write('ustar\u000000', 257, 'latin1')
  block.write(`${octal(checksumOf(block), 6)}\0 `, CHECKSUM.start, 'latin1')
  return block
}

/** `end` for an empty block; `undefined` for anything but one of our headers. */
export function decodeHeader(block: Uint8Array): TarHeader | 'end' | undefined {
  if (block.every((byte) => byte === 0)) return 'end'
  const text = Buffer.from(block.buffer, block.byteOffset, block.byteLength).toString('latin1')
  const field = text.slice(CHECKSUM.start, CHECKSUM.end)
  const size = /^[0-7]{11}$/.exec(text.slice(124, 135))
  if (!CHECKSUM_FIELD.test(field) || Number.parseInt(field, 8) !== checksumOf(block)) return undefined
  if (size === null || text[156] !== '0') return undefined
  return { name: text.slice(0, NAME_BYTES_MAX).replace(/\0.*$/, ''), sizeBytes: Number.parseInt(size[0], 8) }
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0')
}

/** The sum of all bytes, with spaces in the place of the sum itself. */
function checksumOf(block: Uint8Array): number {
  let sum = 0
  for (const [at, byte] of block.entries()) sum += at >= CHECKSUM.start && at < CHECKSUM.end ? 0x20 : byte
  return sum
}
