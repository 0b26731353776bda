const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const PERCENT_ENCODED = /(?:%[\da-fA-F]{2})+/g
const ESCAPED_TWICE = /\\(?:u(?<unit>[\da-fA-F]{4})|x(?<byte>[\da-fA-F]{2})|(?<single>["'`/bfnrt]))/g
const ESCAPED = /\\(?:u(?<unit>[\da-fA-F]{4})|x(?<byte>[\da-fA-F]{2})|(?<single>["'`/bfnrt\\]))/g

/**
 * A text in its possible decodings: each is made on first use, in linear time. `undefined` if nothing is encoded that
 * way.
 */
export class Decodings {
  readonly #text: string
  readonly #hasEscapes: boolean
  readonly #hasPercent: boolean
  #percent: string | undefined
  #form: string | undefined
  #escapedTwice: string | undefined
  #escaped: string | undefined
  #lowerCase: string | undefined
  #base64: string | undefined

  constructor(text: string) {
    this.#text = text
    this.#hasEscapes = text.includes('\\')
    this.#hasPercent = text.includes('%')
  }

  /** Percent-encoding undone. */
  get percent(): string | undefined {
    if (this.#hasPercent) this.#percent ??= decoded(this.#text)
    return this.#percent
  }

  /** The same, with a plus read as a space. */
  get form(): string | undefined {
    if (this.#form === undefined && this.#text.includes('+')) this.#form = decoded(this.#text.replaceAll('+', ' '))
    return this.#form
  }

  /** With the escapes of JSON and of node's output undone. */
  get escaped(): string | undefined {
    if (this.#hasEscapes) this.#escaped ??= unescaped(this.#text, ESCAPED)
    return this.#escaped
  }

  /** The same in a text whose backslashes were escaped once more: two of them stay two. */
  get escapedTwice(): string | undefined {
    if (this.#hasEscapes) this.#escapedTwice ??= unescaped(this.#text, ESCAPED_TWICE)
    return this.#escapedTwice
  }

  get lowerCase(): string {
    this.#lowerCase ??= this.#text.toLowerCase()
    return this.#lowerCase
  }

  /** Base64url as base64, percent-encoded or not. */
  get base64(): string {
    this.#base64 ??= /[-_%]/.test(this.#text) ? this.#text.replace(/[-_]|%2[bf]/gi, plainBase64) : this.#text
    return this.#base64
  }
}

function decoded(text: string): string {
  return text.replace(PERCENT_ENCODED, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
}

function unescaped(text: string, escapes: RegExp): string {
  return text.replace(escapes, (...found) => {
    const { unit, byte, single } = found.at(-1) as Readonly<Record<string, string | undefined>>
    return single === undefined
      ? String.fromCharCode(Number.parseInt(unit ?? byte ?? '', 16))
      : (ESCAPES[single] ?? single)
  })
}

function plainBase64(found: string): string {
  return found === '-' || found.toLowerCase() === '%2b' ? '+' : '/'
}
