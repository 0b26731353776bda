import { maskedCrc32c } from './crc32c.ts'
import { VarintReader } from './manifest.ts'

/*
 * The format of LevelDB's tables (its doc/table_format.md): data blocks, filters, the index of the filters, the index of the data, a footer of 48 bytes.
 * Each block is followed by its compression and a CRC-32C. The databases here are written without compression.
 */

const FOOTER_BYTES = 48
const TRAILER_BYTES = 5
const MAGIC = Buffer.from('57fb808b247547db', 'hex')

interface Span {
  readonly offset: number
  readonly bytes: number
}

/** The fault of a table in which any byte differs from the written one, or whose size is not `bytes`. */
export function tableDamage(table: Buffer, bytes: number): string | undefined {
  try {
    verifyTable(table, bytes)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

function verifyTable(table: Buffer, bytes: number): void {
  if (table.length !== bytes || bytes < FOOTER_BYTES)
    throw new Error(`it has ${table.length} bytes instead of ${bytes}`)
  const footerAt = bytes - FOOTER_BYTES
  const { metaIndex, index } = readFooter(table.subarray(footerAt))
  const blocks = table.subarray(0, footerAt)
  checkBlock(blocks, index)
  // Only the tables that a repair makes are compressed, and they are rewritten at once: then nobody reads their index.
  if (isCompressed(blocks, index)) return
  checkBlock(blocks, metaIndex)
  const spans = [...spansIn(contentOf(blocks, index)), ...spansIn(contentOf(blocks, metaIndex))]
  let offset = 0
  for (const span of [...spans, metaIndex, index]) {
    if (span.offset !== offset) throw new Error(`there is no block at byte ${offset}`)
    checkBlock(blocks, span)
    offset += span.bytes + TRAILER_BYTES
  }
  if (offset !== footerAt) throw new Error(`there is no block at byte ${offset}`)
}

function readFooter(footer: Buffer): { metaIndex: Span; index: Span } {
  if (!footer.subarray(-MAGIC.length).equals(MAGIC)) throw new Error('it does not end as a table')
  const reader = new VarintReader(footer.subarray(0, -MAGIC.length))
  const [metaIndex, index] = [readSpan(reader), readSpan(reader)]
  if (reader.rest().some((byte) => byte !== 0)) throw new Error('its footer is damaged')
  return { metaIndex, index }
}

function readSpan(reader: VarintReader): Span {
  return { offset: reader.varint(), bytes: reader.varint() }
}

/**
 * Entries of a block: `shared: varint | rest of the key: varint length | value: varint length | key | value`; at the
 * end the restarts and their count.
 */
function* spansIn(block: Buffer): Generator<Span> {
  const restarts = block.length < 4 ? 0 : block.readUInt32LE(block.length - 4)
  const end = block.length - 4 - restarts * 4
  if (end < 0) throw new Error('its index is damaged')
  const reader = new VarintReader(block.subarray(0, end))
  while (!reader.isAtEnd) {
    reader.varint()
    const keyBytes = reader.varint()
    const valueBytes = reader.varint()
    reader.take(keyBytes)
    yield readSpan(new VarintReader(reader.take(valueBytes)))
  }
}

function checkBlock(blocks: Buffer, { offset, bytes }: Span): void {
  const end = offset + bytes
  if (end + TRAILER_BYTES > blocks.length) throw new Error(`there is no block at byte ${offset}`)
  if (blocks.readUInt32LE(end + 1) !== maskedCrc32c(blocks.subarray(offset, end + 1)))
    throw new Error(`the block at byte ${offset} does not match its CRC-32C`)
}

function isCompressed(blocks: Buffer, { offset, bytes }: Span): boolean {
  return blocks[offset + bytes] !== 0
}

function contentOf(blocks: Buffer, { offset, bytes }: Span): Buffer {
  return blocks.subarray(offset, offset + bytes)
}
