import type { JsonValue } from '../run-data.ts'

const SHOWN = '******'
/** Shorter texts stand in every other word: to remove them would destroy messages, and tell what they are. */
const SECRET_LENGTH_MIN = 4
/** Fewer characters of base64 say too little to be taken for a secret. */
const BASE64_LENGTH_MIN = 6

/**
 * Removes secrets from texts by their value, in whatever spelling they stand: as they are, with any of their characters percent-encoded (RFC 3986 section 2.1) or
 * escaped as in JSON (RFC 8259 section 7), as hexadecimal digits, and within base64 or base64url (RFC 4648) of a longer text. Secrets of fewer than four
 * characters stay.
 */
export class Scrubber {
  readonly #pattern: RegExp | undefined

  constructor(secrets: readonly string[]) {
    const spellings = [...new Set(secrets)].filter(({ length }) => length >= SECRET_LENGTH_MIN).sort((a, b) => b.length - a.length).flatMap(spellingsOf)
    this.#pattern = spellings.length === 0 ? undefined : new RegExp(spellings.join('|'), 'g')
  }

  text(text: string): string {
    return this.#pattern === undefined ? text : text.replace(this.#pattern, SHOWN)
  }

  /** The same with every text in it, names of members included. */
  json<T extends JsonValue>(value: T): T {
    return (this.#pattern === undefined ? value : this.#json(value)) as T
  }

  #json(value: JsonValue): JsonValue {
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return (value as readonly JsonValue[]).map((item) => this.#json(item))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [this.text(name), this.#json(inner)]))
  }
}

function spellingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  return [Array.from(secret, characterPattern).join(''), anyCase(hex), ...base64Patterns(bytes)]
}

/** One character as itself, percent-encoded, or escaped. */
function characterPattern(character: string): string {
  const percent = anyCase(Buffer.from(character).toString('hex').replace(/../g, '%$&'))
  const unicode = Array.from({ length: character.length }, (_, at) => `\\\\u${anyCase(character.charCodeAt(at).toString(16).padStart(4, '0'))}`).join('')
  const short = JSON.stringify(character).slice(1, -1)
  const forms = [quoted(character), percent, unicode]
  if (short !== character) forms.push(quoted(short))
  if (character === '/') forms.push('\\\\/')
  if (character === ' ') forms.push('\\+')
  return `(?:${forms.join('|')})`
}

/** What base64 makes of these bytes wherever they begin: the characters that depend on nothing beside them. */
function base64Patterns(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const sure = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    return sure.length < BASE64_LENGTH_MIN ? [] : [Array.from(sure, (character) => (character === '+' ? '[+-]|%2[bB]' : character === '/' ? '[/_]|%2[fF]' : character)).map((form) => `(?:${form})`).join('')]
  })
}

function anyCase(text: string): string {
  return text.replace(/[a-f]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
}

function quoted(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
