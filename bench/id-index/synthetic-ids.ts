export const ID_BYTES = 32

const DIGITS = Buffer.from('0123456789abcdef')
const WORD_SEEDS = [0x2545f491, 0x9e3779b9, 0x85ebca6b, 0xc2b2ae35]

/** Writes the id of an object: 32 hex digits that look random, and no two objects have the same ones. */
export function writeId(object: number, target: Uint8Array, start = 0): void {
  let at = start
  for (const seed of WORD_SEEDS) {
    let word = mixed(object ^ seed)
    for (let digit = 0; digit < 8; digit++) {
      target[at++] = DIGITS[word >>> 28]
      word <<= 4
    }
  }
}

export function idOf(object: number): Uint8Array {
  const id = new Uint8Array(ID_BYTES)
  writeId(object, id)
  return id
}

/** The finalizer of MurmurHash3: one to one, and every bit depends on every bit. */
export function mixed(value: number): number {
  let word = value | 0
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35)
  return (word ^ (word >>> 16)) >>> 0
}
