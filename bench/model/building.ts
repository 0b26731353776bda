import { ELEMENT_OBJECTS_MAX, type ElementChange, writeElement, writeNote } from './element.ts'
import { type ModelObject, ObjectWriter, references, type Written } from './object-writer.ts'
import { createRandom } from './random.ts'

export type { ModelObject } from './object-writer.ts'

export interface BuildingOptions {
  /** Objects in the model, exactly; 4 or more. */
  readonly objects: number
  readonly seed?: number
  /**
   * The objects that carry `__closure`: all with descendants (at most 200,000 objects, as the root's would exceed the
   * limit of one object), all but levels and the root, or none.
   */
  readonly closure?: boolean | 'root-less'
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

const ELEMENTS_PER_GROUP = 40
const GROUPS_PER_LEVEL_MAX = 25
const BATCH_OBJECTS = 512
/** The objects that remain to be written at the end: a group, its level and the root. */
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
  const writer = new ObjectWriter()
  const levels: Written[] = []
  for (let elementsBefore = 0; spaceLeft(writer, plan) > CLOSING_OBJECTS - 2;) {
    const groups: Written[] = []
    while (groups.length < plan.groupsPerLevel && spaceLeft(writer, plan) > CLOSING_OBJECTS - 1) {
      groups.push(writeGroup(writer, plan, elementsBefore, { level: levels.length, zone: groups.length }))
      elementsBefore += ELEMENTS_PER_GROUP
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
}: BuildingOptions): Plan {
  if (!Number.isSafeInteger(objects) || objects < CLOSING_OBJECTS + 1)
    throw new RangeError(`a model has ${CLOSING_OBJECTS + 1} objects or more, not ${objects}`)
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
    changesOneElementIn: revision === 0 ? Infinity : inPart ? CHANGES_ONE_ELEMENT_IN_PART : oneElementIn,
    changedPart: inPart
      ? [partStart, partStart + Math.ceil((elements * CHANGES_ONE_ELEMENT_IN_PART) / oneElementIn)]
      : [0, Infinity],
    groupsPerLevel: Math.max(
      2,
      Math.min(GROUPS_PER_LEVEL_MAX, Math.ceil(Math.sqrt(objects / OBJECTS_PER_ELEMENT / ELEMENTS_PER_GROUP))),
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
  for (let index = elementsBefore; index < elementsBefore + ELEMENTS_PER_GROUP; index++) {
    if (spaceLeft(writer, plan) < ELEMENT_OBJECTS_MAX + 2 * CLOSING_OBJECTS + 1) {
      while (spaceLeft(writer, plan) > CLOSING_OBJECTS) children.push(writeNote(writer, plan.seed, writer.count))
      break
    }
    const { seed, revision, smallClosures: closure } = plan
    children.push(writeElement(writer, { seed, index, revision, change: changeOf(plan, index), closure, level }))
  }
  return writeCollection(
    writer,
    { type: 'zone', key: `${level}-zone-${at.zone}`, name: `Zone ${at.level}.${at.zone}` },
    children,
    plan.smallClosures,
  )
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
