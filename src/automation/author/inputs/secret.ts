const SHOWN = '******'

/**
 * A text that shows itself only on request: `reveal()` returns it, and everything else (`String`, templates, JSON,
 * `util.inspect` and loggers based on it, spreading, structured clones) gives asterisks or nothing.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The text itself. Not for logs. */
  reveal(): string {
    return this.#value
  }

  /** Hides the text. */
  toString(): string {
    return SHOWN
  }

  /** Hides the text. */
  toJSON(): string {
    return SHOWN
  }

  /** Hides the text. */
  [Symbol.toPrimitive](): string {
    return SHOWN
  }

  static {
    /* What `util.inspect` of Node asks for; browsers have no such thing. */
    Object.defineProperty(this.prototype, Symbol.for('nodejs.util.inspect.custom'), { value: () => SHOWN })
  }
}
