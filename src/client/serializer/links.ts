import { isReference } from '../common/references.ts'
import type { InlineOrigin } from './origins.ts'
import { isDetachedName, newReference, setMember } from './shape.ts'

type Holder = Record<string | number, unknown>

/** A reference, and its place. */
export interface Link {
  readonly holder: Holder
  readonly key: string | number
  readonly id: string
  /** The original reference, if it has more members than a reference needs. */
  readonly given: object | undefined
}

/** An array of references only, and its place: it may be the chunks of a longer one. */
export interface ArrayLink {
  readonly holder: Holder
  readonly key: string | number
  readonly ids: readonly string[]
}

export interface Links {
  readonly single: readonly Link[]
  readonly arrays: readonly ArrayLink[]
  /** Members of the object that are references, or arrays of them. */
  readonly names: ReadonlySet<string>
  /** Objects inside this one, if some are separate. */
  readonly inline: ReadonlyMap<object, InlineOrigin>
}

/** The array that is being searched, with the names of the object that contains it. */
interface Open {
  readonly holder: Holder
  readonly names: Set<string>
  /** The member of that object that contains the array. */
  readonly name: string | undefined
}

/**
 * Finds every reference in an object, at any depth. References are rewritten with only their two members, so that
 * spelling makes no difference.
 */
export function findLinks(object: Record<string, unknown>, typeField: string): Links {
  const search = new Search(typeField)
  for (const name of Object.keys(object)) search.member(object, name)
  return search
}

class Search implements Links {
  readonly single: Link[] = []
  readonly arrays: ArrayLink[] = []
  readonly names = new Set<string>()
  readonly inline = new Map<object, InlineOrigin>()
  readonly #typeField: string
  #open: Open[] = []
  #hasDetachedNames = false

  constructor(typeField: string) {
    this.#typeField = typeField
  }

  member(object: Holder, member: string): void {
    const before = this.single.length
    const inline: [object, Set<string>][] = []
    this.#hasDetachedNames = isDetachedName(member)
    this.#visit({ holder: object, names: this.names, name: undefined }, member, inline)
    for (let open = this.#open.pop(); open !== undefined; open = this.#open.pop()) {
      for (const key of Array.isArray(open.holder) ? open.holder.keys() : Object.keys(open.holder))
        this.#visit(open, key, inline)
    }
    if (this.single.length === before && !this.#hasDetachedNames) return
    for (const [value, detached] of inline) this.inline.set(value, { member, detached })
  }

  #visit({ holder, names, name: within }: Open, key: string | number, inline: [object, Set<string>][]): void {
    const value = holder[key]
    const name = within ?? String(key)
    this.#hasDetachedNames ||= isDetachedName(name)
    if (typeof value !== 'object' || value === null) return
    if (isReference(value)) {
      setMember(holder, String(key), newReference(this.#typeField, value.referencedId))
      this.single.push({ holder, key, id: value.referencedId, given: this.#hasMore(value) ? value : undefined })
      names.add(name)
    } else if (Array.isArray(value)) {
      if (value.length > 0 && value.every((item) => isReference(item))) {
        this.arrays.push({ holder, key, ids: value.map(({ referencedId }) => referencedId) })
      }
      this.#open.push({ holder: value as unknown as Holder, names, name })
    } else {
      const own = new Set<string>()
      inline.push([value, own])
      this.#open.push({ holder: value as Holder, names: own, name: undefined })
    }
  }

  #hasMore(reference: object): boolean {
    return Object.keys(reference).some((name) => name !== this.#typeField && name !== 'referencedId')
  }
}
