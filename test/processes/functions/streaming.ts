import { type AutomationFunction, defineInputs, executeFunction } from '../../../src/automation/index.ts'

/** Looks at every object of a model that need not fit into memory, and says how much memory that took. */
class Inputs extends defineInputs({}) {}

export const streaming: AutomationFunction = executeFunction(async (context) => {
  let objects = 0
  for await (const batch of context.objects()) {
    objects += batch.length
    for (const mesh of batch)
      if (typeof mesh.volume === 'number' && mesh.volume < 2)
        context.attachWarningToObjects('volume', [mesh], 'smaller than 2 cubic metres', { volume: mesh.volume })
  }
  context.markRunSuccess('counted', { objects, rssMb: Math.round(process.resourceUsage().maxRSS / 1_024) })
}, Inputs)
