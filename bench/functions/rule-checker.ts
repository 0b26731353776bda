import {
  type AutomationContext,
  type AutomationFunction,
  boolean,
  type DagObject,
  defineInputs,
  executeFunction,
  integer,
  number,
  select,
  text,
} from 'stowage/automation'

/*
 * A rule checker: every wall must have a fire rating, and one that is high enough. It looks at the model as it streams by, so the model may be larger than
 * memory.
 */

class Inputs extends defineInputs({
  category: text({
    title: 'Category',
    description: 'Which elements are checked',
    default: 'Wall',
    minLength: 1,
    maxLength: 100,
  }),
  parameter: text({
    title: 'Parameter',
    description: 'Where the rating stands, such as "EI 60" or "F 90"',
    default: 'Fire Rating',
    minLength: 1,
    maxLength: 100,
  }),
  minimumMinutes: integer({
    title: 'Lowest rating',
    description: 'In minutes; 0 takes every rating',
    default: 0,
    gte: 0,
    lte: 360,
  }),
  tolerated: number({
    title: 'Tolerated share',
    description: 'The run succeeds while no more than so many elements in 100 break the rule',
    default: 0,
    gte: 0,
    lt: 100,
  }),
  unrated: select(
    { 'An error': 'error', 'A warning': 'warning', Nothing: 'ignored' },
    { title: 'An element without a rating is', default: 'error' },
  ),
  markFine: boolean({ title: 'Mark elements that are fine too', default: false }),
}) {}

const RATING_CHARACTERS_MAX = 100

interface Tally {
  checked: number
  broken: number
  warned: number
}

interface Finding {
  readonly level: 'error' | 'warning' | 'success'
  readonly message: string
  readonly metadata?: { readonly rating: string; readonly minimumMinutes: number }
}

async function checkRatings(context: AutomationContext<Inputs>, inputs: Inputs): Promise<void> {
  const tally: Tally = { checked: 0, broken: 0, warned: 0 }
  for await (const batch of context.objects()) {
    const elements = batch.filter((object) => object.category === inputs.category && isElement(object))
    const findings = elements.map((element) => [element, check(element, inputs)] as const)
    annotate(context, findings)
    tally.checked += elements.length
    tally.broken += findings.filter(([, finding]) => finding?.level === 'error').length
    tally.warned += findings.filter(([, finding]) => finding?.level === 'warning').length
  }
  const { checked, broken, warned } = tally
  const words = `${broken} of ${checked} elements of the category ${inputs.category} break the rule`
  if (checked === 0)
    context.markRunFailed(
      `the model has no elements of the category ${inputs.category}: choose another one, or another version`,
    )
  else if ((broken * 100) / checked > inputs.tolerated)
    context.markRunFailed(`${words}: they are marked as errors`, { ...tally })
  else context.markRunSuccess(warned === 0 ? words : `${words}, and ${warned} have a warning`, { ...tally })
}

function check(element: DagObject, { parameter, minimumMinutes, unrated, markFine }: Inputs): Finding | undefined {
  const rating = parameterValue(element, parameter)?.slice(0, RATING_CHARACTERS_MAX)
  const minutes = minutesOf(rating)
  if (rating === undefined)
    return unrated === 'ignored' ? undefined : { level: unrated, message: `There is no ${parameter}` }
  const metadata = { rating, minimumMinutes }
  if (minutes === undefined)
    return { level: 'error', message: `${parameter} is ${JSON.stringify(rating)}, which names no minutes`, metadata }
  if (minutes < minimumMinutes)
    return { level: 'error', message: `${parameter} is ${rating}, below ${minimumMinutes} minutes`, metadata }
  return markFine ? { level: 'success', message: `${parameter} is ${rating}`, metadata } : undefined
}

/** Elements with the same finding share an annotation. */
function annotate(
  context: AutomationContext<Inputs>,
  findings: readonly (readonly [DagObject, Finding | undefined])[],
): void {
  const groups = new Map<string, { readonly finding: Finding; readonly elements: DagObject[] }>()
  for (const [element, finding] of findings) {
    if (finding === undefined) continue
    const group = groups.get(finding.message) ?? { finding, elements: [] }
    group.elements.push(element)
    groups.set(finding.message, group)
  }
  const category = context.functionInputs.parameter
  for (const {
    finding: { level, message, metadata },
    elements,
  } of groups.values()) {
    if (level === 'error') context.attachErrorToObjects(category, elements, message, metadata)
    else if (level === 'warning') context.attachWarningToObjects(category, elements, message, metadata)
    else context.attachSuccessToObjects(category, elements, message, metadata)
  }
}

/** Definitions of types have a category too, and are no elements. */
function isElement({ parameters, applicationId }: DagObject): boolean {
  return typeof parameters === 'object' && parameters !== null && typeof applicationId === 'string'
}

/** The value of a parameter as text; `undefined` if there is none, or an empty one. */
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
