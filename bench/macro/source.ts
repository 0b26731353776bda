import { openObjectFile } from '../../src/cli/client/object-file.ts'
import { building, type BuildingOptions, type ModelObject } from '../model/building.ts'
import type { ProfileName } from '../model/profiles.ts'
import { createRandom } from '../model/random.ts'
import { laterVersion } from '../verify/versions.ts'

/** Where the changes of a later version lie. Those of a model file are everywhere. */
export type ChangePlace = NonNullable<BuildingOptions['changes']>

/** A model that can be read again and again. */
export interface ModelSource {
  /** Names the folder of the dataset. */
  readonly name: string
  /** The name of the profile of a generated model, or `own` for a model of the user's. */
  readonly profile: string
  /** The objects in batches, each id once. */
  objects(): AsyncIterable<readonly ModelObject[]> | Iterable<readonly ModelObject[]>
  /** The root, after all objects were read; without it, the root is the last object. */
  rootId?(): string
  /** A version of which this share of the objects differs. */
  later(changed: number, place?: ChangePlace): Pick<ModelSource, 'objects' | 'rootId'>
}

/** Later versions of a model file are made in memory. */
const LATER_OBJECTS_MAX = 300_000

/** A generated building. */
export function generatedModel(
  profile: ProfileName,
  objects: number,
  options: Omit<BuildingOptions, 'objects' | 'profile'> = {},
): ModelSource {
  const base = { closure: 'root-less', ...options, profile, objects } as const
  return {
    name: `${profile}-${sizeName(objects)}${options.seed === undefined ? '' : `-seed-${options.seed}`}`,
    profile,
    objects: () => building(base),
    later: (changed, changes = 'everywhere') => ({
      objects: () => building({ ...base, revision: changes === 'everywhere' ? 1 : 2, changed, changes }),
    }),
  }
}

/**
 * A file of the user's: a JSON array, NDJSON, or lines `<id> TAB <json>`, gzipped or not. The root is the one object that
 * no other refers to, or `rootId`.
 */
export function modelFile(path: string, rootId?: string): ModelSource {
  const roots = new RootFinder()
  async function* objects(): AsyncGenerator<readonly ModelObject[]> {
    roots.clear()
    const file = await openObjectFile(path, new AbortController().signal)
    for await (const batch of file.objects) {
      for (const { id, json } of batch) roots.see(id, json)
      yield batch
    }
  }
  return {
    name: 'own-model',
    profile: 'own',
    objects,
    rootId: () => rootId ?? roots.single(),
    later: (changed) => laterFile(objects, rootId ?? roots.single(), changed),
  }
}

/** 100000 as `100k`. */
export function sizeName(objects: number): string {
  if (objects >= 1_000_000 && objects % 100_000 === 0) return `${objects / 1_000_000}m`
  return objects >= 1_000 && objects % 1_000 === 0 ? `${objects / 1_000}k` : String(objects)
}

function laterFile(
  objects: () => AsyncIterable<readonly ModelObject[]>,
  rootId: string,
  changed: number,
): Pick<ModelSource, 'objects' | 'rootId'> {
  let laterRootId = ''
  return {
    rootId: () => laterRootId,
    async *objects() {
      const all: ModelObject[] = []
      for await (const batch of objects()) {
        all.push(...batch)
        if (all.length > LATER_OBJECTS_MAX)
          throw new RangeError(`later versions are made of model files of at most ${LATER_OBJECTS_MAX} objects`)
      }
      const later = laterVersion(all, 1 / changed, createRandom(1))
      laterRootId = later[all.findIndex(({ id }) => id === rootId)].id
      yield later
    },
  }
}

/** Finds the objects to which nothing refers. */
class RootFinder {
  readonly #seen = new Set<string>()
  readonly #referenced = new Set<string>()

  clear(): void {
    this.#seen.clear()
    this.#referenced.clear()
  }

  see(id: string, json: string): void {
    this.#seen.add(id)
    for (const [, child] of json.matchAll(/"referencedId" *: *"([^"]+)"/g)) this.#referenced.add(child)
  }

  single(): string {
    const roots = [...this.#seen].filter((id) => !this.#referenced.has(id))
    if (roots.length === 1) return roots[0]
    throw new Error(`the model has ${roots.length} objects that no other refers to; name its root with --root ID`)
  }
}
