import type { ReusedMemory } from '../object/selection.ts'

/** A run of bytes of this size or more is handed on as it is; smaller ones are copied together. */
const RUN_BYTES_MIN = 131_072
/** Neighbouring pieces are joined to runs up to this size, and small ones are gathered up to a quarter of it. */
const RUN_BYTES_MAX = 1_048_576
const GATHERED_BYTES = RUN_BYTES_MAX / 4
/**
 * This part of the room counts as full: a read fills the room or a little less, and would otherwise wait for the next
 * one, to be copied together with it.
 */
const FULL_SHARE = 2

/**
 * Turns many small pieces into few large buffers, with one copy at most. Pieces that lie side by side in memory, as
 * blocks that were read together do, are joined without a copy.
 */
export class BufferCoalescer {
  readonly #roomBytes: () => number
  readonly #memory: ReusedMemory | undefined
  #small: Uint8Array[] = []
  #smallBytes = 0
  #ready: Uint8Array[] = []
  #runMemory: ArrayBufferLike | undefined
  #runStart = 0
  #runEnd = 0

  /** `roomBytes` returns how much may be held back at the moment. Copies are made in `memory`. */
  constructor(roomBytes: () => number = () => Infinity, memory?: ReusedMemory) {
    this.#roomBytes = roomBytes
    this.#memory = memory
  }

  add(piece: Uint8Array): void {
    if (
      piece.buffer !== this.#runMemory ||
      piece.byteOffset !== this.#runEnd ||
      piece.byteOffset - this.#runStart >= RUN_BYTES_MAX
    ) {
      this.#endRun()
      this.#runMemory = piece.buffer
      this.#runStart = piece.byteOffset
    }
    this.#runEnd = piece.byteOffset + piece.byteLength
  }

  /** The buffers that are large enough to be sent. A large run is not held back for following bytes. */
  take(): Uint8Array[] {
    if (this.#runEnd - this.#runStart >= RUN_BYTES_MIN) this.#endRun()
    if (this.#smallBytes + this.#runEnd - this.#runStart >= this.#roomBytes() / FULL_SHARE) return this.takeAll()
    return this.#takeReady()
  }

  /** All that is left. */
  takeAll(): Uint8Array[] {
    this.#endRun()
    this.#endGathering()
    return this.#takeReady()
  }

  #takeReady(): Uint8Array[] {
    const ready = this.#ready
    this.#ready = []
    return ready
  }

  #endRun(): void {
    const memory = this.#runMemory
    if (memory === undefined) return
    const run = new Uint8Array(memory, this.#runStart, this.#runEnd - this.#runStart)
    this.#runMemory = undefined
    this.#runStart = this.#runEnd
    if (run.length >= RUN_BYTES_MIN) {
      this.#endGathering()
      this.#ready.push(run)
      return
    }
    this.#small.push(run)
    this.#smallBytes += run.length
    if (this.#smallBytes >= GATHERED_BYTES) this.#endGathering()
  }

  #endGathering(): void {
    if (this.#smallBytes === 0) return
    this.#ready.push(this.#small.length === 1 ? this.#small[0] : this.#gathered())
    this.#small = []
    this.#smallBytes = 0
  }

  #gathered(): Uint8Array {
    const gathered = this.#memory?.take(this.#smallBytes) ?? new Uint8Array(this.#smallBytes)
    let at = 0
    for (const part of this.#small) {
      gathered.set(part, at)
      at += part.length
      this.#memory?.giveBack(part)
    }
    return gathered
  }
}
