import { Bitmap } from '../bytes/bitmap.ts'
import type { PackRecord } from '../records/pack-record.ts'
import { membersOf } from './project-packs.ts'
import type { SortedPack } from './sorted-pack.ts'

/** The record of a pack once the collection is through with it. */
export function settledRecord(
  record: PackRecord,
  { tables, toCondemn, settled, gone, replaced }: SortedPack,
  fromRoots: Bitmap | undefined,
  freed: Bitmap,
): PackRecord {
  const empty = Bitmap.empty(tables.objects)
  const owned = (record.owned ?? empty).without(toCondemn)
  for (const ordinal of membersOf(settled)) owned.add(ordinal)
  const condemned = [settled, gone, replaced, freed].reduce(
    (left, done) => left.without(done),
    record.condemned ?? empty,
  )
  for (const ordinal of membersOf(toCondemn)) condemned.add(ordinal)
  const reached = (record.reached ?? empty).without(empty)
  for (const ordinal of membersOf(fromRoots)) reached.add(ordinal)
  return { ...record, owned, condemned, reached }
}
