import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AUTOMATION_API_SHAPES } from '../../src/automation-server/schemas/shapes/index.ts'
import { OBJECT_SHAPES } from '../../src/openapi/objects/shapes.ts'
import { typesOf } from '../../test/support/wire-types.ts'

/** Writes the TypeScript types of the shapes on the wire. `npm run schemas` formats them too. */
const REPOSITORY: string = join(import.meta.dirname, '..', '..')

for (const [path, text] of Object.entries(typesOf([...OBJECT_SHAPES, ...AUTOMATION_API_SHAPES])))
  writeFileSync(join(REPOSITORY, path), text)
