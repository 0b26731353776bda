import { pauseBeforeRetry } from '../../async/backoff.ts'
import { StowageError } from '../../errors.ts'
import type { CollectOptions, ObjectAmount } from '../../object/collection.ts'
import type { StoreEpoch } from '../../object/epochs.ts'
import { quoted } from '../../object/id.ts'
import { isStorageError } from '../../storage/storage-errors.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { PackSelection } from '../closure/closure.ts'
import { tableEntry } from '../pack/pack-format.ts'
import { reviveObjects } from '../records/change-objects.ts'
import { OutdatedViewError, packIn } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { isActive } from '../records/pack-record.ts'
import { readHead, viewProject } from '../records/projects.ts'
import { PackLines, Tally } from './amounts.ts'
import { LayoutChangedError } from './fence.ts'
import type { CollectParts } from './parts.ts'
import { inLookups, membersOf, packsOf } from './project-packs.ts'

const ATTEMPTS_MAX = 4

/**
 * Makes the condemned objects below a root live again. A plan may name objects that were freed since: they are looked
 * up like all that the packs do not certainly own, and like those of packs that were merged meanwhile. Resolves to the
 * epoch in which it looked: a root that is committed in that epoch is seen by every collection that frees what is
 * condemned from now on.
 */
export async function reviveBelow(
  parts: CollectParts,
  projectId: string,
  rootObjectId: string,
  signal: AbortSignal,
): Promise<StoreEpoch> {
  for (let attempt = 0; ; attempt++) {
    const epoch = await parts.epochs.current()
    const before = await viewProject(parts.records, projectId, signal)
    // Nothing was ever condemned.
    if (before === undefined || before.layout === 0) return epoch
    const closure = await parts.closureOf(projectId, rootObjectId, signal)
    const project = await viewProject(parts.records, projectId, signal)
    if (closure === undefined || project === undefined) return epoch
    try {
      let gone = 0
      for (const selection of closure.packs) gone += await reviveIn(parts, project, selection, epoch.number, signal)
      if (gone === 0) return epoch
      throw new StowageError(
        'objects_missing',
        `${gone} objects below ${quoted(rootObjectId)} were collected meanwhile; upload them again`,
      )
    } catch (error) {
      const isOutdated = project.layout !== before.layout && hasGone(error)
      if ((!isOutdated && !(error instanceof OutdatedViewError)) || attempt + 1 >= ATTEMPTS_MAX) throw error
      await pauseBeforeRetry(attempt, parts.environment)
    }
  }
}

/** Packs of the closure may have gone since it was found. Those that were only merged are still there. */
function hasGone(error: unknown): boolean {
  return (error instanceof StowageError && error.code === 'corrupt_data') || isStorageError(error, 'BlobNotFoundError')
}

/** Resolves to the number of objects that are gone. */
async function reviveIn(
  parts: CollectParts,
  project: ProjectView,
  { sequence, wanted }: PackSelection,
  epoch: number,
  signal: AbortSignal,
): Promise<number> {
  const pack = await parts.catalog.pack(project, sequence)
  const { record } = pack
  if (record.state === 'committed') return 0
  const isHolding = isActive(record, project.layout)
  const inDoubt = wanted.without((isHolding ? record.owned : undefined) ?? Bitmap.empty(record.objects))
  if (inDoubt.count === 0) return 0
  return parts.catalog.withTables(pack, async (tables) => {
    let gone = 0
    for (const ordinals of inLookups(membersOf(inDoubt))) {
      const ids = ordinals.map((ordinal) => tableEntry(tables.ids, ordinal))
      const { after } = await reviveObjects(parts, project, ids, epoch, signal)
      gone += after.filter((object) => object === undefined).length
    }
    return gone
  })
}

/** Makes every condemned object of a project live again. Resolves to what it restored. */
export async function restoreCondemned(
  parts: CollectParts,
  project: ProjectView,
  { signal, onProgress }: Pick<CollectOptions, 'signal' | 'onProgress'>,
): Promise<ObjectAmount> {
  const { records, catalog, epochs } = parts
  const restored = new Tally()
  for await (const { sequence, record } of packsOf(records, project, { signal })) {
    if (record.condemned === undefined || record.condemned.count === 0) continue
    const { condemned } = record
    await catalog.withTables(await packIn(records, project, sequence, record), async (tables) => {
      const lines = new PackLines(tables, record)
      for (const ordinals of inLookups(membersOf(condemned))) {
        const { number } = await epochs.current()
        const ids = ordinals.map((ordinal) => tableEntry(tables.ids, ordinal))
        const { changed } = await reviveObjects(parts, project, ids, number, signal)
        for (const at of changed) restored.add(lines, ordinals[at])
        const { objects } = restored.amount
        onProgress?.({ phase: 'restoring', objects, objectsTotal: objects })
      }
    })
  }
  const { head } = await readHead(records, project.projectId)
  if (head?.layout !== project.layout) throw new LayoutChangedError()
  return restored.amount
}
