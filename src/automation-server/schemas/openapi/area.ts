import type { ApiArea } from '../../../openapi/description/compose.ts'
import { AUTOMATION_PATHS, AUTOMATION_TAG } from './automations.ts'
import { FUNCTION_PATHS, FUNCTION_TAG } from './functions.ts'
import { KEEPING_PATHS, KEEPING_TAG } from './keeping.ts'
import { MODEL_PATHS, MODEL_TAG } from './models.ts'
import { OWN_RUN_PATHS, OWN_RUN_TAGS } from './own-run.ts'
import { HEADERS, PARAMETERS } from './parts.ts'
import { RUN_PATHS, RUN_TAG } from './runs.ts'
import { UPKEEP_PATHS, UPKEEP_TAG } from './upkeep.ts'
import { AUTOMATION_API_SHAPES } from '../shapes/index.ts'

/** The additions of automation to the description of a service. */
export const AUTOMATION_AREA: ApiArea = {
  tags: [MODEL_TAG, FUNCTION_TAG, AUTOMATION_TAG, RUN_TAG, ...OWN_RUN_TAGS, KEEPING_TAG, UPKEEP_TAG],
  paths: {
    ...MODEL_PATHS,
    ...FUNCTION_PATHS,
    ...AUTOMATION_PATHS,
    ...RUN_PATHS,
    ...OWN_RUN_PATHS,
    ...KEEPING_PATHS,
    ...UPKEEP_PATHS,
  },
  components: {
    schemas: Object.fromEntries(AUTOMATION_API_SHAPES.map(({ name, definition }) => [name, definition])),
    parameters: PARAMETERS,
    headers: HEADERS,
  },
}
