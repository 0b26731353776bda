/** A block of lines as a client compressed it. */
export interface ReceivedBlock {
  /** Its place in its request, from 0. */
  readonly index: number
  readonly rawBytes: number
  readonly stored: Uint8Array
  /** Lines, as its header says. */
  readonly objects: number
  readonly rawCrc32: number
}

/** Blocks that follow each other, inflated, and equal to their CRC-32. Their lines are not inspected yet. */
export interface ReceivedBlocks {
  readonly blocks: readonly ReceivedBlock[]
  /** What they inflate to, one after the other. They may be in memory of a pool. */
  readonly raw: Uint8Array
}
