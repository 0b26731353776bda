import {
  CHOSEN_MAX,
  type ChosenReport,
  type UnreferencedCursor,
  type UnreferencedObject,
} from '../object/collection.ts'
import type { Destination } from './client.ts'
import { unlessEmpty } from './keeper.ts'
import type { PlannedChoice } from './operations.ts'
import { Violation } from './oracle.ts'
import { Random } from './random.ts'
import type { Span } from './span.ts'

/** Lists what no root leads to, and condemns some of it, or other objects. Only lists where nothing is to be chosen. */
export async function choose(planned: PlannedChoice, to: Destination): Promise<void> {
  const { pageObjects, topsOnly, share, draw } = planned
  const listed = share === 0 && planned.ids.length > 0 ? [] : await unreferenced({ pageObjects, topsOnly }, to)
  const random = new Random(draw)
  const drawn = listed.filter(() => random.chance(share)).map(({ id }) => id)
  const ids = [...new Set([...planned.ids, ...drawn])].slice(0, CHOSEN_MAX)
  if (ids.length > 0) await condemn({ ...planned, ids }, to)
}

/** All pages of the list. The oracle sees each. */
export async function unreferenced(
  { pageObjects, topsOnly }: Pick<PlannedChoice, 'pageObjects' | 'topsOnly'>,
  to: Destination,
): Promise<readonly UnreferencedObject[]> {
  const { oracle, project, signal } = to
  const all: UnreferencedObject[] = []
  let after: UnreferencedCursor | undefined
  do {
    const span = oracle.begin()
    const page = await unlessEmpty(to, () => project.unreferenced({ limit: pageObjects, after, topsOnly, signal }))
    oracle.end(span)
    if (page === undefined) return all
    for (const object of page.objects) oracle.sawUnreferenced(object, span)
    all.push(...page.objects)
    after = page.next
  } while (after !== undefined)
  return all
}

/** Condemns these, and what is below them alone. */
export async function condemn(
  { ids, graceEpochs, isDryRun }: Pick<PlannedChoice, 'ids' | 'graceEpochs' | 'isDryRun'>,
  to: Destination,
): Promise<ChosenReport | undefined> {
  const { oracle, life } = to
  const collection = { ...oracle.begin(), graceEpochs, undoEpochs: Infinity, chosen: ids }
  if (!isDryRun) oracle.collections.begin(collection)
  const end = (): void => {
    if (collection.end === Infinity) oracle.end(collection)
  }
  void life.over.then(end)
  const { epochMs = 1 } = life.context.epochs ?? {}
  const settings = { olderThanMs: graceEpochs * epochMs, dryRun: isDryRun, signal: to.signal }
  const report = await unlessEmpty(to, () => to.project.collectObjects(ids, settings)).finally(end)
  if (report !== undefined) checkReport(ids, report, collection, to)
  return report
}

function checkReport(ids: readonly string[], report: ChosenReport, span: Span, { oracle }: Destination): void {
  const { condemned, kept, keptIds, missing } = report
  const there = ids.filter((id) => oracle.isThere(id, span)).length
  if (missing > ids.length - there) throw new Violation(`of ${ids.length} chosen objects ${missing} are not found`)
  const below = oracle.collections.mayBeBelow(ids)
  if (condemned.objects > below.size)
    throw new Violation(`${condemned.objects} objects are condemned, and ${below.size} are chosen or below these`)
  if (kept + missing > ids.length || keptIds.some((id) => !ids.includes(id)))
    throw new Violation(`of ${ids.length} chosen objects ${kept} are kept, and ${missing} not found`)
}
