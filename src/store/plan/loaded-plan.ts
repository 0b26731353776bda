import { Yielder } from '../../async/yielder.ts'
import { IdSet } from '../../object/id-set.ts'
import { AbsentIds } from '../closure/absent-ids.ts'
import type { ByteSource } from '../pack/segment.ts'
import type { PlanTables } from './plan-format.ts'
import { LoadedPlan, type LoadedPlanOptions } from './planned-selection.ts'

/** More absent ids than this are remembered as fingerprints, and not looked up again. */
export const LOOKED_UP_IDS_MAX = 1_000

/** A plan with the absent ids as they are remembered: few as they are, many as fingerprints alone. */
export async function loadedPlan(
  source: ByteSource,
  tables: PlanTables,
  sequence: number,
  options: LoadedPlanOptions,
): Promise<LoadedPlan> {
  const { missing, absentClaims, closure } = tables
  if (missing.size + absentClaims.size <= LOOKED_UP_IDS_MAX) return new LoadedPlan(source, tables, options)
  const absent = await AbsentIds.of(
    [missing, absentClaims],
    new Yielder(options.environment),
    options.environment.hashKey,
  )
  const none = new IdSet(0)
  const light = {
    ...tables,
    absentClaims: none,
    closure: closure === undefined ? undefined : { ...closure, absentClaims: none },
  }
  const plan = new LoadedPlan(source, light, { ...options, absent })
  plan.checkedSequence = sequence
  return plan
}
