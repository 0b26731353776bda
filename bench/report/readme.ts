import { describeMachine, describeNoise } from '../macro/summary.ts'
import type { Results, Row } from '../macro/results.ts'
import { formatFigure, formatNumber } from '../macro/table.ts'

const START = '<!-- benchmark: written by `npm run bench -- --publish` -->'
const END = '<!-- end of benchmark -->'

const OBJECTS_SHOWN_MIN = 20_000

/** The rows of the README's table, by family and variant, in this order. */
const ROWS: readonly string[] = [
  'recursive/planned',
  'versions/5-in-100',
  'forms/array',
  'forms/lines-identity',
  'restart',
  'unplanned',
  'upload',
  'single/1-client',
  'single/32-clients',
  'random-ids/4-clients',
  'neighbours',
  'diff',
]

/** The table and what it was measured on, between its markers. */
export function readmeBlock(results: Results): string {
  const rows = ROWS.flatMap((name) => results.rows.filter((row) => nameOf(row) === name && isShown(row, results)))
  const lines = rows.map(
    (row) => `| ${row.title} (${modelOf(row, results)}) | ${ownFigure(row)} | ${references(row)} |`,
  )
  return [
    START,
    '',
    '| operation (model) | Stowage | reference, same bytes, same rounds |',
    '| --- | --- | --- |',
    ...lines,
    '',
    ...[...describeMachine(results).split('\n'), describeNoise(results)].map((line) => `- ${line.trim()}`),
    '',
    END,
  ].join('\n')
}

/** The text with another block between the markers. Throws if it has no markers. */
export function replaceBlock(text: string, block: string): string {
  const [start, end] = [text.indexOf(START), text.indexOf(END)]
  if (start === -1 || end < start) throw new Error('the README has no markers for the table of the benchmark')
  return text.slice(0, start) + block + text.slice(end + END.length)
}

/** The block that a text has now. */
export function currentBlock(text: string): string {
  return text.slice(text.indexOf(START), text.indexOf(END) + END.length)
}

/** Without what a formatter changes: the width of columns, and where lines end. */
export function withoutFormatting(block: string): string {
  return block.replace(/-{3,}/g, '---').replace(/\s+/g, ' ')
}

function nameOf({ id, family }: Row): string {
  const variant = id.split('/')[2]
  return variant === undefined ? family : `${family}/${variant}`
}

/** Small models are measured for the sake of growth alone. */
function isShown({ dataset }: Row, { datasets }: Results): boolean {
  const objects = datasets.find(({ name }) => name === dataset)?.objects ?? 0
  return objects >= OBJECTS_SHOWN_MIN || datasets.every((other) => other.objects < OBJECTS_SHOWN_MIN)
}

function modelOf({ dataset }: Row, { datasets }: Results): string {
  const model = datasets.find(({ name }) => name === dataset)
  return model === undefined ? dataset : `${model.profile}, ${model.objects.toLocaleString('en')} objects`
}

function ownFigure({ headline, figures }: Row): string {
  const value = figures[headline]
  if (value === undefined) return ''
  const range = value.values.length > 1 ? ` (${formatNumber(value.min)} to ${formatNumber(value.max)})` : ''
  return `${formatFigure(headline, value.median)}${range}`
}

function references({ headline, references }: Row): string {
  return references
    .map(
      ({ name, figure, ratio }) =>
        `${name}: ${formatFigure(headline, figure.median)}, ratio ${formatNumber(ratio.median)}`,
    )
    .join('; ')
}
