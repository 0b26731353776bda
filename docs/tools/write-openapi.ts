import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ARCHIVES_AREA } from '../../src/archive/server/openapi.ts'
import { AUTOMATION_AREA } from '../../src/automation-server/schemas/openapi/area.ts'
import { openApiDocument } from '../../src/openapi/document.ts'
import { REPOSITORY } from './entry-points.ts'

/** A part of `npm run build`: the description as the package ships it, `stowage/openapi.json`. */
writeFileSync(
  join(REPOSITORY, 'dist', 'openapi.json'),
  `${JSON.stringify(openApiDocument({ server: '/', areas: [AUTOMATION_AREA, ARCHIVES_AREA] }))}\n`,
)
