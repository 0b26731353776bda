/** The CRC-32 polynomial of RFC 1952, reflected: the coefficient of x^0 is the highest bit. */
const POLYNOMIAL = 0xedb88320
const ONE = 0x80000000 | 0
const LENGTH_DIGITS = 7

/**
 * `SHIFTS[256 * d + v]` is x^(8 * v * 256^d) modulo the polynomial: the effect of `v * 256^d` following bytes on a
 * CRC-32.
 */
const SHIFTS: Int32Array = shiftTable()

/**
 * The CRC-32 of A followed by B, from the CRC-32 of each and the bytes of B (0 to 2^53 - 1).
 *
 * As in zlib's `crc32_combine`, the CRC of A is multiplied by x^(8 * lengthB) modulo the polynomial and the CRC of B is
 * added. Here the power is the product of one table entry for each byte of `lengthB`: two multiplications for a block
 * of 16 KB, about 0.1 microseconds.
 */
export function crc32Combine(crcA: number, crcB: number, lengthB: number): number {
  let shifted = crcA | 0
  let rest = lengthB
  for (let digit = 0; rest > 0; digit++) {
    const value = rest % 256
    if (value !== 0) shifted = multiply(SHIFTS[256 * digit + value], shifted)
    rest = (rest - value) / 256
  }
  return (shifted ^ crcB) >>> 0
}

/** The product of two polynomials over GF(2) modulo the CRC's; without branches, since the bits are random. */
function multiply(a: number, b: number): number {
  let product = 0
  while (a !== 0) {
    product ^= b & (a >> 31)
    a <<= 1
    b = (b >>> 1) ^ (POLYNOMIAL & -(b & 1))
  }
  return product
}

function shiftTable(): Int32Array {
  const table = new Int32Array(256 * LENGTH_DIGITS)
  let step = ONE >>> 8
  for (let digit = 0; digit < LENGTH_DIGITS; digit++) {
    let power = ONE
    for (let value = 0; value < 256; value++) {
      table[256 * digit + value] = power
      power = multiply(step, power)
    }
    step = power
  }
  return table
}
