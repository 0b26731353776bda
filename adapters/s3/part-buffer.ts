const SLAB_BYTES = 262_144
const EMPTY = new Uint8Array(0)

/** The next bytes of some content, in slabs that are filled again: memory grows with what came, and no further. */
export class PartBuffer {
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #slabs: Buffer[] = []
  /** What is left of the chunk at hand, which is the producer's until the next one is asked for. */
  #rest: Uint8Array = EMPTY
  #isOver = false
  #sizeBytes = 0

  constructor(content: AsyncIterable<Uint8Array>) {
    this.#chunks = content[Symbol.asyncIterator]()
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** The bytes at hand, until the next call of `fill` or `clear`. */
  get slices(): Uint8Array[] {
    const last = Math.ceil(this.#sizeBytes / SLAB_BYTES) - 1
    return this.#slabs
      .slice(0, last + 1)
      .map((slab, at) => (at === last ? slab.subarray(0, this.#sizeBytes - last * SLAB_BYTES) : slab))
  }

  /** Takes bytes until it holds so many, or the content is over. Returns whether there is more. */
  async fill(sizeBytes: number): Promise<boolean> {
    while (await this.#hasRest()) {
      if (this.#sizeBytes === sizeBytes) return true
      this.#take(sizeBytes - this.#sizeBytes)
    }
    return false
  }

  clear(): void {
    this.#sizeBytes = 0
  }

  async #hasRest(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#isOver) {
      const next = await this.#chunks.next()
      if (next.done === true) this.#isOver = true
      else this.#rest = next.value
    }
    return this.#rest.length > 0
  }

  #take(bytesMax: number): void {
    const number = Math.floor(this.#sizeBytes / SLAB_BYTES)
    const at = this.#sizeBytes % SLAB_BYTES
    const slab = (this.#slabs[number] ??= Buffer.allocUnsafeSlow(SLAB_BYTES))
    const taken = this.#rest.subarray(0, Math.min(bytesMax, SLAB_BYTES - at))
    slab.set(taken, at)
    this.#sizeBytes += taken.length
    this.#rest = this.#rest.subarray(taken.length)
  }
}
