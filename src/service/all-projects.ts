import type { CollectedAmount, CollectionCause, CollectionReport, ObjectAmount } from '../object/collection.ts'
import { COLLECTION_CAUSES } from '../object/collection.ts'
import type { CompactionReport } from '../object/compaction.ts'
import type { CollectCallOptions, CompactCallOptions, ProjectUpkeep } from './project-upkeep.ts'
import { isWithoutObjects } from './upkeep.ts'

/** A collection of all projects. */
export interface CollectAllOptions extends CollectCallOptions {
  /** Receives the report of each project once it is collected. */
  readonly onProject?: ((projectId: string, report: CollectionReport) => void) | undefined
}

/** A compaction of all projects. */
export interface CompactAllOptions extends CompactCallOptions {
  /** Receives the report of each project once it is compacted. */
  readonly onProject?: ((projectId: string, report: CompactionReport) => void) | undefined
}

/** The sums over all projects. */
export interface CollectionTotals extends Pick<
  CollectionReport,
  'dryRun' | 'held' | 'young' | 'condemned' | 'freed' | 'replacedCopies' | 'restorable' | 'revived'
> {
  /** Projects that were collected. */
  readonly projects: number
  /** Projects that were not: see `CollectionReport`. */
  readonly skipped: number
}

/** The sums over all projects. */
export interface CompactionTotals extends Omit<CompactionReport, 'stopped' | 'damaged'> {
  /** Projects that were compacted. */
  readonly projects: number
}

export interface AllProjects {
  readonly projects: () => AsyncIterable<readonly string[]>
  readonly upkeepOf: (projectId: string) => ProjectUpkeep
}

const ERRORS_MAX = 100
const NONE: ObjectAmount = { objects: 0, jsonBytes: 0, storedBytes: 0 }
const NONE_BY_CAUSE: CollectedAmount = { ...NONE, byCause: byCause(() => NONE) }

/** Rejects with an `AggregateError` after all others if projects failed. */
export async function collectAll(all: AllProjects, options: CollectAllOptions): Promise<CollectionTotals> {
  const { onProject, ...each } = options
  let totals: CollectionTotals = {
    dryRun: options.dryRun ?? false,
    projects: 0,
    skipped: 0,
    held: NONE,
    young: NONE,
    condemned: NONE_BY_CAUSE,
    freed: NONE_BY_CAUSE,
    replacedCopies: NONE,
    restorable: NONE,
    revived: NONE,
  }
  await forEachProject(all, options.signal, async (upkeep, projectId) => {
    const report = await upkeep.collect(each)
    const { dryRun } = report
    totals = {
      dryRun,
      projects: totals.projects + (report.skipped === null ? 1 : 0),
      skipped: totals.skipped + (report.skipped === null ? 0 : 1),
      held: sum(totals.held, report.held),
      young: sum(totals.young, report.young),
      condemned: sumByCause(totals.condemned, report.condemned),
      freed: sumByCause(totals.freed, report.freed),
      replacedCopies: sum(totals.replacedCopies, report.replacedCopies),
      restorable: sum(totals.restorable, report.restorable),
      revived: sum(totals.revived, report.revived),
    }
    onProject?.(projectId, report)
  })
  return totals
}

/** Rejects with an `AggregateError` after all others if projects failed. */
export async function compactAll(all: AllProjects, options: CompactAllOptions): Promise<CompactionTotals> {
  const { onProject, ...each } = options
  const totals = {
    projects: 0,
    merges: 0,
    packsBefore: 0,
    packsAfter: 0,
    storedBytesBefore: 0,
    storedBytesAfter: 0,
    retiredBytes: 0,
    damagedPacks: 0,
  }
  await forEachProject(all, options.signal, async (upkeep, projectId) => {
    const report = await upkeep.compact(each)
    totals.projects++
    for (const name of [
      'merges',
      'packsBefore',
      'packsAfter',
      'storedBytesBefore',
      'storedBytesAfter',
      'retiredBytes',
      'damagedPacks',
    ] as const)
      totals[name] += report[name]
    onProject?.(projectId, report)
  })
  return totals
}

async function forEachProject(
  { projects, upkeepOf }: AllProjects,
  signal: AbortSignal | undefined,
  work: (upkeep: ProjectUpkeep, projectId: string) => Promise<void>,
): Promise<void> {
  const errors: Error[] = []
  for await (const ids of projects()) {
    for (const id of ids) {
      signal?.throwIfAborted()
      try {
        await work(upkeepOf(id), id)
      } catch (error) {
        signal?.throwIfAborted()
        if (isWithoutObjects(error)) continue
        if (errors.length < ERRORS_MAX)
          errors.push(new Error(`the project ${JSON.stringify(id)} failed`, { cause: error }))
      }
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, errors[0].message)
}

function sum(a: ObjectAmount, b: ObjectAmount): ObjectAmount {
  return {
    objects: a.objects + b.objects,
    jsonBytes: a.jsonBytes + b.jsonBytes,
    storedBytes: a.storedBytes + b.storedBytes,
  }
}

function sumByCause(a: CollectedAmount, b: CollectedAmount): CollectedAmount {
  return { ...sum(a, b), byCause: byCause((cause) => sum(a.byCause[cause], b.byCause[cause])) }
}

function byCause(amountOf: (cause: CollectionCause) => ObjectAmount): Record<CollectionCause, ObjectAmount> {
  return Object.fromEntries(COLLECTION_CAUSES.map((cause) => [cause, amountOf(cause)])) as Record<
    CollectionCause,
    ObjectAmount
  >
}
