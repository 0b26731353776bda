import { jsonParser, type Token } from 'stream-json/core/parser.js'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'

/** An object in a file. */
export interface FoundObject {
  /** Its `id`, if it has one. */
  readonly id: string | undefined
  /** Its text, character by character as in the file. */
  readonly json: string
}

/** Reads texts of objects, piece by piece. */
export interface ObjectReader {
  /** The objects that end in this piece. */
  push(text: string): readonly FoundObject[]
  /** The objects that end with the file. Throws when it ends in the middle of one. */
  end(): readonly FoundObject[]
}

const OBJECT_CHARACTERS_MAX = 256 * 1_048_576
const BEFORE_OBJECT = /^[\s,[]+/
/** More than any service takes. */
const DEPTH_MAX = 100_000
/** The part of an unreadable object by which a person can find it. */
const SHOWN_CHARACTERS = 48

/**
 * The objects of a JSON array, or of consecutive JSON texts (including NDJSON, also with objects that take several
 * lines). The parser finds the boundaries of objects and rejects invalid JSON; the text itself is cut from the file.
 * The parser's own values would not do: it keeps the spelling of numbers, but not escapes in strings and white space,
 * and an id may be the hash of exactly this text. So the parser receives pieces that each end with a closing brace:
 * when it reports the end of an object, that was the last character of the piece.
 */
export class JsonObjects implements ObjectReader {
  readonly #parse: (text: string) => readonly Token[]
  /** Open brackets around an object: 1 inside an array. */
  readonly #outside: number
  #depth = 0
  #pieces: string[] = []
  #characters = 0
  #found = 0
  #hasEnded = false
  #isIdNext = false
  #id: string | undefined

  constructor(form: 'array' | 'sequence') {
    const parse = jsonParser({ packValues: true, streamValues: false, jsonStreaming: form === 'sequence' })
    this.#parse = (text) => tokensOf(parse(text))
    this.#outside = form === 'array' ? 1 : 0
  }

  push(text: string): readonly FoundObject[] {
    const objects: FoundObject[] = []
    for (let from = 0; from < text.length;) {
      const end = text.indexOf('}', from) + 1 || text.length
      this.#read(text.slice(from, end))
      if (this.#hasEnded) objects.push(this.#take())
      from = end
    }
    return objects
  }

  end(): readonly FoundObject[] {
    const rest = this.#pieces.join('').trim()
    if (this.#depth === 0 && (rest === '' || rest === ']' || /^\[\s*\]$/.test(rest))) return []
    if (this.#depth > this.#outside) throw this.#fault(problemOf(rest, 'the file ends in the middle of it'))
    throw this.#fault(
      this.#outside === 0 ? 'each must be an object' : 'the file ends before the array is closed with "]"',
    )
  }

  #read(piece: string): void {
    this.#pieces.push(piece)
    this.#characters += piece.length
    if (this.#characters > OBJECT_CHARACTERS_MAX)
      throw this.#fault(`it has more than ${OBJECT_CHARACTERS_MAX} characters`)
    let tokens: readonly Token[]
    try {
      tokens = this.#parse(piece)
    } catch (error) {
      const otherwise = `it is not JSON: ${error instanceof Error ? error.message : 'it cannot be parsed'}`
      throw this.#fault(problemOf(this.#pieces.join(''), otherwise))
    }
    for (const token of tokens) this.#follow(token)
  }

  #follow(token: Token): void {
    const inObject = this.#depth === this.#outside + 1
    if (token.name === 'startObject' || token.name === 'startArray') {
      if (this.#depth === this.#outside && token.name === 'startArray')
        throw this.#fault('it is an array; each must be an object')
      if (inObject && this.#isIdNext) throw this.#fault('its id is not a string')
      this.#depth += 1
      if (this.#depth > DEPTH_MAX) throw this.#fault(`it nests deeper than ${DEPTH_MAX} levels`)
    } else if (token.name === 'endObject' || token.name === 'endArray') {
      this.#depth -= 1
      this.#hasEnded = token.name === 'endObject' && this.#depth === this.#outside
    } else if (token.name === 'keyValue') {
      this.#isIdNext = inObject && token.value === 'id'
    } else {
      this.#takeValue(token, inObject)
    }
  }

  #takeValue(token: Token, inObject: boolean): void {
    if (this.#depth === this.#outside) throw this.#fault('each must be an object')
    if (!inObject || !this.#isIdNext) return
    if (token.name !== 'stringValue') throw this.#fault('its id is not a string')
    this.#id = token.value
    this.#isIdNext = false
  }

  #take(): FoundObject {
    const text = this.#pieces.join('')
    const object = { id: this.#id, json: text.slice(text.indexOf('{')) }
    this.#pieces = []
    this.#characters = 0
    this.#found += 1
    this.#hasEnded = false
    this.#id = undefined
    return object
  }

  #fault(problem: string): StowageError {
    const start = this.#pieces.join('').slice(0, 1_024).replace(BEFORE_OBJECT, '').slice(0, SHOWN_CHARACTERS)
    return new StowageError(
      'invalid_json',
      `object ${this.#found + 1} of the file${start === '' ? '' : `, which starts with ${quoted(start)},`} cannot be read: ${problem}`,
    )
  }
}

/**
 * The fault of an object, as exactly as possible. The parser sees pieces, and waits for more if a text cannot continue,
 * such as after a line end inside a string.
 */
function problemOf(text: string, otherwise: string): string {
  const object = text.replace(BEFORE_OBJECT, '')
  if (!object.startsWith('{')) return otherwise
  try {
    JSON.parse(object)
  } catch (error) {
    const { message } = error as SyntaxError
    const [, position] = /at position (\d+)/.exec(message) ?? []
    const isAtEnd = /unexpected end|unterminated string/i.test(message) || Number(position) >= object.length
    if (!isAtEnd) return `it is not JSON: ${message}`
  }
  return otherwise
}

function tokensOf(result: unknown): readonly Token[] {
  return typeof result === 'object' && result !== null && 'values' in result
    ? (result as { readonly values: readonly Token[] }).values
    : []
}
