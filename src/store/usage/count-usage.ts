import type { Environment } from '../../environment.ts'
import { Yielder } from '../../async/yielder.ts'
import type { GraphRoot, GroupUsage, ProjectUsage, RootUsage } from '../../object/roots.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { Closure, PackSelection } from '../closure/closure.ts'
import { textBytesOf } from '../pack/pack-format.ts'
import { keyBounds, keyParts, parseHex } from '../records/keys.ts'
import { objectsHeldBy } from '../records/held-objects.ts'
import { packIn, readTables } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { decodePackRecord, isActive, isRetired } from '../records/pack-record.ts'

/** Bytes that counting holds for each object of a project. */
export const BYTES_PER_OBJECT = 9
const STEPS_BETWEEN_LOOKS = 65_536
/** An object's holder: nothing, one root (its number + 1), several roots of one group, or of several. */
const NOBODY = 0
const GROUP_BIT = 0x80000000
const SEVERAL = 0xffffffff

interface Counted {
  readonly textBytes: Uint32Array
  readonly holders: Uint32Array
  readonly held: Bitmap
}

export interface CountParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly environment: Environment
  readonly closureOf: (rootObjectId: string, signal: AbortSignal) => Promise<Closure | undefined>
  /** The same, where each object lies now. */
  readonly walkedClosureOf: CountParts['closureOf']
}

interface Share {
  objects: number
  jsonBytes: number
  ownObjects: number
  ownJsonBytes: number
}

/**
 * Counts what each root and each group of roots holds. One pass over the closures notes for every object whether one
 * root holds it, or several; so the memory does not grow with the number of roots.
 */
export async function countUsage(
  parts: CountParts,
  project: ProjectView,
  roots: readonly GraphRoot[],
  signal: AbortSignal,
): Promise<Omit<ProjectUsage, 'storedBytes' | 'planBytes'>> {
  const { packs, retiredBytes } = await loadPacks(parts, project, signal)
  const yielder = new Yielder(parts.environment)
  const inGroups = [...roots].sort((a, b) => order(a.groupId ?? '', b.groupId ?? ''))
  const rootShares = inGroups.map((root) => ({ root, share: newShare() }))
  const groupShares: { readonly groupId: string; roots: number; readonly share: Share; readonly seen: Seen }[] = []
  for (const [at, { root, share }] of rootShares.entries()) {
    signal.throwIfAborted()
    const isNext = groupShares.at(-1)?.groupId !== root.groupId
    if (root.groupId !== null && isNext)
      groupShares.push({ groupId: root.groupId, roots: 0, share: newShare(), seen: new Map() })
    const group = root.groupId === null ? undefined : groupShares.at(-1)
    if (group !== undefined) group.roots++
    // The marks of the groups before are not needed any more.
    if (isNext && group !== undefined) groupShares.at(-2)?.seen.clear()
    const closure = await closureIn(packs, root, parts, signal)
    const holder = { at, groupAt: group === undefined ? undefined : groupShares.length - 1 }
    for (const selection of closure?.packs ?? [])
      await addSelection({ packs, selection, holder, share, group, rootShares, yielder })
  }
  const totals = await countOwn(packs, rootShares, groupShares, yielder)
  return {
    ...totals,
    retiredBytes,
    groups: groupShares.map(({ groupId, roots: count, share }): GroupUsage => ({ groupId, roots: count, ...share })),
    roots: rootShares.map(({ root, share }): RootUsage => ({ ...root, ...share })),
  }
}

/** A plan may name objects where they lay before they were condemned, and written anew by an upload. */
async function closureIn(
  packs: ReadonlyMap<number, Counted>,
  { rootObjectId }: GraphRoot,
  { closureOf, walkedClosureOf }: Pick<CountParts, 'closureOf' | 'walkedClosureOf'>,
  signal: AbortSignal,
): Promise<Closure | undefined> {
  const closure = await closureOf(rootObjectId, signal)
  const isMoved = ({ sequence, wanted }: PackSelection): boolean => {
    const pack = packs.get(sequence)
    return pack !== undefined && wanted.without(pack.held).count > 0
  }
  return closure?.packs.some(isMoved) === true ? walkedClosureOf(rootObjectId, signal) : closure
}

type Seen = Map<number, Bitmap>

interface Adding {
  readonly packs: ReadonlyMap<number, Counted>
  readonly selection: PackSelection
  readonly holder: { readonly at: number; readonly groupAt: number | undefined }
  readonly share: Share
  readonly group: { readonly share: Share; readonly seen: Seen } | undefined
  readonly rootShares: readonly { readonly root: GraphRoot }[]
  readonly yielder: Yielder
}

async function addSelection({ packs, selection, holder, share, group, rootShares, yielder }: Adding): Promise<void> {
  const pack = packs.get(selection.sequence)
  if (pack === undefined) return
  const { textBytes, holders } = pack
  const seen = group?.seen.get(selection.sequence) ?? Bitmap.empty(holders.length)
  group?.seen.set(selection.sequence, seen)
  const groupId = rootShares[holder.at].root.groupId
  for (let ordinal = 0; ordinal < holders.length; ordinal++) {
    if (ordinal % STEPS_BETWEEN_LOOKS === STEPS_BETWEEN_LOOKS - 1) await yielder.due()
    if (!selection.wanted.has(ordinal)) continue
    share.objects++
    share.jsonBytes += textBytes[ordinal]
    if (group !== undefined && seen.add(ordinal)) {
      group.share.objects++
      group.share.jsonBytes += textBytes[ordinal]
    }
    const before = holders[ordinal]
    if (before === NOBODY) holders[ordinal] = holder.at + 1
    else if (before !== SEVERAL) {
      const groupBefore =
        before >= GROUP_BIT ? before - GROUP_BIT : groupNumber(rootShares, before - 1, groupId, holder)
      holders[ordinal] =
        holder.groupAt !== undefined && groupBefore === holder.groupAt ? GROUP_BIT + holder.groupAt : SEVERAL
    }
  }
}

/**
 * The number of the group of an earlier root if that is the group at hand; otherwise which one it is does not matter.
 */
function groupNumber(
  rootShares: Adding['rootShares'],
  rootAt: number,
  groupId: string | null,
  holder: Adding['holder'],
): number | undefined {
  return groupId !== null && rootShares[rootAt].root.groupId === groupId ? holder.groupAt : undefined
}

async function countOwn(
  packs: ReadonlyMap<number, Counted>,
  rootShares: readonly { readonly root: GraphRoot; readonly share: Share }[],
  groupShares: readonly { readonly groupId: string; readonly share: Share }[],
  yielder: Yielder,
): Promise<Pick<ProjectUsage, 'objects' | 'jsonBytes' | 'unreferencedObjects' | 'unreferencedJsonBytes'>> {
  const all = newShare()
  const groupAt = new Map(groupShares.map(({ groupId }, at) => [groupId, at]))
  const groupOfRoot = rootShares.map(({ root }) => (root.groupId === null ? undefined : groupAt.get(root.groupId)))
  for (const { held, holders, textBytes } of packs.values()) {
    await yielder.due()
    for (const [ordinal, holder] of holders.entries()) {
      if (!held.has(ordinal)) continue
      all.objects++
      all.jsonBytes += textBytes[ordinal]
      if (holder === NOBODY) addOwn(all, textBytes[ordinal])
      else if (holder < GROUP_BIT) {
        addOwn(rootShares[holder - 1].share, textBytes[ordinal])
        const group = groupOfRoot[holder - 1]
        if (group !== undefined) addOwn(groupShares[group].share, textBytes[ordinal])
      } else if (holder !== SEVERAL) addOwn(groupShares[holder - GROUP_BIT].share, textBytes[ordinal])
    }
  }
  const { objects, jsonBytes, ownObjects, ownJsonBytes } = all
  return { objects, jsonBytes, unreferencedObjects: ownObjects, unreferencedJsonBytes: ownJsonBytes }
}

function addOwn(share: Share, jsonBytes: number): void {
  share.ownObjects++
  share.ownJsonBytes += jsonBytes
}

function newShare(): Share {
  return { objects: 0, jsonBytes: 0, ownObjects: 0, ownJsonBytes: 0 }
}

async function loadPacks(
  { records, blobs, environment }: CountParts,
  project: ProjectView,
  signal: AbortSignal,
): Promise<{ readonly packs: ReadonlyMap<number, Counted>; readonly retiredBytes: number }> {
  const { projectId, generation } = project
  const packs = new Map<number, Counted>()
  let retiredBytes = 0
  for await (const entries of records.range(keyBounds('pack', projectId, generation), { signal })) {
    for (const { key, value } of entries) {
      const sequence = parseHex(keyParts(key)[2])
      const record = decodePackRecord(key, value)
      if (isRetired(record, project.layout)) retiredBytes += record.packBytes
      // A pack that is not applied yet belongs to an upload that was not acknowledged.
      if (!isActive(record, project.layout)) continue
      const pack = await packIn(records, project, sequence, record)
      const tables = await readTables(blobs, pack, environment)
      packs.set(sequence, {
        textBytes: tables.lineBytes.map((_, ordinal) => textBytesOf(tables, ordinal)),
        holders: new Uint32Array(tables.objects),
        held: await objectsHeldBy(records, project, pack, tables, { signal }),
      })
    }
  }
  return { packs, retiredBytes }
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
