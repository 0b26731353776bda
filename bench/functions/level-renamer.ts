import {
  type AutomationContext,
  type AutomationFunction,
  defineInputs,
  executeFunction,
  RunFailed,
  select,
  text,
} from 'stowage/automation'

/*
 * A transformer: gives the levels of a building other names, and makes a new version of it. What stands on the levels stays as it is, so only the levels and
 * what holds them are uploaded.
 */

class Inputs extends defineInputs({
  rule: select(
    { 'A prefix': 'prefix', 'A pattern': 'pattern', 'A list of names': 'mapping' },
    { title: 'New names come from', default: 'prefix' },
  ),
  prefix: text({
    title: 'Prefix',
    description: 'Stands before each name that does not begin with it',
    default: 'Block A: ',
    maxLength: 100,
  }),
  pattern: text({
    title: 'Pattern',
    description: '{name} is the old name, {number} counts from 0, {count} is how many there are',
    default: 'Floor {number} of {count}',
    maxLength: 200,
  }),
  mapping: text({
    title: 'List of names',
    description: 'Such as: Level 0 = Ground floor; Level 1 = First floor',
    required: false,
    maxLength: 10_000,
  }),
  message: text({ title: 'Message of the version', default: 'Levels renamed', minLength: 1, maxLength: 500 }),
}) {}

interface Collection {
  name: string
  readonly collectionType: string
  readonly elements?: readonly unknown[]
  readonly '@elements'?: readonly unknown[]
}

const NAME_CHARACTERS_MAX = 200

async function renameLevels(context: AutomationContext<Inputs>, inputs: Inputs): Promise<void> {
  const building = await context.receiveVersion()
  const levels = levelsOf(building)
  if (levels.length === 0) throw new RunFailed('the model has no levels: there is nothing to rename')
  const nameOf = namesBy(inputs, levels.length)
  const renamed: string[] = []
  for (const [number, level] of levels.entries()) {
    const name = nameOf(level.name, number)
    if (name === '' || name.length > NAME_CHARACTERS_MAX)
      throw new RunFailed(
        `level ${number} would get a name of ${name.length} characters; it must have 1 to ${NAME_CHARACTERS_MAX}`,
      )
    if (name === level.name) continue
    context.log.info(`${JSON.stringify(level.name)} becomes ${JSON.stringify(name)}`)
    level.name = name
    renamed.push(name)
  }
  if (renamed.length === 0)
    return context.markRunSuccess(`all ${levels.length} levels have these names already: there is no new version`)
  const versionId = await context.createNewVersionInProject(
    context.automationRunData.projectId,
    building,
    inputs.message,
  )
  context.markRunSuccess(`${renamed.length} of ${levels.length} levels have new names`, {
    versionId,
    renamed: renamed.length,
  })
}

/** Levels among the collections, from the first to the last, each once. */
function levelsOf(root: unknown): readonly Collection[] {
  const seen = new Set<Collection>()
  const enter = (value: unknown): void => {
    if (!isCollection(value) || seen.has(value)) return
    seen.add(value)
    for (const child of value.elements ?? value['@elements'] ?? []) enter(child)
  }
  enter(root)
  return [...seen].filter(({ collectionType }) => collectionType === 'level')
}

function isCollection(value: unknown): value is Collection {
  if (typeof value !== 'object' || value === null) return false
  const { collectionType, name } = value as Partial<Collection>
  return typeof collectionType === 'string' && typeof name === 'string'
}

function namesBy(
  { rule, prefix, pattern, mapping = '' }: Inputs,
  count: number,
): (name: string, number: number) => string {
  if (rule === 'prefix') return (name) => (name.startsWith(prefix) ? name : `${prefix}${name}`)
  if (rule === 'pattern') {
    return (name, number) =>
      pattern.replace(/\{(name|number|count)\}/g, (_, part: 'name' | 'number' | 'count') =>
        String({ name, number, count }[part]),
      )
  }
  const names = new Map(mapping.split(';').map((pair) => pairOf(pair)))
  return (name) => names.get(name) ?? name
}

function pairOf(pair: string): readonly [string, string] {
  const at = pair.indexOf('=')
  const [before, after] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
  if (at >= 0 && before !== '' && after !== '') return [before, after]
  throw new RunFailed('the list of names must have "old name = new name" between its semicolons')
}

export const levelRenamer: AutomationFunction = executeFunction(renameLevels, Inputs, {
  name: 'Level renamer',
  description: 'Gives the levels other names and makes a new version, uploading only what changed.',
})
