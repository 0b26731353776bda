import { isReference, newReference, setMember } from './shape.ts'

type Holder = Record<string | number, unknown>

/** A reference, and where it stands. */
export interface Link {
  readonly holder: Holder
  readonly key: string | number
  readonly id: string
}

/** An array of nothing but references, and where it stands: it may be the pieces of a longer one. */
export interface ArrayLink {
  readonly holder: Holder
  readonly key: string | number
  readonly ids: readonly string[]
}

export interface Links {
  readonly single: readonly Link[]
  readonly arrays: readonly ArrayLink[]
  /** Members of the object below which references stand. */
  readonly names: ReadonlySet<string>
}

interface Found {
  readonly single: Link[]
  readonly arrays: ArrayLink[]
}

/** Finds every reference in an object, at any depth. They are spelled anew, with their two members alone, so that spelling makes no difference. */
export function findLinks(object: Record<string, unknown>, typeField: string): Links {
  const found: Found = { single: [], arrays: [] }
  const names = new Set<string>()
  for (const name of Object.keys(object)) {
    const before = found.single.length
    const open: Holder[] = []
    visit(object, name, object[name], open, found, typeField)
    for (let holder = open.pop(); holder !== undefined; holder = open.pop()) {
      for (const key of Array.isArray(holder) ? holder.keys() : Object.keys(holder)) visit(holder, key, holder[key], open, found, typeField)
    }
    if (found.single.length > before) names.add(name)
  }
  return { ...found, names }
}

function visit(holder: Holder, key: string | number, value: unknown, open: Holder[], found: Found, typeField: string): void {
  if (typeof value !== 'object' || value === null) return
  if (isReference(value, typeField)) {
    setMember(holder, String(key), newReference(typeField, value.referencedId))
    found.single.push({ holder, key, id: value.referencedId })
    return
  }
  if (Array.isArray(value) && value.length > 0 && value.every((item) => isReference(item, typeField))) {
    found.arrays.push({ holder, key, ids: value.map(({ referencedId }) => referencedId) })
  }
  open.push(value as Holder)
}
