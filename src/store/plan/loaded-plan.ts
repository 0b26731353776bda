import { Yielder } from '../../async/yielder.ts'
import { IdSet } from '../../object/id-set.ts'
import { AbsentIds } from '../closure/absent-ids.ts'
import type { ByteSource } from '../pack/segment.ts'
import type { PlanTables } from './plan-format.ts'
import type { PlanMaker } from './plan-maker.ts'
import { LoadedPlan, type LoadedPlanOptions } from './planned-selection.ts'

/** More absent ids than this are remembered as fingerprints, and not looked up again. */
export const LOOKED_UP_IDS_MAX = 1_000

/** A plan with the absent ids as they are remembered: few as they are, many as fingerprints alone. */
export async function loadedPlan(
  source: ByteSource,
  tables: PlanTables,
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
  plan.checkedSequence = options.sequence
  return plan
}

/** A plan that is not stored. */
export async function makeInMemory(
  maker: PlanMaker,
  planId: string,
  { signal, ...options }: LoadedPlanOptions & { readonly signal: AbortSignal },
): Promise<LoadedPlan> {
  const chunks: Uint8Array[] = []
  const { tables } = await maker.make(planId, (content) => collect(content, chunks), signal)
  return new LoadedPlan({ bytes: Buffer.concat(chunks) }, tables, options)
}

async function collect(content: AsyncIterable<Uint8Array>, chunks: Uint8Array[]): Promise<void> {
  for await (const chunk of content) chunks.push(chunk)
}
