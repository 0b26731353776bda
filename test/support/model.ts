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
  return { rootId: objects[objects.length - 1].id, objects, byId: new Map(objects.map((object) => [object.id, object.json])) }
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
