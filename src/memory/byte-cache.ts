interface Slot<V> {
  readonly value: Promise<V>
  loaded?: { readonly value: V }
  bytes: number
}

/**
 * Least-recently-used values under a bound of bytes. Concurrent callers share a value that is being loaded; one that
 * fails to load is not kept.
 */
export class ByteCache<V> {
  readonly #capacityBytes: number
  readonly #sizeOf: (value: V) => number
  readonly #onForgotten: (key: string, value: V) => void
  readonly #slots = new Map<string, Slot<V>>()
  #heldBytes = 0

  /** `onForgotten` receives each value that had been loaded and is no longer kept. */
  constructor(
    capacityBytes: number,
    sizeOf: (value: V) => number,
    onForgotten: (key: string, value: V) => void = () => undefined,
  ) {
    this.#capacityBytes = capacityBytes
    this.#sizeOf = sizeOf
    this.#onForgotten = onForgotten
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
      (value) => this.#loaded(key, slot, value),
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
    if (slot.loaded !== undefined) this.#onForgotten(key, slot.loaded.value)
  }

  clear(): void {
    for (const key of this.#slots.keys()) this.delete(key)
  }

  #loaded(key: string, slot: Slot<V>, value: V): void {
    if (this.#slots.get(key) !== slot) return
    slot.loaded = { value }
    slot.bytes = this.#sizeOf(value)
    this.#heldBytes += slot.bytes
    for (const [oldest, candidate] of this.#slots) {
      if (this.#heldBytes <= this.#capacityBytes) return
      if (candidate.bytes > 0) this.delete(oldest)
    }
  }
}
