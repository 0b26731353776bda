/** Strings of some 100 bytes each. */
const KEYS_MAX = 16_384
/** A search during which more writes begin notes nothing: it would keep the keys of all of them. */
const WRITES_MAX = 8

interface Search {
  /** The keys of each write that it may have missed; `undefined` in place of too many writes. */
  missed: readonly ReadonlySet<string>[] | undefined
}

/**
 * Keys that were looked for and are not there. An upload asks for the records of its objects, and inserts records for
 * those that it did not find: the database need not be asked again, and asking for what it lacks is what costs most in a
 * large one.
 *
 * One writer makes all changes, and says so before each. So a key is absent until it is written, if it was neither
 * written while it was looked for nor being written when that began.
 */
export class AbsentKeys {
  /** The oldest come first. */
  readonly #keys = new Set<string>()
  readonly #searches = new Set<Search>()
  #beingWritten: ReadonlySet<string> = new Set()

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  /** Looks for keys by `read`, and notes those without a value. */
  async noteAbsent<V>(
    keys: readonly Uint8Array[],
    read: () => Promise<readonly (V | undefined)[]>,
  ): Promise<readonly (V | undefined)[]> {
    const search: Search = { missed: [this.#beingWritten] }
    this.#searches.add(search)
    try {
      const values = await read()
      if (search.missed !== undefined) this.#note(keys, values, search.missed)
      return values
    } finally {
      this.#searches.delete(search)
    }
  }

  /** To be called before these keys are written. */
  beginWrite(keys: ReadonlySet<string>): void {
    for (const key of keys) this.#keys.delete(key)
    this.#beingWritten = keys
    for (const search of this.#searches)
      if (search.missed !== undefined)
        search.missed = search.missed.length === WRITES_MAX ? undefined : [...search.missed, keys]
  }

  /** To be called when a search would find what was written, or the write has failed. */
  endWrite(): void {
    this.#beingWritten = new Set()
  }

  #note(keys: readonly Uint8Array[], values: readonly unknown[], missed: readonly ReadonlySet<string>[]): void {
    const written = missed.filter(({ size }) => size > 0)
    for (let at = 0; at < keys.length; at++) {
      if (values[at] !== undefined) continue
      const key = textOf(keys[at])
      if (!written.some((by) => by.has(key))) this.#keys.add(key)
    }
    this.#forgetOldest()
  }

  #forgetOldest(): void {
    for (const key of this.#keys) {
      if (this.#keys.size <= KEYS_MAX) return
      this.#keys.delete(key)
    }
  }
}

/** A key as maps have it. */
export function textOf(key: Uint8Array): string {
  return (key instanceof Buffer ? key : Buffer.from(key.buffer, key.byteOffset, key.length)).toString('latin1')
}
