import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AutomationContext,
  type AutomationFunction,
  boolean,
  type DagObject,
  defineInputs,
  executeFunction,
  integer,
  RunFailed,
  select,
  text,
} from 'stowage/automation'

/*
 * A quantity take-off: sums lengths, areas and volumes by category and level, and stores them as a table. It holds the sums, not the model.
 */

class Inputs extends defineInputs({
  rows: select(
    { 'Category and level': 'both', Category: 'category', Level: 'level' },
    { title: 'A row for each', default: 'both' },
  ),
  categories: text({
    title: 'Categories',
    description: 'Only these, with commas between them; all of them when it is empty',
    required: false,
    maxLength: 1_000,
  }),
  decimals: integer({ title: 'Decimals', default: 2, gte: 0, lte: 6 }),
  fileName: text({ title: 'Name of the file', default: 'Take-off.csv', pattern: /^[^/\\]{1,100}\.csv$/ }),
  byteOrderMark: boolean({
    title: 'For spreadsheets',
    description: 'Begin with a byte order mark, by which spreadsheets know UTF-8',
    default: true,
  }),
}) {}

interface Sums {
  readonly category: string
  /** The key of the level; its name may come later in the stream. */
  readonly level: string
  elements: number
  length: number
  area: number
  volume: number
}

const ROWS_MAX = 100_000
const QUANTITIES = ['Length', 'Area', 'Volume'] as const

async function takeOff(context: AutomationContext<Inputs>, inputs: Inputs): Promise<void> {
  const rows = new Map<string, Sums>()
  const levelNames = new Map<string, string>()
  const wanted =
    inputs.categories === undefined ? undefined : new Set(inputs.categories.split(',').map((name) => name.trim()))
  for await (const batch of context.objects()) {
    for (const object of batch) {
      if (object.collectionType === 'level') levelNames.set(String(object.applicationId), String(object.name))
      else if (isElement(object) && (wanted?.has(object.category) ?? true))
        add(rowOf(rows, object, inputs.rows), object)
    }
  }
  if (rows.size === 0) throw new RunFailed('the model has no elements of these categories: there is nothing to add up')
  await storeTable(
    context,
    [...rows.values()].map((sums) => ({ ...sums, level: levelNames.get(sums.level) ?? sums.level })),
  )
  const elements = [...rows.values()].reduce((sum, row) => sum + row.elements, 0)
  context.markRunSuccess(`${elements} elements in ${rows.size} rows are in ${inputs.fileName}`, {
    elements,
    rows: rows.size,
  })
}

interface Element extends DagObject {
  readonly category: string
  readonly parameters: Readonly<Record<string, { readonly value?: unknown } | undefined>>
}

function isElement(object: DagObject): object is Element {
  const { category, parameters, applicationId } = object
  return (
    typeof category === 'string' &&
    typeof applicationId === 'string' &&
    typeof parameters === 'object' &&
    parameters !== null
  )
}

function rowOf(rows: Map<string, Sums>, { category, parameters }: Element, by: Inputs['rows']): Sums {
  const constraint = parameters['Base Constraint']?.value
  const level = by === 'category' || typeof constraint !== 'string' ? '' : constraint
  const key = JSON.stringify([by === 'level' ? '' : category, level])
  let row = rows.get(key)
  if (row === undefined) {
    if (rows.size >= ROWS_MAX)
      throw new RunFailed(`the table would have more than ${ROWS_MAX} rows: choose fewer categories`)
    row = { category: by === 'level' ? '' : category, level, elements: 0, length: 0, area: 0, volume: 0 }
    rows.set(key, row)
  }
  return row
}

function add(row: Sums, { parameters }: Element): void {
  const [length, area, volume] = QUANTITIES.map((name) => parameters[name]?.value).map((value) =>
    typeof value === 'number' ? value : 0,
  )
  row.elements += 1
  row.length += length
  row.area += area
  row.volume += volume
}

async function storeTable(context: AutomationContext<Inputs>, rows: readonly Sums[]): Promise<void> {
  const { decimals, fileName, byteOrderMark } = context.functionInputs
  const sorted = rows.toSorted((a, b) => compare(a.category, b.category) || compare(a.level, b.level))
  const lines = sorted.map(({ category, level, elements, length, area, volume }) => [
    cell(category),
    cell(level),
    String(elements),
    ...[length, area, volume].map((sum) => sum.toFixed(decimals)),
  ])
  const header = ['Category', 'Level', 'Elements', 'Length (m)', 'Area (m²)', 'Volume (m³)']
  const table = [header, ...lines].map((fields) => `${fields.join(',')}\r\n`).join('')
  const folder = await mkdtemp(join(tmpdir(), 'take-off-'))
  try {
    await writeFile(join(folder, 'table.csv'), byteOrderMark ? `\uFEFF${table}` : table)
    await context.storeFileResult(join(folder, 'table.csv'), fileName)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/**
 * A text as a field of CSV (RFC 4180, section 2). A spreadsheet would run a text that begins like a formula; an
 * apostrophe before it keeps it a text.
 */
function cell(value: string): string {
  const safe = /^\s*[=+\-@]|^[\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

export const quantityTakeOff: AutomationFunction = executeFunction(takeOff, Inputs, {
  name: 'Quantity take-off',
  description: 'Adds up lengths, areas and volumes by category and level, and stores them as a CSV file.',
})
