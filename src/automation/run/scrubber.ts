import type { JsonValue } from '../run-data.ts'

const SHOWN = '******'
/** Shorter texts stand in every other word: to remove them would destroy messages, and tell what they are. */
const SECRET_LENGTH_MIN = 4
/** Fewer characters of base64 say too little to be taken for a secret. */
const BASE64_LENGTH_MIN = 6
/** Longer secrets are looked for piece by piece: there is a longest pattern that can be run. */
const PIECE_CHARACTERS = 200
/** Beyond so many pieces a secret is looked for as it is. */
const PIECES_MAX = 80

type Spell = (character: string) => string

/** One way to write a piece of a secret. */
interface Spelling {
  /** Found in every text that holds the spelling. It is quick where the other is not: most texts end here. */
  readonly hint: RegExp
  readonly pattern: string
}

/**
 * Removes secrets from texts by their value, in whatever spelling they stand: as they are, with any of their characters percent-encoded (RFC 3986 section 2.1) or
 * escaped as in JSON (RFC 8259 section 7), as hexadecimal digits, and within base64 or base64url (RFC 4648) of a longer text. Secrets of fewer than four
 * characters stay.
 */
export class Scrubber {
  readonly #spellings: readonly Spelling[]
  readonly #plain: readonly string[]
  /** Made when a text first needs them: to compile all for each run takes longer than many runs do. */
  readonly #patterns = new Map<string, RegExp>()

  constructor(secrets: readonly string[]) {
    const removed = [...new Set(secrets)].filter(({ length }) => length >= SECRET_LENGTH_MIN).sort((a, b) => b.length - a.length)
    const pieces = removed.flatMap(piecesOf)
    this.#plain = [...new Set([...removed, ...pieces])]
    this.#spellings = pieces.flatMap(spellingsOf)
  }

  /** The text without the secrets. */
  text(text: string): string {
    if (this.#plain.length === 0) return text
    let clean = text
    for (const secret of this.#plain) clean = clean.replaceAll(secret, SHOWN)
    for (const { hint, pattern } of this.#spellings) if (hint.test(clean)) clean = clean.replace(this.#compiled(pattern), SHOWN)
    return clean === text ? text : clean.replace(/(?:\*{6})+/g, SHOWN)
  }

  /** The same with every text in it, names of members included. */
  json<T extends JsonValue>(value: T): T {
    return (this.#plain.length === 0 ? value : this.#json(value)) as T
  }

  #compiled(pattern: string): RegExp {
    const compiled = this.#patterns.get(pattern) ?? new RegExp(pattern, 'g')
    this.#patterns.set(pattern, compiled)
    return compiled
  }

  #json(value: JsonValue): JsonValue {
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return (value as readonly JsonValue[]).map((item) => this.#json(item))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [this.text(name), this.#json(inner)]))
  }
}

/** As long as can be matched; the last one is not shorter than a secret may be. */
function piecesOf(secret: string): string[] {
  const characters = Array.from(secret)
  const count = Math.ceil(characters.length / PIECE_CHARACTERS)
  const length = Math.ceil(characters.length / count)
  return Array.from({ length: Math.min(count, PIECES_MAX) }, (_, at) => characters.slice(at * length, (at + 1) * length).join(''))
}

function spellingsOf(piece: string): Spelling[] {
  const bytes = Buffer.from(piece)
  const spelled = (spell: Spell): string => Array.from(piece, spell).join('')
  return [
    { hint: /[%+]/, pattern: spelled(plainPattern) },
    { hint: /\\/, pattern: spelled(escapedPattern) },
    { hint: new RegExp(`[\\da-fA-F]{${bytes.length * 2}}`), pattern: anyCase(bytes.toString('hex')) },
    ...base64Spellings(bytes),
  ]
}

/** A character as itself, or percent-encoded. */
function plainPattern(character: string): string {
  const percent = anyCase(Buffer.from(character).toString('hex').replace(/../g, '%$&'))
  return `(?:${quoted(character)}|${percent}${character === ' ' ? '|\\+' : ''})`
}

/**
 * A character as within a JSON string, or a text that `util.inspect` shows. Apart from the other one: where a backslash may be one or two, a long row of
 * them can be read in too many ways.
 */
function escapedPattern(character: string): string {
  const unicode = Array.from({ length: character.length }, (_, at) => `\\\\u${anyCase(character.charCodeAt(at).toString(16).padStart(4, '0'))}`).join('')
  const others = character === '"' ? '|"' : /[/'`]/.test(character) ? `|\\\\${character}` : /\p{Cc}/u.test(character) ? `|\\\\x${anyCase(character.charCodeAt(0).toString(16).padStart(2, '0'))}` : ''
  return `(?:${quoted(JSON.stringify(character).slice(1, -1))}|${unicode}${others})`
}

/** What base64 makes of these bytes wherever they begin: the characters that depend on nothing beside them. */
function base64Spellings(bytes: Buffer): Spelling[] {
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const sure = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    if (sure.length < BASE64_LENGTH_MIN) return []
    const forms = Array.from(sure, (character) => (character === '+' ? '[+-]|%2[bB]' : character === '/' ? '[/_]|%2[fF]' : character))
    return [{ hint: new RegExp(`[\\w+/%-]{${sure.length}}`), pattern: forms.map((form) => `(?:${form})`).join('') }]
  })
}

function anyCase(text: string): string {
  return text.replace(/[a-f]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
}

function quoted(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
