import {
  type AutomationContext,
  type AutomationFunction,
  defineInputs,
  executeFunction,
  text,
} from '../../../src/automation/index.ts'

class Inputs extends defineInputs({ property: text({ title: 'Property', default: 'fireRating' }) }) {}

async function checkWalls(context: AutomationContext<Inputs>, { property }: Inputs): Promise<void> {
  for await (const batch of context.objects()) {
    const bad = batch.filter((object) => object.speckle_type === 'Wall' && object[property] === undefined)
    if (bad.length > 0) context.attachErrorToObjects(property, bad, `this wall has no ${property}`)
  }
  context.markRunSuccess('every wall was looked at')
}

export const wallChecker: AutomationFunction = executeFunction(checkWalls, Inputs, { name: 'Wall checker' })
