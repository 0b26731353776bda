/** Numbers from 0 up to 1, the same ones for the same seed (mulberry32). */
export type Random = () => number

export function seeded(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]
}

const KEYS = [
  '"id"',
  '"\\u0069d"',
  '"referencedId"',
  '"referenced\\u0049d"',
  '"__closure"',
  '"\\u005f_closure"',
  '"__proto__"',
  '"a"',
  '"x y"',
  '""',
  '"é\u0085"',
  '"\\ud800"',
  '"\u2028"',
  '"ids"',
]
const STRINGS = [
  '""',
  '"a"',
  '"9d8cac00cbd54aa31f468561f13335d8"',
  '"../x"',
  '"\\u0061b"',
  '"\\""',
  '"\\\\"',
  '"\\/\\b\\f\\n\\r\\t"',
  '"\\ud83c\\udfe0"',
  '"\\ud800"',
  '"\\udc00x"',
  '"é€🏠"',
  '"\u0085"',
  '"x\u2028y\u2029"',
  '"\u00a0\u2027\u202a\u00b0"',
  '"\u007f"',
  '"\ufeff"',
  `"${'long '.repeat(60)}"`,
  '"}, {"',
  `"${'\\u0061'.repeat(512)}"`,
  `"${'i'.repeat(513)}"`,
]
const NUMBERS = ['0', '-0', '1', '-12.50', '1e400', '-1E-400', '0.1e+2', '123456789012345678901234567890', '1.0', '5e0']
const WORDS = ['true', 'false', 'null', '{}', '[]', '[[]]', '[1,-2,3.5]', '[ 1 , 2 ]', '[1,2,"x",3]']
const SPACES = ['', '', '', '', '', ' ', '  ', '\n', '\t', '\r\n  ', ' \n ']

/** The text of an object that is valid JSON, with what is hard about it more often than real ones have it. */
export function randomObjectText(random: Random, depth = 0): string {
  const members = Array.from(
    { length: Math.floor(random() * 5) },
    () =>
      `${space(random)}${pick(random, KEYS)}${space(random)}:${space(random)}${value(random, depth + 1)}${space(random)}`,
  )
  return `{${members.length === 0 ? space(random) : members.join(',')}}`
}

function value(random: Random, depth: number): string {
  const kind = random()
  if (depth < 5 && kind < 0.25) return randomObjectText(random, depth)
  if (depth < 5 && kind < 0.4)
    return `[${Array.from({ length: Math.floor(random() * 4) }, () => space(random) + value(random, depth + 1) + space(random)).join(',')}]`
  return pick(random, kind < 0.7 ? STRINGS : kind < 0.85 ? NUMBERS : WORDS)
}

function space(random: Random): string {
  return pick(random, SPACES)
}

const INSERTS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  '\\',
  '\\u',
  '\\u12g4',
  '\\x',
  '0',
  '-',
  '+',
  '.',
  'e',
  'E',
  '1',
  '01',
  'tru',
  'nul',
  'NaN',
  'Infinity',
  '\u0000',
  '\u001f',
  '\u007f',
  ' ',
  '\n',
  '\t',
  '\u00a0',
  '\ufeff',
  '\u000b',
  '//',
  "'",
  'é',
]
  .map((text) => Buffer.from(text))
  .concat(
    [
      [0xff],
      [0x80],
      [0xc3],
      [0xc0, 0x80],
      [0xe2, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf4, 0x90, 0x80, 0x80],
      [0xf0, 0x9f],
      [0xc2],
      [0xe2],
    ].map((bytes) => Buffer.from(bytes)),
  )

/** The bytes with one or two small injuries. */
export function injured(random: Random, bytes: Uint8Array): Uint8Array {
  const once = injuredOnce(random, bytes)
  return random() < 0.3 ? injuredOnce(random, once) : once
}

function injuredOnce(random: Random, bytes: Uint8Array): Uint8Array {
  const at = Math.floor(random() * (bytes.length + 1))
  const to = Math.min(bytes.length, at + 1 + Math.floor(random() * 3))
  const kind = random()
  if (kind < 0.35) return Buffer.concat([bytes.subarray(0, at), pick(random, INSERTS), bytes.subarray(at)])
  if (kind < 0.6) return Buffer.concat([bytes.subarray(0, at), pick(random, INSERTS), bytes.subarray(to)])
  if (kind < 0.85) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)])
  return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)])
}
