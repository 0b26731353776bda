/**
 * Turns an ECMAScript pattern with the flag `u` into an RE2 pattern that finds the same texts. The two share most of
 * their syntax but differ in unexpected places: `.`, `\s`, `[` inside a class, escapes and names of properties. The
 * pattern must have passed `new RegExp(pattern, 'u')`.
 */
export class PatternUnsupported extends Error {}

/** ECMAScript WhiteSpace and LineTerminator (ECMA-262, section 22.2.2.9); RE2 knows only five of them. */
const WHITE_SPACE =
  '\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}'
const NOT_WHITE_SPACE =
  '\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}' +
  '\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}'
const ANY_BUT_LINE_ENDS = '[^\\x{a}\\x{d}\\x{2028}\\x{2029}]'
const ANYTHING = '[\\x{0}-\\x{10ffff}]'
const NOTHING = '[^\\x{0}-\\x{10ffff}]'

const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 }

/**
 * One escape: `\cX`, `\xHH`, `\uHHHH` (a pair of surrogates is one character), `\u{H}`, `\p{...}`, `\k<...>`, or a
 * backslash and one character.
 */
const ESCAPE =
  /\\(?:c(?<control>[A-Za-z])|x(?<byte>[0-9A-Fa-f]{2})|u(?<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})|u(?<unit>[0-9A-Fa-f]{4})|u\{(?<point>[0-9A-Fa-f]+)\}|(?<not>[pP])\{(?<property>[^}]*)\}|(?<single>[^]))/uy

/**
 * The meaning of one escape or character: one code point, or a set that is written out, for use inside or outside a
 * class.
 */
type Atom = { readonly point: number } | { readonly inClass: string; readonly alone: string }

export function translatePattern(pattern: string): string {
  const parts: string[] = []
  for (let at = 0; at < pattern.length;) {
    const [part, next] = translateNext(pattern, at)
    parts.push(part)
    at = next
  }
  return parts.join('')
}

function translateNext(pattern: string, at: number): readonly [part: string, next: number] {
  const char = pattern[at]
  if (char === '.') return [ANY_BUT_LINE_ENDS, at + 1]
  if (char === '[') return translateClass(pattern, at + 1)
  if (char === '(') return ['(?:', skipGroupStart(pattern, at)]
  if ('^$|)*+?{},0123456789'.includes(char)) return [char, at + 1]
  if (char === '\\' && (pattern[at + 1] === 'b' || pattern[at + 1] === 'B')) return [pattern.slice(at, at + 2), at + 2]
  const [atom, next] = readAtom(pattern, at, false)
  return ['point' in atom ? hex(atom.point) : atom.alone, next]
}

/** Groups capture nothing here, so every kind that RE2 has becomes the plain one. */
function skipGroupStart(pattern: string, at: number): number {
  const start = pattern.slice(at, at + 4)
  if (!start.startsWith('(?')) return at + 1
  if (start.startsWith('(?:')) return at + 3
  if (start.startsWith('(?=') || start.startsWith('(?!') || start.startsWith('(?<=') || start.startsWith('(?<!')) {
    throw new PatternUnsupported('uses lookaround, which cannot be run in linear time; write it without')
  }
  if (start.startsWith('(?<')) return pattern.indexOf('>', at) + 1
  throw new PatternUnsupported('uses modifiers of flags; write the classes of characters out, such as [Aa]')
}

function translateClass(pattern: string, start: number): readonly [part: string, next: number] {
  const negated = pattern[start] === '^'
  const parts: string[] = []
  let at = negated ? start + 1 : start
  while (pattern[at] !== ']') {
    const [first, next] = readAtom(pattern, at, true)
    const isRange = pattern[next] === '-' && pattern[next + 1] !== ']'
    const [last, end] = isRange ? readAtom(pattern, next + 1, true) : [first, next]
    parts.push(writeRange(first, last))
    at = end
  }
  if (parts.length === 0) return [negated ? ANYTHING : NOTHING, at + 1]
  return [`[${negated ? '^' : ''}${parts.join('')}]`, at + 1]
}

function writeRange(first: Atom, last: Atom): string {
  if (!('point' in first)) return first.inClass
  return first === last || !('point' in last) ? hex(first.point) : `${hex(first.point)}-${hex(last.point)}`
}

function readAtom(pattern: string, at: number, inClass: boolean): readonly [Atom, number] {
  if (pattern[at] === '\\') return readEscape(pattern, at, inClass)
  const point = pattern.codePointAt(at) ?? 0
  return [{ point }, at + (point > 0xffff ? 2 : 1)]
}

function readEscape(pattern: string, at: number, inClass: boolean): readonly [Atom, number] {
  ESCAPE.lastIndex = at
  const groups = ESCAPE.exec(pattern)?.groups ?? {}
  const next = ESCAPE.lastIndex
  if (groups.single !== undefined) return [readSingleEscape(groups.single, inClass), next]
  if (groups.property !== undefined) return [propertySet(groups.not, groups.property), next]
  if (groups.control !== undefined) return [{ point: groups.control.charCodeAt(0) % 32 }, next]
  if (groups.high !== undefined)
    return [
      {
        point: 0x10000 + ((Number.parseInt(groups.high, 16) - 0xd800) << 10) + Number.parseInt(groups.low, 16) - 0xdc00,
      },
      next,
    ]
  return [{ point: Number.parseInt(groups.byte ?? groups.unit ?? groups.point, 16) }, next]
}

function readSingleEscape(char: string, inClass: boolean): Atom {
  if (char === 's') return { inClass: WHITE_SPACE, alone: `[${WHITE_SPACE}]` }
  if (char === 'S') return { inClass: NOT_WHITE_SPACE, alone: `[${NOT_WHITE_SPACE}]` }
  if ('dDwW'.includes(char)) return { inClass: `\\${char}`, alone: `\\${char}` }
  if (inClass && char === 'b') return { point: 8 }
  if (char === 'k' || (char >= '1' && char <= '9'))
    throw new PatternUnsupported('refers back to a group, which cannot be run in linear time; write it without')
  return { point: CONTROLS[char] ?? char.codePointAt(0) ?? 0 }
}

/** RE2 has the values of General_Category and Script under their own names. */
function propertySet(letter: string, property: string): Atom {
  const name = property.replace(/^(?:General_Category|gc|Script|sc)=/u, '')
  if (name.includes('='))
    throw new PatternUnsupported('uses a property of characters other than General_Category and Script')
  return { inClass: `\\${letter}{${name}}`, alone: `\\${letter}{${name}}` }
}

function hex(point: number): string {
  return `\\x{${point.toString(16)}}`
}
