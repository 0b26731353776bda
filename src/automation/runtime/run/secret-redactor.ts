import type { JsonValue } from '../../author/run-data.ts'
import { Decodings } from './decodings.ts'

const SHOWN = '******'
/** Shorter texts occur in every other word. Removing them would destroy messages, and reveal them. */
const SECRET_LENGTH_MIN = 4
/** Fewer characters of base64 say too little to be taken for a secret. */
const BASE64_LENGTH_MIN = 6
/** Longer secrets are looked for piece by piece: there is a longest pattern that can be run. */
const PIECE_CHARACTERS = 200
/** Shorter lines of a secret of several lines could be anything. */
const LINE_LENGTH_MIN = 8
/** With more pieces than this, a secret is only searched for in its plain spelling. */
const PIECES_MAX = 80
/** As in `\u0041`. */
const ESCAPE_DIGITS_MAX = 4

type Spell = (character: string) => string

/** One way to write a piece of a secret. */
interface Spelling {
  /** Made when a text first needs it: to make all for each run takes longer than many runs do. */
  readonly pattern: () => string
  /** Whether upper and lower case are the same. */
  readonly anyCase?: true
  /** No text that is shorter holds it. */
  readonly lengthMin: number
  /** Whether a text may hold it. This check is quick where the pattern is slow: most texts end here. */
  readonly isIn: (readings: Decodings) => boolean
}

/**
 * Removes secrets from texts by their value, in many spellings: as they are and backwards, in small and large letters,
 * with any of their characters percent-encoded (RFC 3986 section 2.1) or escaped as in JSON (RFC 8259 section 7), as
 * hexadecimal digits, and within base64 or base64url (RFC 4648) of a longer text. Secrets of fewer than four characters
 * stay.
 */
export class SecretRedactor {
  readonly #spellings: readonly Spelling[]
  readonly #plain: readonly string[]
  readonly #patterns = new Map<Spelling, RegExp>()

  constructor(secrets: readonly string[]) {
    const removed = [...new Set(secrets.flatMap((secret) => [secret, ...linesOf(secret)]))]
      .filter(({ length }) => length >= SECRET_LENGTH_MIN)
      .sort((a, b) => b.length - a.length)
    const pieces = removed.flatMap(piecesOf)
    this.#plain = [...new Set([...removed, ...pieces])]
    this.#spellings = pieces.flatMap(spellingsOf)
  }

  /** The text without the secrets. Takes time linear in the text, even if the text nearly holds one. */
  text(text: string): string {
    let clean = text
    for (const secret of this.#plain) if (secret.length <= clean.length) clean = clean.replaceAll(secret, SHOWN)
    let readings = new Decodings(clean)
    for (const spelling of this.#spellings) {
      if (clean.length < spelling.lengthMin || !spelling.isIn(readings)) continue
      clean = clean.replace(this.#compiled(spelling), SHOWN)
      readings = new Decodings(clean)
    }
    return clean === text ? text : clean.replace(/(?:\*{6})+/g, SHOWN)
  }

  /** The same with every text in it, names of members included. */
  json<T extends JsonValue>(value: T): T {
    return (this.#plain.length === 0 ? value : this.#json(value)) as T
  }

  #compiled(spelling: Spelling): RegExp {
    const compiled =
      this.#patterns.get(spelling) ?? new RegExp(spelling.pattern(), spelling.anyCase === true ? 'gi' : 'g')
    this.#patterns.set(spelling, compiled)
    return compiled
  }

  #json(value: JsonValue): JsonValue {
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return (value as readonly JsonValue[]).map((item) => this.#json(item))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [this.text(name), this.#json(inner)]))
  }
}

/** Logs show a key of several lines one by one. */
function linesOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/)
  return lines.length === 1 ? [] : lines.filter(({ length }) => length >= LINE_LENGTH_MIN).slice(0, PIECES_MAX)
}

/** As long as can be matched; the last one is not shorter than a secret may be. */
function piecesOf(secret: string): string[] {
  const characters = Array.from(secret)
  const count = Math.ceil(characters.length / PIECE_CHARACTERS)
  const length = Math.ceil(characters.length / count)
  return Array.from({ length: Math.min(count, PIECES_MAX) }, (_, at) =>
    characters.slice(at * length, (at + 1) * length).join(''),
  )
}

function spellingsOf(piece: string): Spelling[] {
  const bytes = Buffer.from(piece)
  const hex = bytes.toString('hex')
  const spelled = (spell: Spell) => (): string => Array.from(piece, spell).join('')
  return [
    ...[piece, Array.from(piece).toReversed().join('')].map(inAnyCase),
    { lengthMin: piece.length, pattern: spelled(plainPattern), isIn: mayBePercentEncodedIn(piece) },
    { lengthMin: piece.length, pattern: spelled(escapedPattern), isIn: mayBeEscapedIn(piece) },
    { lengthMin: hex.length, pattern: () => anyCase(hex), isIn: ({ lowerCase }) => lowerCase.includes(hex) },
    ...base64Spellings(bytes),
  ]
}

function inAnyCase(text: string): Spelling {
  const sought = text.toLowerCase()
  return {
    lengthMin: text.length,
    pattern: () => quoted(text),
    anyCase: true,
    isIn: ({ lowerCase }) => lowerCase.includes(sought),
  }
}

/** If a character can be read in two ways, no reading decides, and the pattern has to. */
function mayBePercentEncodedIn(piece: string): Spelling['isIn'] {
  const sought = sureOf(piece)
  if (piece.includes('%') || /\+.* | .*\+|\p{Surrogate}/su.test(piece))
    return ({ percent, form }) => percent !== undefined || form !== undefined
  if (piece.includes(' '))
    return ({ percent, form }) => percent?.includes(sought) === true || form?.includes(sought) === true
  return ({ percent }) => percent?.includes(sought) === true
}

function mayBeEscapedIn(piece: string): Spelling['isIn'] {
  const sought = sureOf(piece)
  return ({ escaped, escapedTwice }) => escaped?.includes(sought) === true || escapedTwice?.includes(sought) === true
}

/**
 * The part that a reading has certainly kept: a backslash or a percent sign before the piece may have taken its first
 * characters for an escape.
 */
function sureOf(piece: string): string {
  return piece.length < ESCAPE_DIGITS_MAX * 2 ? '' : piece.slice(ESCAPE_DIGITS_MAX)
}

/** A character as itself, or percent-encoded. */
function plainPattern(character: string): string {
  const percent = anyCase(Buffer.from(character).toString('hex').replace(/../g, '%$&'))
  return `(?:${quoted(character)}|${percent}${character === ' ' ? '|\\+' : ''})`
}

/**
 * A character as it appears within a JSON string, or in a text that `util.inspect` shows. This differs from the other
 * pattern: if a backslash may be one or two, a long row of them can be read in too many ways.
 */
function escapedPattern(character: string): string {
  const unicode = Array.from(
    { length: character.length },
    (_, at) => `\\\\u${anyCase(character.charCodeAt(at).toString(16).padStart(4, '0'))}`,
  ).join('')
  const others =
    character === '"'
      ? '|"'
      : /[/'`]/.test(character)
        ? `|\\\\${character}`
        : /\p{Cc}/u.test(character)
          ? `|\\\\x${anyCase(character.charCodeAt(0).toString(16).padStart(2, '0'))}`
          : ''
  return `(?:${quoted(JSON.stringify(character).slice(1, -1))}|${unicode}${others})`
}

/** The base64 spellings of these bytes at any offset: the characters that depend on no neighbouring byte. */
function base64Spellings(bytes: Buffer): Spelling[] {
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const sure = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    if (sure.length < BASE64_LENGTH_MIN) return []
    return [
      {
        lengthMin: sure.length,
        pattern: () => Array.from(sure, base64Pattern).join(''),
        isIn: ({ base64 }: Decodings) => base64.includes(sure),
      },
    ]
  })
}

function base64Pattern(character: string): string {
  if (character === '+') return '(?:[+-]|%2[bB])'
  return character === '/' ? '(?:[/_]|%2[fF])' : character
}

function anyCase(text: string): string {
  return text.replace(/[a-f]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
}

function quoted(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
