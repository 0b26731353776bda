import type { MemoryLease } from '../../memory/memory-lease.ts'
import type { GraphRoot } from '../../object/roots.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { ClosureWalk } from '../closure/closure-walk.ts'
import type { Place } from '../closure/walked-pack.ts'
import { withWalk } from '../closure/with-walk.ts'
import type { PackTables } from '../pack/pack-format.ts'
import { locate, LOOKUP_KEYS } from '../records/locator.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import { packIn } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { CollectParts } from './parts.ts'
import { lookedUp, membersOf, packsOf, type StoredPack } from './project-packs.ts'

const BYTES_PER_PACK = 256

/** The marked objects of each pack, by its number. */
export type Marks = ReadonlyMap<number, Bitmap>

export interface Marked {
  /** Objects that a root leads to. */
  readonly fromRoots: Marks
  /** These, and the objects that young ones lead to. */
  readonly kept: Marks
}

export interface Aging {
  readonly epoch: number
  /** Objects of this many epochs or fewer are young. */
  readonly olderThanEpochs: number
}

export function isYoung(writtenAt: number, { epoch, olderThanEpochs }: Aging): boolean {
  return epoch - writtenAt <= olderThanEpochs
}

/** Whether the record says that the object lies at this place of the pack. */
export function isHere(record: ObjectRecord | undefined, sequence: number, ordinal: number): record is ObjectRecord {
  return record !== undefined && record.sequence === sequence && record.ordinal === ordinal
}

/**
 * Marks what roots lead to, and then what young objects lead to: an upload may refer to everything that was held while
 * it was on its way. One walk serves all of them, so a hundred versions cost little more than one. In a project without
 * roots every live object counts as young. Reads the tables of all packs: a damaged one throws `corrupt_data`.
 */
export async function mark(
  parts: CollectParts,
  project: ProjectView,
  roots: readonly GraphRoot[],
  options: { readonly signal: AbortSignal; readonly aging: Aging; readonly memory: MemoryLease },
): Promise<Marked> {
  const { signal, aging, memory } = options
  return withWalk(parts, project, { signal, party: { principal: '', projectId: project.projectId } }, async (walk) => {
    await reachRoots(parts, project, walk, roots, signal)
    const fromRoots = await marksOf(walk, memory)
    for await (const pack of packsOf(parts.records, project, { signal })) {
      const all = roots.length === 0
      await parts.catalog.withTables(await packIn(parts.records, project, pack.sequence, pack.record), (tables) =>
        reachYoung(parts, project, walk, { pack, tables, aging, all, signal }),
      )
    }
    return { fromRoots, kept: await marksOf(walk, memory) }
  })
}

/** Copies: the walk goes on with its own. */
export async function marksOf(walk: ClosureWalk, memory: MemoryLease): Promise<Marks> {
  const { reached } = walk
  await memory.hold(reached.reduce((sum, { wanted }) => sum + wanted.bytes.length + BYTES_PER_PACK, 0))
  return new Map(
    reached.map(({ sequence, wanted }) => [sequence, new Bitmap(Uint8Array.from(wanted.bytes), wanted.count)]),
  )
}

/** The newest first: the packs of the newest version lead to those of the others. */
export async function reachRoots(
  { records }: Pick<CollectParts, 'records'>,
  project: ProjectView,
  walk: ClosureWalk,
  roots: readonly Pick<GraphRoot, 'rootObjectId'>[],
  signal: AbortSignal,
): Promise<void> {
  const ids = [...new Set(roots.map(({ rootObjectId }) => rootObjectId))].map((id) => Buffer.from(id, 'utf8'))
  const places: Place[] = []
  for (let first = 0; first < ids.length; first += LOOKUP_KEYS) {
    const found = await locate(records, project, ids.slice(first, first + LOOKUP_KEYS), signal)
    for (const location of found) if (location !== undefined) places.push(location)
  }
  await walk.reach(places.sort((a, b) => b.sequence - a.sequence))
}

interface YoungIn {
  readonly pack: StoredPack
  readonly tables: PackTables
  readonly aging: Aging
  /** Whether every live object counts as young. */
  readonly all: boolean
  readonly signal: AbortSignal
}

async function reachYoung(
  { records }: Pick<CollectParts, 'records'>,
  project: ProjectView,
  walk: ClosureWalk,
  { pack: { sequence, record }, tables, aging, all, signal }: YoungIn,
): Promise<void> {
  if (record.state === 'committed') {
    await walk.reach(placesIn(sequence, membersOf(Bitmap.full(record.objects))))
    return
  }
  // A merged pack is younger than its objects.
  const isMerged = record.sources.length > 0
  const isYoungPack = all || isYoung(record.epoch, aging)
  if (isYoungPack && (all || !isMerged)) await walk.reach(placesIn(sequence, membersOf(record.owned)))
  const doubtful = [record.condemned, ...(isYoungPack && isMerged && !all ? [record.owned] : [])]
  for (const ordinals of doubtful) {
    for await (const some of lookedUp(records, project, tables, membersOf(ordinals), signal)) {
      const young = some.filter(
        ({ ordinal, record: object }) =>
          isHere(object, sequence, ordinal) && object.state === 'live' && (all || isYoung(object.epoch, aging)),
      )
      await walk.reach(
        placesIn(
          sequence,
          young.map(({ ordinal }) => ordinal),
        ),
      )
    }
  }
}

export function* placesIn(sequence: number, ordinals: Iterable<number>): Generator<Place> {
  for (const ordinal of ordinals) yield { sequence, ordinal }
}
