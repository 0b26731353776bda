/** Strings of some 100 bytes each. */
const KEYS_MAX = 16_384
const IS_ABSENT = 0

/**
 * Keys that were looked for and are not there. An upload asks for the records of its objects, and inserts records for
 * those that it did not find: the database need not be asked again, and asking for what it lacks is what costs most in a
 * large one.
 *
 * One writer makes all changes, and says so before each. So a key is absent until it is written, if it was neither
 * written while it was looked for nor being written when that began.
 */
export class AbsentKeys {
  /** `IS_ABSENT`, or the number of the search that is looking for the key. The oldest come first. */
  readonly #keys = new Map<string, number>()
  #beingWritten: ReadonlyMap<string, unknown> = new Map()
  #searches = 0

  has(key: string): boolean {
    return this.#keys.get(key) === IS_ABSENT
  }

  /** Looks for keys by `read`, and notes those without a value. */
  async noteAbsent<V>(
    keys: readonly string[],
    read: () => Promise<readonly (V | undefined)[]>,
  ): Promise<readonly (V | undefined)[]> {
    const search = ++this.#searches
    for (const key of keys) if (!this.#keys.has(key) && !this.#beingWritten.has(key)) this.#keys.set(key, search)
    this.#forgetOldest()
    let values: readonly (V | undefined)[] | undefined
    try {
      values = await read()
      return values
    } finally {
      for (const [at, key] of keys.entries()) {
        if (this.#keys.get(key) !== search) continue
        if (values !== undefined && values[at] === undefined) this.#keys.set(key, IS_ABSENT)
        else this.#keys.delete(key)
      }
    }
  }

  /** To be called before the keys of this map are written. */
  beginWrite(writes: ReadonlyMap<string, unknown>): void {
    for (const key of writes.keys()) this.#keys.delete(key)
    this.#beingWritten = writes
  }

  /** To be called when a search would find what was written, or the write has failed. */
  endWrite(): void {
    this.#beingWritten = new Map()
  }

  #forgetOldest(): void {
    for (const key of this.#keys.keys()) {
      if (this.#keys.size <= KEYS_MAX) return
      this.#keys.delete(key)
    }
  }
}
