import { type AutomationFunction, defineInputs, executeFunction } from '../../../src/automation/index.ts'

/** Looks at every object of a model that need not fit into memory, and says how much memory that took. */
class Inputs extends defineInputs({}) {}

export const streaming: AutomationFunction = executeFunction(async (context) => {
  let objects = 0
  for await (const batch of context.objects()) {
    objects += batch.length
    const thin = batch.filter(({ thickness }) => typeof thickness === 'number' && thickness < 20)
    if (thin.length > 0) context.attachWarningToObjects('thickness', thin, 'thinner than 20')
  }
  context.markRunSuccess('counted', { objects, rssMb: Math.round(process.resourceUsage().maxRSS / 1_024) })
}, Inputs)
