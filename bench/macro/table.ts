import { FIGURES, type FigureName, type Results, type Row } from './results.ts'

const TIMES = new Set<string>(['s', 'ms'])

/** A figure with its unit. */
export function formatFigure(name: FigureName, value: number): string {
  const { unit } = FIGURES[name]
  if (unit === 'bytes') return `${formatNumber(value / 1e6)} MB`
  return unit === 'x'
    ? formatNumber(value)
    : `${formatNumber(value)}${TIMES.has(unit) ? ' ' : unit.startsWith('/') ? '' : ' '}${unit}`
}

/** Three digits, and thousands in groups. */
export function formatNumber(value: number): string {
  const digits = Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)
  const [whole, ...rest] = digits.split('.')
  return [whole.replace(/\B(?=(\d{3})+$)/g, ','), ...rest].join('.')
}

/** The rows for a terminal: the figure, the references beside it, and the targets with their verdicts. */
export function tableOf({ rows, skipped }: Pick<Results, 'rows' | 'skipped'>): string {
  const width = Math.max(...rows.map((row) => nameOf(row).length), 10)
  const lines = rows.flatMap((row) => [
    `${nameOf(row).padEnd(width)}  ${describeRow(row)}`,
    ...row.targets.map(
      ({ aim, verdict, figure }) => `${''.padEnd(width)}    ${verdict.padEnd(9)} ${aim}: ${formatNumber(figure)}`,
    ),
  ])
  return [...lines, ...skipped.map(({ row, reason }) => `${row.padEnd(width)}  skipped: ${reason}`)].join('\n')
}

export function describeRow(row: Row): string {
  const own = row.figures[row.headline]
  if (own === undefined) return 'not measured'
  const range = own.values.length > 1 ? ` (${formatNumber(own.min)} to ${formatNumber(own.max)})` : ''
  const references = row.references.map(
    ({ name, figure, ratio }) =>
      `${name} ${formatFigure(row.headline, figure.median)}, ratio ${formatNumber(ratio.median)}`,
  )
  const others = (['serverCpuSecondsPerGb', 'firstByteMs', 'p99Ms', 'serverPeakResidentMb', 'healthP99Ms'] as const)
    .filter((name) => name !== row.headline && row.figures[name] !== undefined)
    .map((name) => `${FIGURES[name].title} ${formatFigure(name, row.figures[name]?.median ?? 0)}`)
  return [`${formatFigure(row.headline, own.median)}${range}`, ...references, ...others].join('; ')
}

function nameOf({ title, dataset }: Row): string {
  return `${title} [${dataset}]`
}
