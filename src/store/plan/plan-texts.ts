import type { RecordStore } from '../../storage/backend.ts'
import { tableEntry, textBytesOf } from '../pack/pack-format.ts'
import { headKey, totalsKey } from '../records/keys.ts'
import { LOOKUP_KEYS, readObjects } from '../records/locator.ts'
import type { ProjectView } from '../records/project-view.ts'
import { isQuiet } from '../records/projects.ts'
import { type DoubtParts, doubtsOf, type PlanDoubt, type PlanDoubts } from './plan-doubts.ts'
import type { LoadedPlan } from './planned-selection.ts'

interface Parts extends DoubtParts {
  readonly records: RecordStore
}

/**
 * Whether everything that the plan sends is there, with the text that counts. A condemned object may have been freed,
 * also by a collection that was cut off before it noted that in the pack; and one that is uploaded again may come with
 * another text, which is its first text from then on. Only objects of which their packs are not sure are looked up, and
 * only after an upload or after objects were freed.
 */
export async function hasTextsThatCount(
  parts: Parts,
  plan: LoadedPlan,
  view: ProjectView,
  signal: AbortSignal,
): Promise<boolean> {
  const project = { ...view, layout: plan.layout }
  const doubts = plan.doubts?.layout === project.layout ? plan.doubts : await doubtsIn(parts, plan, project, signal)
  if (doubts === undefined) return false
  if (doubts.found.length === 0) return true
  const { records } = parts
  // Each upload changes the first, and each commit that frees objects the second.
  const keys = [headKey(project.projectId), totalsKey(project.projectId, project.generation)]
  const values = await records.getMany(keys, { signal })
  if (values.every((value, i) => isSame(value, doubts.seenAt?.[i]))) return true
  const wasQuiet = await isQuiet(records, project)
  for (const doubt of doubts.found) if (!(await hasTextsOf(parts, project, doubt, signal))) return false
  if (wasQuiet) doubts.seenAt = values
  return true
}

async function doubtsIn(
  parts: Parts,
  plan: LoadedPlan,
  project: ProjectView,
  signal: AbortSignal,
): Promise<PlanDoubts | undefined> {
  const { layout } = project
  const found = await doubtsOf(parts, plan.tables, project, { madeForLayout: plan.madeForLayout, signal })
  if (found === undefined) return undefined
  const doubts = { layout, found, seenAt: undefined }
  plan.doubts = doubts
  return doubts
}

/** Without the totals nothing tells whether objects were freed. */
function isSame(value: Uint8Array | undefined, before: Uint8Array | undefined): boolean {
  return value !== undefined && before !== undefined && Buffer.compare(value, before) === 0
}

async function hasTextsOf(
  { records, catalog }: Parts,
  project: ProjectView,
  { sequence, unsure }: PlanDoubt,
  signal: AbortSignal,
): Promise<boolean> {
  return catalog.withTables(await catalog.pack(project, sequence), async (tables) => {
    const { objects } = tables
    for (let first = 0; first < objects; first += LOOKUP_KEYS) {
      const some = Array.from({ length: Math.min(LOOKUP_KEYS, objects - first) }, (_, i) => first + i)
      const ordinals = some.filter((ordinal) => unsure.has(ordinal))
      if (ordinals.length === 0) continue
      const ids = ordinals.map((ordinal) => tableEntry(tables.ids, ordinal))
      const found = await readObjects(records, project, ids, signal)
      for (const [i, ordinal] of ordinals.entries()) {
        const record = found[i]
        if (record?.textBytes !== textBytesOf(tables, ordinal) || record.textCrc32 !== tables.textCrc32[ordinal])
          return false
      }
    }
    return true
  })
}
