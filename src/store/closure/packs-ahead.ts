import { onlyIfDamaged, type Pack, type PackCatalog } from '../records/pack-catalog.ts'
import type { PackRecord } from '../records/pack-record.ts'
import type { ProjectView } from '../records/project-view.ts'
import { areMostlySure } from './unsure-ids.ts'

/** A project of more packs is not indexed as a whole. */
const PACKS_INDEXED_MAX = 128
/** Packs that are loaded for each one that was found, at most. */
const PACKS_FOR_EACH_MAX = 16

/** What a walk has, and where it looks for more. */
export interface PacksSought {
  readonly catalog: PackCatalog
  readonly project: ProjectView
  readonly signal: AbortSignal
  readonly isLoaded: (sequence: number) => boolean
}

/**
 * All packs of the project; `undefined` if there are many, if it takes less to ask the records for `ids` ids than to
 * load those that are not loaded yet, or if an index of all could not say where most of these ids are.
 */
export async function allPacks(
  { catalog, project, signal, isLoaded }: PacksSought,
  ids: number,
): Promise<readonly Pack[] | undefined> {
  const packs = await catalog.knownPacks(project, PACKS_INDEXED_MAX, signal).catch(onlyIfDamaged)
  if (packs === undefined) return undefined
  const fresh = packs.filter(({ sequence }) => !isLoaded(sequence))
  if (fresh.reduce((sum, { record }) => sum + record.objects, 0) > ids) return undefined
  return areMostlySure(packs, ids) ? packs : undefined
}

/**
 * The packs between those that some of very many ids led to. The packs of an upload come one after the other, so these
 * ids show where the model lies. To ask for the others of them leads to a few hundred packs at a time, and all that are
 * left are looked for again each time. None if the packs lie far apart, or are small.
 */
export async function* packsBetween(
  { catalog, project, signal, isLoaded }: PacksSought,
  found: readonly Pack[],
  isOver: () => boolean,
): AsyncGenerator<{ readonly pack: Pack }> {
  const indexable = found.filter(({ record }) => isIndexable(record)).length
  if (2 * indexable <= found.length) return
  const [first, last] = found.reduce(
    ([low, high], { sequence }) => [Math.min(low, sequence), Math.max(high, sequence)],
    [Infinity, -Infinity],
  )
  if (last - first >= PACKS_FOR_EACH_MAX * found.length) return
  const isWanted = (sequence: number, record: PackRecord): boolean => !isLoaded(sequence) && isIndexable(record)
  for await (const pack of catalog.packsBetween(project, [first, last], isWanted, signal)) {
    if (isOver()) return
    yield { pack }
  }
}

/** A small pack lies in its record: it has few objects, and a scan of many such records reads them all. */
function isIndexable({ state, owned, content }: PackRecord): boolean {
  return state === 'applied' && owned !== undefined && content === 'blob'
}
