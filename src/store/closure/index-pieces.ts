import type { BufferPool } from '../../memory/buffer-pool.ts'

const PIECE_BYTES_MAX = 1_048_576
/** What is kept begins at a multiple of this, so that numbers can lie there. */
const ALIGNMENT_BYTES = 4

/** The source of an index's memory: without it packs are left out. */
export interface IndexMemory {
  readonly bufferPool: BufferPool
  /** Whether the index may hold so many bytes more. */
  tryHold(bytes: number): boolean
  free(bytes: number): void
}

/**
 * Memory for the ids of many packs, in large pieces that a pool lends. Thousands of small arrays would be garbage when
 * the walk ends, and leave holes between what stays.
 */
export class IndexPieces {
  readonly #memory: IndexMemory
  readonly #pieces: Uint8Array[] = []
  #heldBytes = 0
  #free: Uint8Array = new Uint8Array()

  constructor(memory: IndexMemory) {
    this.#memory = memory
  }

  /** Room for so many bytes, until `keep`; `undefined` if there is no memory for it. */
  reserve(bytes: number): Uint8Array | undefined {
    if (
      bytes > this.#free.length &&
      !this.#add(Math.max(bytes, Math.min(PIECE_BYTES_MAX, this.#heldBytes))) &&
      !this.#add(bytes)
    )
      return undefined
    return this.#free.subarray(0, bytes)
  }

  /** Keeps so many of the bytes that were reserved last. */
  keep(bytes: number): void {
    this.#free = this.#free.subarray(Math.min(this.#free.length, Math.ceil(bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES))
  }

  /** After this, nobody may read or write what was reserved. */
  giveBack(): void {
    for (const piece of this.#pieces.splice(0)) this.#memory.bufferPool.giveBack(piece)
    this.#free = new Uint8Array()
  }

  #add(bytes: number): boolean {
    if (!this.#memory.tryHold(bytes)) return false
    const piece = this.#memory.bufferPool.takeAny(bytes)
    this.#heldBytes += bytes
    this.#pieces.push(piece)
    this.#free = piece
    return true
  }
}
