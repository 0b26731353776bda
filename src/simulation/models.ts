import type { Random } from './random.ts'

/** An object as a client sends it. */
export interface PlannedObject {
  readonly id: string
  readonly json: string
}

/** One version of a model: its root and everything below it, children before parents. */
export interface PlannedVersion {
  readonly rootId: string
  readonly objects: readonly PlannedObject[]
}

/** A model whose versions share most of their objects. */
export interface PlannedModel {
  readonly projectId: string
  readonly versions: readonly PlannedVersion[]
}

/** Bytes of a text that does not compress, so that its pack is a blob of its own. */
const LARGE_TEXT_BYTES = 60_000
/** More objects than a plan is kept in memory for, and more than one call asks for. */
const MANY_LEAVES = 1_050

export function planModel(random: Random, projectId: string, name: string): PlannedModel {
  const hasMany = random.chance(0.02)
  const leafCount = hasMany ? MANY_LEAVES : random.between(1, 10)
  const groupCount = random.between(1, 3)
  const hasLargeTexts = random.chance(0.15)
  const leafVersions = Array.from({ length: leafCount }, () => 0)
  const versions: PlannedVersion[] = []
  for (let number = 0; number < random.between(1, 4); number++) {
    for (let leaf = 0; leaf < leafCount; leaf++) if (number > 0 && random.chance(0.25)) leafVersions[leaf] = number
    versions.push(planVersion(random, { name, number, leafVersions, groupCount, hasLargeTexts }))
  }
  return { projectId, versions }
}

interface VersionShape {
  readonly name: string
  readonly number: number
  readonly leafVersions: readonly number[]
  readonly groupCount: number
  readonly hasLargeTexts: boolean
}

function planVersion(random: Random, shape: VersionShape): PlannedVersion {
  const { name, number, leafVersions, groupCount, hasLargeTexts } = shape
  const leaves = leafVersions.map((version, leaf) => {
    const id = `${name}-leaf${leaf}-${version}`
    return plannedObject(id, { text: hasLargeTexts && leaf === 0 ? largeText(random.fork(id)) : `v${version}` })
  })
  const groups = Array.from({ length: groupCount }, (_, group) => {
    const children = leaves.filter((__, leaf) => leaf % groupCount === group).map(({ id }) => id)
    // Its id follows from its descendants, like the ids of content hashes.
    const mark = leafVersions
      .filter((__, leaf) => leaf % groupCount === group)
      .join('')
      .slice(0, 40)
    return plannedObject(`${name}-group${group}-${mark}`, { text: 'group', children })
  })
  const claims = random.chance(0.6) ? [...leaves, ...groups].map(({ id }) => id) : []
  const root = plannedObject(`${name}-root-${number}`, { text: 'root', children: groups.map(({ id }) => id), claims })
  return { rootId: root.id, objects: [...leaves, ...groups, root] }
}

interface ObjectContent {
  readonly text: string
  readonly children?: readonly string[]
  readonly claims?: readonly string[]
}

export function plannedObject(id: string, { text, children = [], claims = [] }: ObjectContent): PlannedObject {
  const members = {
    id,
    text,
    ...(children.length === 0 ? {} : { children: children.map((referencedId) => ({ referencedId })) }),
    ...(claims.length === 0 ? {} : { __closure: Object.fromEntries(claims.map((claim) => [claim, 1])) }),
  }
  return { id, json: JSON.stringify(members) }
}

/** The same id with another text, which only an upload of a confused client brings. */
export function conflicting({ id, json }: PlannedObject, salt: string): PlannedObject {
  return { id, json: JSON.stringify({ ...(JSON.parse(json) as object), salt }) }
}

/** Ids that a text refers to or claims; none if there is no text. */
export type ChildrenOf = (json: string | undefined) => readonly string[]

/** Reads each text once. */
export function childrenReader(): ChildrenOf {
  const known = new Map<string, readonly string[]>()
  return (json) => {
    if (json === undefined) return []
    const children = known.get(json) ?? childrenIn(json)
    known.set(json, children)
    return children
  }
}

function childrenIn(json: string): readonly string[] {
  const { children = [], __closure: claims = {} } = JSON.parse(json) as {
    readonly children?: readonly { readonly referencedId: string }[]
    readonly __closure?: object
  }
  return [...children.map(({ referencedId }) => referencedId), ...Object.keys(claims)]
}

function largeText(random: Random): string {
  return Buffer.from(random.bytes(LARGE_TEXT_BYTES)).toString('base64')
}
