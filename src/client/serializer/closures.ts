/** The objects below one, by number, with their smallest depths. */
export interface Descendants {
  readonly numbers: Uint32Array
  readonly depths: Uint32Array
}

const PLAIN_ID = /^[\w-]+$/
const NONE: Descendants = { numbers: new Uint32Array(0), depths: new Uint32Array(0) }

/** Closures of a graph that is built from below: objects as numbers, since each is in the closure of all above it. */
export class Closures {
  readonly #ids: string[] = []
  readonly #numbers = new Map<string, number>()
  readonly #below = new Map<number, Descendants>()

  /** The number of an id; a new one for an id that is new. */
  numberOf(id: string): number {
    const known = this.#numbers.get(id)
    if (known !== undefined) return known
    this.#ids.push(id)
    this.#numbers.set(id, this.#ids.length - 1)
    return this.#ids.length - 1
  }

  /** The descendants of an object with these children. */
  merge(children: Iterable<number>): Descendants {
    const direct = new Set(children)
    if (direct.size === 0) return NONE
    const depthOf = new Map<number, number>()
    for (const child of direct) depthOf.set(child, 1)
    for (const child of direct) {
      const { numbers, depths } = this.#below.get(child) ?? NONE
      for (let at = 0; at < numbers.length; at++) {
        const known = depthOf.get(numbers[at])
        if (known === undefined || known > depths[at] + 1) depthOf.set(numbers[at], depths[at] + 1)
      }
    }
    return { numbers: Uint32Array.from(depthOf.keys()), depths: Uint32Array.from(depthOf.values()) }
  }

  /** Whether the object was not finished before. */
  finish(number: number, below: Descendants): boolean {
    if (this.#below.has(number)) return false
    this.#below.set(number, below)
    return true
  }

  /** As a JSON object `{"<id>": depth, ...}`. */
  text({ numbers, depths }: Descendants): string {
    let text = '{'
    for (let at = 0; at < numbers.length; at++) {
      const id = this.#ids[numbers[at]]
      text += `${at === 0 ? '' : ','}${PLAIN_ID.test(id) ? `"${id}"` : JSON.stringify(id)}:${depths[at]}`
    }
    return `${text}}`
  }
}
