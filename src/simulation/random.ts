/**
 * A seeded generator of pseudo-random numbers (sfc32, Chris Doty-Humphrey's "small fast counting" generator): the same
 * seed, the same numbers.
 */
export class Random {
  readonly #seed: number
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number) {
    this.#seed = seed
    this.#a = seed | 0
    this.#b = Math.floor(seed / 2 ** 32) | 0
    this.#c = 0x9e3779b9 | 0
    for (let round = 0; round < 15; round++) this.uint32()
  }

  /** A generator of its own for each name: what one part draws changes nothing for the others. */
  fork(name: string): Random {
    let hash = 0x811c9dc5 ^ this.#seed
    for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
    return new Random((hash >>> 0) + 2 ** 32 * (this.#seed >>> 0))
  }

  /** 0 to 2^32 - 1. */
  uint32(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** 0 to `count - 1`. */
  below(count: number): number {
    return Math.floor((this.uint32() / 2 ** 32) * count)
  }

  /** `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.uint32() < probability * 2 ** 32
  }

  /** One of the items. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]
  }

  /** The items in another order. */
  shuffled<T>(items: readonly T[]): T[] {
    const shuffled = [...items]
    for (let at = shuffled.length - 1; at > 0; at--) {
      const other = this.below(at + 1)
      ;[shuffled[at], shuffled[other]] = [shuffled[other], shuffled[at]]
    }
    return shuffled
  }

  /** So many random bytes. */
  bytes(sizeBytes: number): Uint8Array {
    const bytes = new Uint8Array(sizeBytes)
    for (let at = 0; at < sizeBytes; at++) bytes[at] = this.uint32() >>> 24
    return bytes
  }
}
