import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AutomationContext,
  type AutomationFunction,
  boolean,
  defineInputs,
  executeFunction,
  text,
} from '../../../src/automation/index.ts'

class Inputs extends defineInputs({
  property: text({
    title: 'Property',
    description: 'What every wall must have',
    default: 'fireRating',
    maxLength: 100,
  }),
  listFine: boolean({ title: 'Mark walls that are fine too', default: false }),
}) {}

async function checkWalls(context: AutomationContext<Inputs>, { property, listFine }: Inputs): Promise<void> {
  const lines = ['id,name,has']
  let bad = 0
  for await (const batch of context.objects()) {
    for (const wall of batch.filter(({ speckle_type: type }) => type === 'Wall')) {
      const has = wall[property] !== undefined
      lines.push(`${wall.id},${JSON.stringify(wall.name)},${has}`)
      if (!has) bad += 1
      if (!has) context.attachErrorToObjects(property, [wall], `this wall has no ${property}`)
      else if (listFine) context.attachSuccessToObjects(property, [wall], `this wall has a ${property}`)
    }
  }
  await storeTable(context, lines)
  if (bad > 0) context.markRunFailed(`${bad} walls have no ${property}: they are marked as errors`)
  else context.markRunSuccess(`all ${lines.length - 1} walls have a ${property}`)
}

async function storeTable(context: AutomationContext, lines: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'walls-'))
  try {
    await writeFile(join(folder, 'walls.csv'), lines.join('\n'))
    await context.storeFileResult(join(folder, 'walls.csv'), 'Walls.csv')
  } finally {
    await rm(folder, { recursive: true })
  }
}

export const wallChecker: AutomationFunction = executeFunction(checkWalls, Inputs, {
  name: 'Wall checker',
  description: 'Finds walls that lack a property.',
})
