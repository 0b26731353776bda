import type { Family } from './family.ts'
import { deltas, have } from './rows/changes.ts'
import { restarted, unplanned } from './rows/cold.ts'
import { compaction } from './rows/compaction.ts'
import { disk } from './rows/disk.ts'
import { forms, manyClients, recursive, resume, versions } from './rows/graphs.ts'
import { mixed, slowReaders } from './rows/load.ts'
import { diffs, neighbours, randomLists, singles } from './rows/lookups.ts'
import { uploads } from './rows/uploads.ts'

/** In the order in which they are measured: uploads first, as the others need what they leave. */
export const FAMILIES: readonly Family[] = [
  uploads,
  unplanned,
  recursive,
  forms,
  versions,
  manyClients,
  resume,
  diffs,
  singles,
  randomLists,
  neighbours,
  have,
  deltas,
  mixed,
  slowReaders,
  restarted,
  disk,
  compaction,
]

/** With a small model and a large one, in this order: what is looked up is looked up in merged packs. */
export const GROWTH_FAMILIES: readonly Family[] = [
  uploads,
  unplanned,
  compaction,
  recursive,
  diffs,
  singles,
  randomLists,
]

/** Rows that compare those of `GROWTH_FAMILIES`. */
export const GROWTH = 'growth'

/** The families of a list of names, all for an empty one; an error that names those that exist. */
export function chosenFamilies(names: readonly string[]): readonly Family[] {
  const known = [...FAMILIES.map(({ name }) => name), GROWTH]
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0) throw new Error(`no rows ${unknown.join(', ')}; there are ${known.join(', ')}`)
  return FAMILIES.filter(({ name }) => names.length === 0 || names.includes(name))
}
