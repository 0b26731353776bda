/** A small deterministic random number generator: the same seed gives the same model on every machine. */
export interface Random {
  /** An integer from 0 up to, not including, `bound`. */
  below(bound: number): number
  /** True once in `times` draws on average. */
  oneIn(times: number): boolean
  pick<T>(values: readonly T[]): T
}

/**
 * Numbers from a mixed counter, seeded with all of `seeds`: streams of different seeds are independent, so that one
 * element never moves another.
 */
export function createRandom(...seeds: readonly number[]): Random {
  let state = seeds.reduce((mixed, seed) => mix(mixed ^ mix(seed)), 0x9e3779b9)
  const below = (bound: number): number => {
    state = (state + 0x9e3779b9) | 0
    return Math.floor((mix(state) / 4_294_967_296) * bound)
  }
  return {
    below,
    oneIn: (times) => below(1_048_576) * times < 1_048_576,
    pick: (values) => values[below(values.length)],
  }
}

/** The finisher of MurmurHash3: no two values meet in one. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
