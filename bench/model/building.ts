import { ELEMENT_OBJECTS_MAX, type ElementChange, writeElement, writeNote } from './element.ts'
import { type ModelObject, ObjectWriter, references, type Written } from './object-writer.ts'
import { type ModelShape, type ProfileName, PROFILES } from './profiles.ts'
import { createRandom } from './random.ts'

export type { ModelObject } from './object-writer.ts'

export interface BuildingOptions {
  /** Objects in the model, exactly; 4 or more. */
  readonly objects: number
  readonly seed?: number
  /**
   * The objects that carry `__closure`: all with descendants (at most 200,000 objects, as the root's would exceed the
   * limit of one object), all but levels and the root, or none. Wrong ones leave out every second descendant and name
   * an object that does not exist; levels and the root have none.
   */
  readonly closure?: boolean | 'root-less' | 'wrong'
  /** What the objects are like. `building` by default. */
  readonly profile?: ProfileName
  /** What shall differ from the profile. */
  readonly shape?: Partial<ModelShape>
  /**
   * 0 is the first version. Another number is a later version of the same building, in which `changed` of all objects
   * differ.
   */
  readonly revision?: number
  readonly changed?: number
  /**
   * The place of the differences: evenly everywhere, so that most groups differ too, or in one part of the building, as
   * when a person works on it. Everywhere by default.
   */
  readonly changes?: 'everywhere' | 'in one part'
}

const GROUPS_PER_LEVEL_MAX = 25
const BATCH_OBJECTS = 512
/** A group, its level and the root. */
const CLOSING_OBJECTS = 3
const CLOSURE_OBJECTS_MAX = 200_000
/** How many objects of the model come with an element, and how many of them a changed one changes, on average. */
const OBJECTS_PER_ELEMENT = 6
const OBJECTS_PER_CHANGE = 2
/** In the changed part, one element in this many differs. */
const CHANGES_ONE_ELEMENT_IN_PART = 2

/**
 * A building as an object graph, in batches, made on demand: levels, groups of elements, elements with parameters,
 * meshes in chunks, and shared definitions and faces. Children come before parents, and the root, a collection, comes
 * last. Versions of one building (same `seed` and `objects`) share all unchanged objects.
 */
export function* building(options: BuildingOptions): Generator<readonly ModelObject[], void, undefined> {
  const plan = resolve(options)
  const writer = new ObjectWriter({ wrongClosures: options.closure === 'wrong' })
  const levels: Written[] = []
  for (let elementsBefore = 0; spaceLeft(writer, plan) > 1;) {
    const groups: Written[] = []
    while (groups.length < plan.groupsPerLevel && spaceLeft(writer, plan) > plan.closingObjects - 1) {
      groups.push(writeGroup(writer, plan, elementsBefore, { level: levels.length, zone: groups.length }))
      elementsBefore += plan.shape.groupElements
      if (writer.pendingCount >= BATCH_OBJECTS) yield writer.take()
    }
    levels.push(
      writeCollection(
        writer,
        { type: 'level', key: levelKey(levels.length), name: `Level ${levels.length}` },
        groups,
        plan.largeClosures,
      ),
    )
  }
  writeCollection(
    writer,
    { type: 'building', key: `building-${plan.seed}`, name: `Building ${plan.seed}` },
    levels,
    plan.largeClosures,
  )
  yield writer.take()
}

interface Plan {
  readonly objects: number
  readonly seed: number
  readonly revision: number
  readonly shape: ModelShape
  /** The objects that remain to be written at the end: a group, the collections around it, its level and the root. */
  readonly closingObjects: number
  /** One element in this many differs from the first version. */
  readonly changesOneElementIn: number
  /** Elements outside of this part do not differ: the index of its first one, and of the first one behind it. */
  readonly changedPart: readonly [number, number]
  readonly groupsPerLevel: number
  /** Whether elements and groups carry closures, and whether levels and the root do. */
  readonly smallClosures: boolean
  readonly largeClosures: boolean
}

function resolve({
  objects,
  seed = 1,
  closure = true,
  revision = 0,
  changed = 0.05,
  changes = 'everywhere',
  profile = 'building',
  shape: chosen,
}: BuildingOptions): Plan {
  const shape = { ...PROFILES[profile], ...chosen }
  const closingObjects = CLOSING_OBJECTS + shape.nesting
  if (!Number.isSafeInteger(objects) || objects < closingObjects + 1)
    throw new RangeError(`a model has ${closingObjects + 1} objects or more, not ${objects}`)
  if (closure === true && objects > CLOSURE_OBJECTS_MAX)
    throw new RangeError(`closures of more than ${CLOSURE_OBJECTS_MAX} objects are too large; choose 'root-less'`)
  const elements = Math.ceil(objects / OBJECTS_PER_ELEMENT)
  const oneElementIn = OBJECTS_PER_CHANGE / OBJECTS_PER_ELEMENT / changed
  const inPart = changes === 'in one part'
  const partStart = Math.floor(elements / 2)
  return {
    objects,
    seed,
    revision,
    shape,
    closingObjects,
    changesOneElementIn: revision === 0 ? Infinity : inPart ? CHANGES_ONE_ELEMENT_IN_PART : oneElementIn,
    changedPart: inPart
      ? [partStart, partStart + Math.ceil((elements * CHANGES_ONE_ELEMENT_IN_PART) / oneElementIn)]
      : [0, Infinity],
    groupsPerLevel: Math.max(
      2,
      Math.min(GROUPS_PER_LEVEL_MAX, Math.ceil(Math.sqrt(objects / OBJECTS_PER_ELEMENT / shape.groupElements))),
    ),
    smallClosures: closure !== false,
    largeClosures: closure === true,
  }
}

/** Elements and, if no further element certainly fits, notes until only the group, its level and the root remain. */
function writeGroup(
  writer: ObjectWriter,
  plan: Plan,
  elementsBefore: number,
  at: { readonly level: number; readonly zone: number },
): Written {
  const level = levelKey(at.level)
  const children: Written[] = []
  for (let index = elementsBefore; index < elementsBefore + plan.shape.groupElements; index++) {
    if (spaceLeft(writer, plan) < ELEMENT_OBJECTS_MAX + 2 * plan.closingObjects + 1) {
      while (spaceLeft(writer, plan) > plan.closingObjects) children.push(writeNote(writer, plan.seed, writer.count))
      break
    }
    const { seed, revision, shape, smallClosures: closure } = plan
    children.push(writeElement(writer, { seed, index, revision, change: changeOf(plan, index), closure, shape, level }))
  }
  const key = `${level}-zone-${at.zone}`
  const name = `Zone ${at.level}.${at.zone}`
  let group = writeCollection(writer, { type: 'zone', key, name }, children, plan.smallClosures)
  for (let depth = 1; depth <= plan.shape.nesting; depth++)
    group = writeCollection(
      writer,
      { type: 'zone', key: `${key}-${depth}`, name: `${name}, around it ${depth}` },
      [group],
      plan.smallClosures,
    )
  return group
}

function levelKey(level: number): string {
  return `level-${level}`
}

function changeOf(plan: Plan, index: number): ElementChange {
  const [first, end] = plan.changedPart
  if (index < first || index >= end) return 'none'
  const random = createRandom(plan.seed, index, plan.revision, 99)
  if (!random.oneIn(plan.changesOneElementIn)) return 'none'
  return random.oneIn(2) ? 'property' : 'geometry'
}

interface Collection {
  readonly type: 'building' | 'level' | 'zone'
  readonly key: string
  readonly name: string
}

function writeCollection(
  writer: ObjectWriter,
  { type, key, name }: Collection,
  children: readonly Written[],
  closure: boolean,
): Written {
  const fields = `"speckle_type":"Speckle.Core.Models.Collections.Collection","collectionType":"${type}","applicationId":"${key}","name":"${name}","elements":${references(children)}`
  return writer.write(fields, children, closure)
}

function spaceLeft(writer: ObjectWriter, plan: Plan): number {
  return plan.objects - writer.count
}
