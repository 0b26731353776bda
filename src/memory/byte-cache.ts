interface Slot<V> {
  readonly value: Promise<V>
  bytes: number
}

/**
 * Least-recently-used values under a bound of bytes. Concurrent callers share a value that is being loaded; one that
 * fails to load is not kept.
 */
export class ByteCache<V> {
  readonly #capacityBytes: number
  readonly #sizeOf: (value: V) => number
  readonly #slots = new Map<string, Slot<V>>()
  #heldBytes = 0

  constructor(capacityBytes: number, sizeOf: (value: V) => number) {
    this.#capacityBytes = capacityBytes
    this.#sizeOf = sizeOf
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  get(key: string, load: () => Promise<V>): Promise<V> {
    const held = this.#slots.get(key)
    if (held !== undefined) {
      this.#slots.delete(key)
      this.#slots.set(key, held)
      return held.value
    }
    const slot: Slot<V> = { value: load(), bytes: 0 }
    this.#slots.set(key, slot)
    slot.value.then(
      (value) => this.#loaded(key, slot, this.#sizeOf(value)),
      () => this.delete(key, slot.value),
    )
    return slot.value
  }

  /** The value, if it is here or on its way; it does not count as used. */
  peek(key: string): Promise<V> | undefined {
    return this.#slots.get(key)?.value
  }

  /** Forgets the value; with `value`, as `get` returned it, only if it is still that one. */
  delete(key: string, value?: Promise<V>): void {
    const slot = this.#slots.get(key)
    if (slot === undefined || (value !== undefined && slot.value !== value)) return
    this.#slots.delete(key)
    this.#heldBytes -= slot.bytes
  }

  clear(): void {
    this.#slots.clear()
    this.#heldBytes = 0
  }

  #loaded(key: string, slot: Slot<V>, bytes: number): void {
    if (this.#slots.get(key) !== slot) return
    slot.bytes = bytes
    this.#heldBytes += bytes
    for (const [oldest, candidate] of this.#slots) {
      if (this.#heldBytes <= this.#capacityBytes) return
      if (candidate.bytes > 0) this.delete(oldest)
    }
  }
}
