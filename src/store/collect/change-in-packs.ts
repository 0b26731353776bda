import { Bitmap } from '../bytes/bitmap.ts'
import { tableEntry } from '../pack/pack-format.ts'
import { type ChangeParts, type ChangeTerms, changeObjects, type Decision } from '../records/change-objects.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import type { ProjectView } from '../records/project-view.ts'
import { isHere } from './mark.ts'
import { inLookups, membersOf } from './project-packs.ts'
import type { SortedPack } from './sorted-pack.ts'

/** Objects of a pack, by their ordinals. */
export interface ObjectsInPack {
  readonly sorted: SortedPack
  readonly ordinals: Bitmap
}

interface Changing {
  readonly terms: ChangeTerms
  readonly signal: AbortSignal
}

/**
 * Changes the records of objects that still lie in these packs. Small packs share commits: each of them waits for a
 * sync, and for the commits of uploads. Returns the objects that were changed, pack by pack.
 */
export async function changeInPacks(
  parts: ChangeParts,
  project: ProjectView,
  packs: readonly ObjectsInPack[],
  { terms, signal }: Changing,
  decide: (record: ObjectRecord) => Decision,
): Promise<readonly ObjectsInPack[]> {
  const made = packs.map(({ sorted }) => ({ sorted, ordinals: Bitmap.empty(sorted.tables.objects) }))
  for (const places of inLookups(placesIn(packs))) {
    const { changed } = await changeObjects(
      parts,
      project,
      places.map(({ at, ordinal }) => tableEntry(packs[at].sorted.tables.ids, ordinal)),
      (record, i) => {
        const { at, ordinal } = places[i]
        return isHere(record, packs[at].sorted.pack.sequence, ordinal) ? decide(record) : 'keep'
      },
      signal,
      terms,
    )
    for (const i of changed) made[places[i].at].ordinals.add(places[i].ordinal)
  }
  return made
}

function* placesIn(packs: readonly ObjectsInPack[]): Generator<{ readonly at: number; readonly ordinal: number }> {
  for (const [at, { ordinals }] of packs.entries()) for (const ordinal of membersOf(ordinals)) yield { at, ordinal }
}
