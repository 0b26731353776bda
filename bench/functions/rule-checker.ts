import { type AutomationContext, type AutomationFunction, boolean, type DagObject, defineInputs, executeFunction, integer, number, select, text } from 'stowage/automation'

/*
 * A rule checker: every wall must have a fire rating, and one that is high enough. It looks at the model as it streams by, so the model may be larger than
 * memory.
 */

class Inputs extends defineInputs({
  category: text({ title: 'Category', description: 'Which elements are checked', default: 'Wall', minLength: 1, maxLength: 100 }),
  parameter: text({ title: 'Parameter', description: 'Where the rating stands, such as "EI 60" or "F 90"', default: 'Fire Rating', minLength: 1, maxLength: 100 }),
  minimumMinutes: integer({ title: 'Lowest rating', description: 'In minutes; 0 takes every rating', default: 0, gte: 0, lte: 360 }),
  tolerated: number({ title: 'Tolerated share', description: 'The run succeeds while no more than so many elements in 100 break the rule', default: 0, gte: 0, lt: 100 }),
  unrated: select({ error: 'An error', warning: 'A warning', ignored: 'Nothing' }, { title: 'An element without a rating is', default: 'error' }),
  markFine: boolean({ title: 'Mark elements that are fine too', default: false }),
}) {}

interface Tally {
  checked: number
  broken: number
  warned: number
}

async function checkRatings(context: AutomationContext<Inputs>, inputs: Inputs): Promise<void> {
  const tally: Tally = { checked: 0, broken: 0, warned: 0 }
  for await (const batch of context.objects()) {
    for (const element of batch) if (element.category === inputs.category && isElement(element)) check(context, element, tally)
  }
  const { checked, broken, warned } = tally
  const words = `${broken} of ${checked} elements of the category ${inputs.category} break the rule`
  if (checked === 0) context.markRunFailed(`the model has no elements of the category ${inputs.category}: choose another one, or another version`)
  else if ((broken * 100) / checked > inputs.tolerated) context.markRunFailed(`${words}: they are marked as errors`, { ...tally })
  else context.markRunSuccess(warned === 0 ? words : `${words}, and ${warned} have a warning`, { ...tally })
}

function check(context: AutomationContext<Inputs>, element: DagObject, tally: Tally): void {
  const { parameter, minimumMinutes, unrated, markFine } = context.functionInputs
  const rating = parameterValue(element, parameter)
  const minutes = minutesOf(rating)
  tally.checked += 1
  if (rating === undefined) {
    if (unrated === 'error') tally.broken += 1
    if (unrated === 'warning') tally.warned += 1
    if (unrated === 'error') context.attachErrorToObjects(parameter, [element], `has no ${parameter}`)
    if (unrated === 'warning') context.attachWarningToObjects(parameter, [element], `has no ${parameter}`)
  } else if (minutes === undefined || minutes < minimumMinutes) {
    tally.broken += 1
    const message = minutes === undefined ? `its ${parameter} names no minutes` : `its ${parameter} is below ${minimumMinutes} minutes`
    context.attachErrorToObjects(parameter, [element], message, { rating: rating.slice(0, 100), minimumMinutes })
  } else if (markFine) {
    context.attachSuccessToObjects(parameter, [element], `its ${parameter} is high enough`, { rating: rating.slice(0, 100) })
  }
}

/** Definitions of types have a category too, and are no elements. */
function isElement({ parameters, applicationId }: DagObject): boolean {
  return typeof parameters === 'object' && parameters !== null && typeof applicationId === 'string'
}

/** The value of a parameter as text; `undefined` where there is none, or an empty one. */
function parameterValue({ parameters }: DagObject, name: string): string | undefined {
  const { value } = (parameters as Readonly<Record<string, { readonly value?: unknown } | undefined>>)[name] ?? {}
  return (typeof value === 'string' && value.trim() !== '') || typeof value === 'number' ? String(value) : undefined
}

/** Of "EI 60", "F 90-A" and 120 alike. */
function minutesOf(rating: string | undefined): number | undefined {
  const digits = /\d{1,4}/.exec(rating ?? '')
  return digits === null ? undefined : Number(digits[0])
}

export const ruleChecker: AutomationFunction = executeFunction(checkRatings, Inputs, {
  name: 'Rule checker',
  description: 'Marks walls that have no fire rating, or one that is too low, as errors.',
})
