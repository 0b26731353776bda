import type { HashKey } from '../environment.ts'
import { DIGIT_PAIRS, PACKED_ID_BYTES } from './hex-id.ts'

/**
 * HalfSipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 32-bit variant) under a random key:
 * clients choose ids, and with a hash that they can predict they could make every look-up walk the whole table.
 * `isSecond` gives 32 other bits.
 */
export function hashBytes(source: Uint8Array, start: number, end: number, key: HashKey, isSecond = false): number {
  return halfSipHash(source, start, end, false, key, isSecond) >>> 0
}

/** The hash of the 32 digits that the 16 bytes from `start` on stand for. */
export function hashPackedId(packed: Uint8Array, start: number, key: HashKey): number {
  return halfSipHash(packed, start, start + PACKED_ID_BYTES, true, key, false) >>> 0
}

/**
 * `isPacked`: each byte stands for two digits, and the number of bytes is even. The result is signed, so that it is a
 * small integer of V8. Most unsigned ones are not, and each would take memory of its own.
 */
function halfSipHash(
  source: Uint8Array,
  start: number,
  end: number,
  isPacked: boolean,
  { low, high }: HashKey,
  isSecond: boolean,
): number {
  const length = isPacked ? 2 * (end - start) : end - start
  let v0 = low
  let v1 = isSecond ? high ^ 0xee : high
  let v2 = low ^ 0x6c796765
  let v3 = high ^ 0x74656462
  let at = start
  let word = 0
  for (let rounds = (length >> 2) + 4; rounds > 0; rounds--) {
    if (rounds > 4) {
      if (isPacked) {
        word = DIGIT_PAIRS[source[at]] | (DIGIT_PAIRS[source[at + 1]] << 16)
        at += 2
      } else {
        word = source[at] | (source[at + 1] << 8) | (source[at + 2] << 16) | (source[at + 3] << 24)
        at += 4
      }
    } else if (rounds === 4) {
      word = length << 24
      for (let shift = 0; at < end; at++, shift += 8) word |= source[at] << shift
    } else {
      if (rounds === 3) v2 ^= 0xff
      word = 0
    }
    v3 ^= word
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    v0 ^= word
  }
  return v1 ^ v3
}
