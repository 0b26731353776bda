import type { MemoryLease } from '../../memory/memory-lease.ts'
import type { ChosenReport, CollectOptions } from '../../object/collection.ts'
import type { GraphRoot } from '../../object/roots.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { withWalk } from '../closure/with-walk.ts'
import { locate, LOOKUP_KEYS, type ObjectLocation } from '../records/locator.ts'
import { packIn } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { Fence } from './fence.ts'
import { type Aging, isHere, isYoung, type Marks, marksOf, placesIn, reachRoots } from './mark.ts'
import type { CollectParts } from './parts.ts'
import { lookedUp, membersOf, packsOf } from './project-packs.ts'
import { Sweep, type Tallies } from './sweep.ts'

/** Ids of each kind that a report names. */
const TOLD_IDS_MAX = 100

interface Choice {
  readonly ids: readonly string[]
  readonly roots: readonly GraphRoot[]
  readonly aging: Aging
  readonly tallies: Tallies
  readonly options: Pick<CollectOptions, 'signal' | 'dryRun' | 'onProgress'>
}

/** Condemns chosen objects, and what is below them and below nothing else. */
export async function collectChosen(
  parts: CollectParts,
  project: ProjectView,
  { ids, roots, aging, tallies, options }: Choice,
): Promise<ChosenReport> {
  const { signal, dryRun = false } = options
  const memory = parts.budget.open({ signal, party: { principal: '', projectId: project.projectId } })
  try {
    const fence = await (dryRun ? Fence.ofDryRun(parts, project) : Fence.of(parts, project))
    const found = await locateAll(parts, project, ids, signal)
    const below = await marksBelow(parts, project, found.values(), { signal, memory })
    const kept = await marksOfOthers(parts, project, { below, roots, aging, signal, memory })
    const terms = {
      ...aging,
      undoEpochs: Number.MAX_SAFE_INTEGER,
      signal,
      dryRun,
      condemnsOnly: true,
      marked: { fromRoots: new Map(), kept },
      onProgress: (): void => undefined,
    }
    await new Sweep(parts, project, terms, { fence, tallies, memory: memory.part() }).run()
    const stays = [...found].filter(
      ([, { sequence, ordinal, state }]) => state === 'live' && kept.get(sequence)?.has(ordinal) === true,
    )
    const missing = [...new Set(ids)].filter((id) => !found.has(id))
    const { objects, jsonBytes, storedBytes } = tallies.condemned.amount
    return {
      condemned: { objects, jsonBytes, storedBytes },
      keptIds: stays.slice(0, TOLD_IDS_MAX).map(([id]) => id),
      kept: stays.length,
      missingIds: missing.slice(0, TOLD_IDS_MAX),
      missing: missing.length,
    }
  } finally {
    memory.release()
  }
}

async function locateAll(
  { records }: CollectParts,
  project: ProjectView,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ObjectLocation>> {
  const distinct = [...new Set(ids)]
  const found = new Map<string, ObjectLocation>()
  for (let first = 0; first < distinct.length; first += LOOKUP_KEYS) {
    const some = distinct.slice(first, first + LOOKUP_KEYS)
    const bytes = some.map((id) => Buffer.from(id, 'utf8'))
    const locations = await locate(records, project, bytes, signal)
    for (const [i, location] of locations.entries()) if (location !== undefined) found.set(some[i], location)
  }
  return found
}

function marksBelow(
  parts: CollectParts,
  project: ProjectView,
  places: Iterable<ObjectLocation>,
  { signal, memory }: { readonly signal: AbortSignal; readonly memory: MemoryLease },
): Promise<Marks> {
  const party = { principal: '', projectId: project.projectId }
  return withWalk(parts, project, { signal, party }, async (walk) => {
    await walk.reach(places)
    return marksOf(walk, memory)
  })
}

/** What roots lead to, and every live object that is not below the chosen ones, or that is young. */
function marksOfOthers(
  parts: CollectParts,
  project: ProjectView,
  {
    below,
    roots,
    aging,
    signal,
    memory,
  }: {
    readonly below: Marks
    readonly roots: readonly GraphRoot[]
    readonly aging: Aging
    readonly signal: AbortSignal
    readonly memory: MemoryLease
  },
): Promise<Marks> {
  const { records, catalog } = parts
  const party = { principal: '', projectId: project.projectId }
  return withWalk(parts, project, { signal, party }, async (walk) => {
    await reachRoots(parts, project, walk, roots, signal)
    for await (const { sequence, record } of packsOf(records, project, { signal })) {
      const all = Bitmap.full(record.objects)
      const chosen = below.get(sequence) ?? Bitmap.empty(record.objects)
      if (record.state === 'committed') {
        await walk.reach(placesIn(sequence, membersOf(all)))
        continue
      }
      const owned = record.owned ?? Bitmap.empty(record.objects)
      await walk.reach(placesIn(sequence, membersOf(owned.without(chosen))))
      // Those of the chosen ones that may be young, and all that may be live.
      const unsure = owned.without(isYoung(record.epoch, aging) ? all.without(chosen) : all)
      await catalog.withTables(await packIn(records, project, sequence, record), async (tables) => {
        for (const ordinals of [unsure, record.condemned]) {
          for await (const some of lookedUp(records, project, tables, membersOf(ordinals), signal)) {
            const kept = some.filter(
              ({ ordinal, record: object }) =>
                isHere(object, sequence, ordinal) &&
                object.state === 'live' &&
                (!chosen.has(ordinal) || isYoung(object.epoch, aging)),
            )
            const places = placesIn(
              sequence,
              kept.map(({ ordinal }) => ordinal),
            )
            await walk.reach(places)
          }
        }
      })
    }
    return marksOf(walk, memory)
  })
}
