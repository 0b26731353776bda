import type { RecordStore } from '../../storage/backend.ts'
import { planBlobName } from '../records/keys.ts'
import { onlyIfDamaged, type PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { decodePlanRecord } from '../records/records.ts'
import type { PlanTables } from './plan-format.ts'
import type { LoadedPlan } from './planned-selection.ts'

interface Parts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
}

/**
 * Whether a plan that was loaded for an earlier layout may be used for this one. Merges may have replaced it in storage,
 * or taken the packs that it names. One that is in memory alone is made anew in less time.
 */
export async function holdsInLayout(
  { records, catalog }: Parts,
  plan: LoadedPlan,
  project: ProjectView,
  key: Uint8Array,
): Promise<boolean> {
  if (plan.layout >= project.layout) return true
  if (!('blob' in plan.source)) return false
  const [value] = await records.getMany([key])
  if (value === undefined) return false
  const { planId } = decodePlanRecord(key, value)
  if (planBlobName(project.projectId, planId) !== plan.source.blob) return false
  if (!(await packsAreThere({ catalog }, project, plan.tables))) return false
  plan.layout = project.layout
  return true
}

/** Whether every pack that the plan names still has its record: only then can its blob be read. */
export async function packsAreThere(
  { catalog }: Pick<Parts, 'catalog'>,
  project: ProjectView,
  { packs, closure }: PlanTables,
): Promise<boolean> {
  const sequences = new Set([...packs, ...(closure?.packs ?? [])].map(({ sequence }) => sequence))
  const areLoaded = await catalog.load(project, [...sequences]).then(() => true, onlyIfDamaged)
  return areLoaded ?? false
}
