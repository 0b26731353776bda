import type { IncomingMessage } from 'node:http'
import { valuesOf } from './header-values.ts'

/**
 * The headers of one of Node's requests. Node 20 loads its whole implementation of `fetch`, a few megabytes of memory,
 * with the first use of its own class: here that is when somebody calls more than `get` and `has`. Newer versions load
 * it with `node:http`.
 */
export class NodeHeaders implements Headers {
  /** By names in lower case, as Node has them. */
  readonly #values = new Map<string, readonly string[]>()
  #standard: Headers | undefined

  constructor(req: IncomingMessage) {
    for (const [name, value] of Object.entries(req.headers)) {
      // Pseudo-headers of HTTP/2.
      if (value === undefined || name.startsWith(':')) continue
      // A middleware of the host may have set the same name in other letters.
      const known = this.#values.get(name.toLowerCase())
      const values = valuesOf(req, name, value)
      this.#values.set(name.toLowerCase(), known === undefined ? values : [...known, ...values])
    }
  }

  get(name: string): string | null {
    if (this.#standard !== undefined) return this.#standard.get(name)
    const lowerName = name.toLowerCase()
    // RFC 9113, section 8.2.3.
    return this.#values.get(lowerName)?.join(lowerName === 'cookie' ? '; ' : ', ') ?? null
  }

  has(name: string): boolean {
    return this.#standard?.has(name) ?? this.#values.has(name.toLowerCase())
  }

  append(name: string, value: string): void {
    this.#whole().append(name, value)
  }

  set(name: string, value: string): void {
    this.#whole().set(name, value)
  }

  delete(name: string): void {
    this.#whole().delete(name)
  }

  getSetCookie(): string[] {
    return this.#whole().getSetCookie()
  }

  forEach(callback: (value: string, name: string, headers: Headers) => void, thisArg?: unknown): void {
    for (const [name, value] of this) callback.call(thisArg, value, name, this)
  }

  keys(): ReturnType<Headers['keys']> {
    return this.#whole().keys()
  }

  values(): ReturnType<Headers['values']> {
    return this.#whole().values()
  }

  entries(): ReturnType<Headers['entries']> {
    return this.#whole().entries()
  }

  [Symbol.iterator](): ReturnType<Headers['entries']> {
    return this.entries()
  }

  #whole(): Headers {
    if (this.#standard !== undefined) return this.#standard
    const standard = new Headers()
    for (const [name, values] of this.#values) for (const value of values) standard.append(name, value)
    this.#standard = standard
    return standard
  }
}
