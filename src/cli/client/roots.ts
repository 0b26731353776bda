import { SeenIds } from '../../client/common/seen-ids.ts'
import type { ObjectText } from '../../client/index.ts'

/**
 * A reference's member; inside a string its quotes would be escaped. One that spells its name with escapes is not seen.
 */
const REFERENCE = /"referencedId"\s*:\s*"([^"\\]*)"/g

/**
 * Finds the objects that no other object refers to, in any order of arrival. If children come before parents it holds
 * little: objects without a reference so far, and objects with several. At worst it takes about 64 bytes an object.
 */
export class RootFinder {
  readonly #candidates = new SeenIds()
  /** Ids that were referred to while they were no candidates: not there yet, or no longer. */
  readonly #referenced = new SeenIds()
  #objects = 0

  get objects(): number {
    return this.#objects
  }

  add({ id, json }: ObjectText): void {
    this.#objects += 1
    for (const child of referencesOf(json)) {
      if (child !== id && !this.#candidates.delete(child)) this.#referenced.add(child)
    }
    if (!this.#referenced.has(id)) this.#candidates.add(id)
  }

  /** The first of them, and their number. A repeated object after its parent counts as one. */
  find(rootsMax: number): { readonly roots: readonly string[]; readonly count: number } {
    const roots: string[] = []
    for (const id of this.#candidates.ids()) {
      if (roots.length === rootsMax) break
      roots.push(id)
    }
    return { roots, count: this.#candidates.size }
  }
}

export function* referencesOf(json: string): Generator<string, void, undefined> {
  for (const [, id] of json.matchAll(REFERENCE)) yield id
}
