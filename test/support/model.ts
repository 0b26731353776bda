import { building, type BuildingOptions, type ModelObject } from '../../bench/model/building.ts'

export { jsonArray } from '../../bench/upload.ts'

export interface Model {
  readonly rootId: string
  /** Children before parents, the root last, each id once. */
  readonly objects: readonly ModelObject[]
  readonly byId: ReadonlyMap<string, string>
}

/** A whole building model in memory: for tests of some thousand objects. */
export function buildModel(options: BuildingOptions): Model {
  const objects = [...building(options)].flat()
  return {
    rootId: objects[objects.length - 1].id,
    objects,
    byId: new Map(objects.map((object) => [object.id, object.json])),
  }
}

/** The ids that an object refers to, wherever in it the references stand. Closures are not followed. */
export function referencedIds(json: string): string[] {
  return [...json.matchAll(/"referencedId":"([^"]+)"/g)].map((match) => match[1])
}

/** A root with everything below it, by following references. */
export function reachable(model: Model, rootId: string = model.rootId): Set<string> {
  const seen = new Set([rootId])
  for (const id of seen) for (const child of referencedIds(model.byId.get(id) ?? '')) seen.add(child)
  return seen
}

/**
 * The model as a value, as `send` and `testFunction` take it: what is an object of its own stands under a name with
 * "@".
 */
export function modelValue({ objects, rootId }: Model): Record<string, unknown> {
  const values = new Map<string, Record<string, unknown>>()
  const valueOf = (reference: unknown): object | undefined =>
    values.get(String((reference as { referencedId?: string } | null)?.referencedId))
  for (const { id, json } of objects) {
    const {
      id: _id,
      totalChildrenCount: _count,
      __closure: _closure,
      ...members
    } = JSON.parse(json) as Record<string, unknown>
    const entries = Object.entries(members).map(([name, member]): [string, unknown] => {
      if (Array.isArray(member) && member.length > 0 && valueOf(member[0]) !== undefined)
        return [`@${name}`, member.map(valueOf)]
      const child = valueOf(member)
      return child === undefined ? [name, member] : [`@${name}`, child]
    })
    values.set(id, Object.fromEntries(entries))
  }
  return values.get(rootId) as Record<string, unknown>
}
