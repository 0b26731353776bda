import { createHash } from 'node:crypto'

/**
 * Names the contents of a closure, wherever they lie: 32 hex digits of the SHA-256 of the number of objects, the bytes
 * of their lines, and two sums over the checksums of their texts. The sums do not depend on the order of the objects,
 * so a merge of packs or a reindex changes nothing, and a file that holds the closure has the same digest. No id is
 * hashed: the closures that are compared are of one root, and while nothing is collected such a closure can only grow.
 */
export class ContentDigest {
  #objects = 0
  #totalBytes = 0
  #sum = 0
  #mixedSum = 0

  /**
   * Each object of the closure must be added once. `lineBytes` is the length of `<id> TAB <json> LF`, and `textCrc32` the
   * CRC-32 (RFC 1952) of the JSON alone.
   */
  add(lineBytes: number, textCrc32: number): void {
    this.#objects++
    this.#totalBytes += lineBytes
    this.#sum = (this.#sum + textCrc32) >>> 0
    this.#mixedSum = (this.#mixedSum + mixed(textCrc32, lineBytes)) >>> 0
  }

  digest(): string {
    const facts = [this.#objects, this.#totalBytes, this.#sum, this.#mixedSum]
    return createHash('sha256').update(facts.join(' ')).digest('hex').slice(0, 32)
  }
}

/** Not linear in the checksum, so that the two sums are independent. */
function mixed(textCrc32: number, lineBytes: number): number {
  const product = Math.imul(textCrc32 ^ Math.imul(lineBytes, 0x9e3779b1), 0x85ebca6b)
  return Math.imul(product ^ (product >>> 15), 0xc2b2ae35)
}
