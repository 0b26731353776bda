/** Work that belongs to the same key is done one after the other. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** Rejects as `work` does, without blocking the next caller. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const settled = mine.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(key, settled)
    try {
      return await mine
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    }
  }
}
