import type { NamedShape } from '../../../openapi/description/shape.ts'
import { AUTOMATION_SHAPES } from './automations.ts'
import { FUNCTION_ID, RESOURCE_ID, TIME } from './common.ts'
import { FUNCTION_SHAPES } from './functions.ts'
import { KEEPING_SHAPES } from './keeping.ts'
import { MODEL_SHAPES } from './models.ts'
import { REPORT_SHAPES } from './reports.ts'
import { RUN_SHAPES } from './runs.ts'
import { UPKEEP_SHAPES } from './upkeep.ts'

/** Every shape of automation that the OpenAPI document names. */
export const AUTOMATION_API_SHAPES: readonly NamedShape<unknown>[] = [
  TIME,
  RESOURCE_ID,
  FUNCTION_ID,
  ...MODEL_SHAPES,
  ...FUNCTION_SHAPES,
  ...AUTOMATION_SHAPES,
  ...REPORT_SHAPES,
  ...RUN_SHAPES,
  ...KEEPING_SHAPES,
  ...UPKEEP_SHAPES,
]
