import { IdLedger } from '../../client/id-ledger.ts'
import type { ObjectText } from '../../client/index.ts'

/** A reference's member; inside a string its quotes would be escaped. One that spells its name with escapes is not seen. */
const REFERENCE = /"referencedId"\s*:\s*"([^"\\]*)"/g

/** Finds the objects to which no other one refers, in whatever order they come, at some 32 to 64 bytes an object. */
export class RootFinder {
  readonly #referenced = new IdLedger()
  readonly #seen = new IdLedger()

  add({ id, json }: ObjectText): void {
    for (const child of referencesOf(json)) if (child !== id) this.#referenced.add(child)
    this.#seen.add(id)
  }

  get objects(): number {
    return this.#seen.size
  }

  /** All objects that came. */
  ids(): Iterable<string> {
    return this.#seen.ids()
  }

  /** The first of them, and how many there are. */
  find(rootsMax: number): { readonly roots: readonly string[]; readonly count: number } {
    const roots: string[] = []
    let count = 0
    for (const id of this.#seen.ids()) {
      if (this.#referenced.has(id)) continue
      count += 1
      if (roots.length < rootsMax) roots.push(id)
    }
    return { roots, count }
  }
}

export function* referencesOf(json: string): Generator<string, void, undefined> {
  for (const [, id] of json.matchAll(REFERENCE)) yield id
}
