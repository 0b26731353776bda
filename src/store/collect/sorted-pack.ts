import { Bitmap } from '../bytes/bitmap.ts'
import type { PackTables } from '../pack/pack-format.ts'
import type { ProjectView } from '../records/project-view.ts'
import { PackLines } from './amounts.ts'
import { type Aging, isHere, isYoung } from './mark.ts'
import type { CollectParts } from './parts.ts'
import { type LookedUp, lookedUp, membersOf, type StoredPack } from './project-packs.ts'

/** What a collection finds in a pack, and what it does about it. Each object is in one of the bitmaps at most. */
export interface SortedPack {
  readonly pack: StoredPack
  readonly tables: PackTables
  readonly lines: PackLines
  /** Unmarked, live, and old enough. */
  readonly toCondemn: Bitmap
  /** Unmarked, and condemned for long enough. */
  readonly toFree: Bitmap
  /** Marked, and condemned. */
  readonly toRevive: Bitmap
  /** Condemned, and not for long enough. */
  readonly restorable: Bitmap
  /** Live and marked, and in doubt no more: they can be owned again. */
  readonly settled: Bitmap
  /** In doubt, live, and still young. */
  readonly revived: Bitmap
  /** Their records are gone. */
  readonly gone: Bitmap
  /** Held by another pack. */
  readonly replaced: Bitmap
}

interface Sorting extends Aging {
  readonly signal: AbortSignal
  readonly marked: Bitmap | undefined
  /** Objects that were condemned for longer than this many epochs are freed. */
  readonly undoEpochs: number
  /** Neither revives nor frees anything. */
  readonly condemnsOnly?: boolean
}

/** Decides for each object of an applied pack. */
export async function sortPack(
  { records }: Pick<CollectParts, 'records'>,
  project: ProjectView,
  pack: StoredPack,
  tables: PackTables,
  sorting: Sorting,
): Promise<SortedPack> {
  const { owned, condemned } = pack.record
  const bitmap = (): Bitmap => Bitmap.empty(tables.objects)
  const { marked = bitmap(), signal } = sorting
  const sorted: SortedPack = {
    pack,
    tables,
    lines: new PackLines(tables, pack.record),
    toCondemn: (owned ?? bitmap()).without(marked),
    toFree: bitmap(),
    toRevive: bitmap(),
    restorable: bitmap(),
    settled: bitmap(),
    revived: bitmap(),
    gone: bitmap(),
    replaced: bitmap(),
  }
  for await (const some of lookedUp(records, project, tables, membersOf(condemned), signal)) {
    for (const one of some) destinyOf(sorted, one, marked, sorting).add(one.ordinal)
  }
  return sorted
}

/** Where an object belongs whose pack is not sure about it. */
function destinyOf(sorted: SortedPack, { ordinal, record }: LookedUp, marked: Bitmap, sorting: Sorting): Bitmap {
  if (record === undefined) return sorted.gone
  if (!isHere(record, sorted.pack.sequence, ordinal)) return sorted.replaced
  const { epoch, undoEpochs, condemnsOnly = false } = sorting
  if (record.state === 'condemned') {
    if (condemnsOnly) return sorted.restorable
    if (marked.has(ordinal)) return sorted.toRevive
    return epoch - record.epoch > undoEpochs ? sorted.toFree : sorted.restorable
  }
  if (isYoung(record.epoch, sorting)) return sorted.revived
  return marked.has(ordinal) ? sorted.settled : sorted.toCondemn
}
