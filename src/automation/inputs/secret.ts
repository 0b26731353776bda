const SHOWN = '******'

/**
 * A text that shows itself only when it is asked to: `reveal()` gives it, and everything else (`String`, templates, JSON, `util.inspect` and what logs through it,
 * spreading, structured clones) gives asterisks or nothing.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return SHOWN
  }

  toJSON(): string {
    return SHOWN
  }

  [Symbol.toPrimitive](): string {
    return SHOWN
  }

  static {
    /* What `util.inspect` of Node asks for; browsers have no such thing. */
    Object.defineProperty(this.prototype, Symbol.for('nodejs.util.inspect.custom'), { value: () => SHOWN })
  }
}
