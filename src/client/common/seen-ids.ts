const HEX_ID = /^[0-9a-f]{32}$/
const WORDS = 4
const SLOTS_MIN = 64

/**
 * A set of ids whose memory only grows. Ids of 32 hex digits, the usual ones, cost 16 bytes in a table that is at most
 * half full, while a `Set` of strings costs about 100: a download of a million objects remembers all that it has seen.
 * Exact, like any set.
 */
export class SeenIds {
  readonly #others = new Set<string>()
  /** Random odd numbers, so that nobody can choose colliding ids. */
  readonly #keys: Uint32Array = crypto.getRandomValues(new Uint32Array(WORDS)).map((key) => key | 1)
  readonly #wanted = new Uint32Array(WORDS)
  #table = new Uint32Array(SLOTS_MIN * WORDS)
  #inTable = 0
  /** A slot of zeros is an empty one, so the id of zeros is kept here. */
  #hasZero = false

  get size(): number {
    return this.#others.size + this.#inTable + (this.#hasZero ? 1 : 0)
  }

  has(id: string): boolean {
    if (!HEX_ID.test(id)) return this.#others.has(id)
    this.#parse(id)
    return isZero(this.#wanted, 0) ? this.#hasZero : !isZero(this.#table, this.#slotOf(this.#wanted, 0))
  }

  /** Whether the id was new. */
  add(id: string): boolean {
    if (this.has(id)) return false
    if (!HEX_ID.test(id)) {
      this.#others.add(copied(id))
    } else if (isZero(this.#wanted, 0)) {
      this.#hasZero = true
    } else {
      if ((this.#inTable + 1) * 2 * WORDS > this.#table.length) this.#grow()
      this.#table.set(this.#wanted, this.#slotOf(this.#wanted, 0))
      this.#inTable += 1
    }
    return true
  }

  /** Whether the id was in the set. */
  delete(id: string): boolean {
    if (!this.has(id)) return false
    if (!HEX_ID.test(id)) return this.#others.delete(id)
    if (isZero(this.#wanted, 0)) {
      this.#hasZero = false
    } else {
      this.#inTable -= 1
      this.#free(this.#slotOf(this.#wanted, 0))
    }
    return true
  }

  /** All of them, in no order. Nothing may be added meanwhile. */
  *ids(): Generator<string, void, undefined> {
    yield* this.#others
    if (this.#hasZero) yield '0'.repeat(WORDS * 8)
    for (let at = 0; at < this.#table.length; at += WORDS) {
      if (isZero(this.#table, at)) continue
      yield Array.from(this.#table.subarray(at, at + WORDS), (word) => word.toString(16).padStart(8, '0')).join('')
    }
  }

  #parse(id: string): void {
    for (let word = 0; word < WORDS; word++) this.#wanted[word] = Number.parseInt(id.slice(word * 8, word * 8 + 8), 16)
  }

  /** The slot of these words, or the empty slot for them. */
  #slotOf(source: Uint32Array, from: number): number {
    const slots = this.#table.length / WORDS
    let hash = 0
    for (let word = 0; word < WORDS; word++)
      hash = Math.imul(hash ^ source[from + word], this.#keys[word]) ^ (hash >>> 15)
    let slot = (hash >>> 0) % slots
    while (!isZero(this.#table, slot * WORDS) && !isSame(this.#table, slot * WORDS, source, from))
      slot = slot + 1 === slots ? 0 : slot + 1
    return slot * WORDS
  }

  /**
   * Empties a slot and moves the following ones, up to the next empty one, to the places that they would have without
   * it.
   */
  #free(at: number): void {
    this.#table.fill(0, at, at + WORDS)
    const { length } = this.#table
    const moved = new Uint32Array(WORDS)
    for (let next = (at + WORDS) % length; !isZero(this.#table, next); next = (next + WORDS) % length) {
      moved.set(this.#table.subarray(next, next + WORDS))
      this.#table.fill(0, next, next + WORDS)
      this.#table.set(moved, this.#slotOf(moved, 0))
    }
  }

  #grow(): void {
    const old = this.#table
    this.#table = new Uint32Array(old.length * 2)
    for (let at = 0; at < old.length; at += WORDS) {
      if (!isZero(old, at)) this.#table.set(old.subarray(at, at + WORDS), this.#slotOf(old, at))
    }
  }
}

/** A part of a text keeps the whole text in memory; a copy does not. */
function copied(id: string): string {
  return JSON.parse(JSON.stringify(id)) as string
}

function isZero(words: Uint32Array, at: number): boolean {
  return (words[at] | words[at + 1] | words[at + 2] | words[at + 3]) === 0
}

function isSame(left: Uint32Array, at: number, right: Uint32Array, from: number): boolean {
  return (
    left[at] === right[from] &&
    left[at + 1] === right[from + 1] &&
    left[at + 2] === right[from + 2] &&
    left[at + 3] === right[from + 3]
  )
}
