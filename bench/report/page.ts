import { describeMachine, describeNoise } from '../macro/summary.ts'
import { FIGURES, type FigureName, type Results, type Row } from '../macro/results.ts'
import { formatFigure, formatNumber } from '../macro/table.ts'
import { type Bar, barChart } from './chart.ts'
import { escapeHtml } from './html.ts'
import { STYLE } from './style.ts'

/** The figures of a row that its table shows, in this order. */
const COLUMNS: readonly FigureName[] = [
  'wallSeconds',
  'jsonMbPerSecond',
  'requestsPerSecond',
  'idsPerSecond',
  'wireBytes',
  'serverCpuSecondsPerGb',
  'serverCpuMicrosecondsPerObject',
  'idsPerCpuSecond',
  'firstByteMs',
  'p50Ms',
  'p99Ms',
  'serverPeakResidentMb',
  'eventLoopDelayP99Ms',
  'eventLoopDelayMaxMs',
  'healthP50Ms',
  'healthP99Ms',
]

/** One self-contained page: no scripts, no fonts, nothing from elsewhere. */
export function reportPage(results: Results): string {
  const families = [...new Set(results.rows.map(({ family }) => family))]
  return page(
    'Stowage benchmark',
    `<h1>Stowage benchmark</h1>
<p class="facts">${escapeHtml(`${results.startedAt.slice(0, 16).replace('T', ' ')} UTC, ${results.mode} run`)}</p>
${machine(results)}
<h2>Targets</h2>
${targets(results.rows)}
${families.map((family) => familySection(results.rows.filter((row) => row.family === family))).join('\n')}
${skipped(results)}`,
  )
}

/** Two runs beside each other, row by row. */
export function comparisonPage(before: Results, after: Results): string {
  const rows = after.rows.flatMap((row) => {
    const old = before.rows.find(({ id }) => id === row.id)
    return old === undefined ? [] : [{ old, row }]
  })
  const onlyOne = [...before.rows, ...after.rows].filter(({ id }) => !rows.some(({ row }) => row.id === id))
  return page(
    'Stowage benchmark: comparison',
    `<h1>Two runs compared</h1>
<section class="pair"><div><h2>A</h2>${machine(before)}</div><div><h2>B</h2>${machine(after)}</div></section>
<p>A change counts only if the ranges of both runs do not overlap.</p>
<div class="wide"><table><thead><tr><th>row</th><th class="n">A</th><th class="n">B</th><th class="n">B to A</th><th>change</th></tr></thead>
<tbody>${rows.map(({ old, row }) => comparedRow(old, row)).join('\n')}</tbody></table></div>
${[...new Set(rows.map(({ row }) => row.family))].map((family) => comparedFamily(rows.filter(({ row }) => row.family === family))).join('\n')}
${onlyOne.length === 0 ? '' : `<p>In one run only: ${escapeHtml(onlyOne.map(({ id }) => id).join(', '))}</p>`}`,
  )
}

/** `better`, `worse` or `same`: ranges that overlap tell nothing. */
export function changeOf(
  old: Row,
  row: Row,
): { readonly ratio: number; readonly verdict: 'better' | 'worse' | 'same' } {
  const [a, b] = [old.figures[row.headline], row.figures[row.headline]]
  if (a === undefined || b === undefined || a.median === 0) return { ratio: Number.NaN, verdict: 'same' }
  const ratio = b.median / a.median
  if (b.min <= a.max && a.min <= b.max) return { ratio, verdict: 'same' }
  return { ratio, verdict: ratio > 1 === (FIGURES[row.headline].better === 'higher') ? 'better' : 'worse' }
}

function comparedRow(old: Row, row: Row): string {
  const { ratio, verdict } = changeOf(old, row)
  const show = ({ figures, headline }: Row): string => {
    const value = figures[headline]
    return value === undefined
      ? ''
      : `${formatFigure(headline, value.median)}<small>${formatNumber(value.min)} to ${formatNumber(value.max)}</small>`
  }
  return `<tr><td>${rowName(row)}</td><td class="n">${show(old)}</td><td class="n">${show(row)}</td><td class="n">${Number.isNaN(ratio) ? '' : `${ratio.toFixed(2)} x`}</td><td><span class="verdict ${verdict}">${verdict}</span></td></tr>`
}

function comparedFamily(rows: readonly { readonly old: Row; readonly row: Row }[]): string {
  const figures = [...new Set(rows.map(({ row }) => row.headline))].map((headline) => {
    const of = rows.filter(({ row }) => row.headline === headline)
    const bars = of.flatMap(({ old, row }) => [
      ...ownBar(row, 'own', `B: ${row.title} [${row.dataset}]`),
      ...ownBar(old, 'reference', 'A'),
    ])
    return chart(headline, bars)
  })
  return `<h2>${escapeHtml(rows[0].row.family)}</h2>\n${figures.join('\n')}`
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body><main>
${body}
</main></body>
</html>
`
}

function machine(results: Results): string {
  const busy = results.machine.busy ? ' class="warning"' : ''
  return `<pre class="facts">${escapeHtml(describeMachine(results))}</pre>\n<p${busy}>${escapeHtml(describeNoise(results))}</p>`
}

function targets(rows: readonly Row[]): string {
  const lines = rows.flatMap((row) =>
    row.targets.map(
      ({ aim, figure, verdict }) =>
        `<tr><td>${rowName(row)}</td><td>${escapeHtml(aim)}</td><td class="n">${formatNumber(figure)}</td><td><span class="verdict ${verdict.replace(' ', '-')}">${verdict}</span></td></tr>`,
    ),
  )
  if (lines.length === 0) return '<p>No row of this run has a target.</p>'
  return `<div class="wide"><table><thead><tr><th>row</th><th>target</th><th class="n">measured</th><th>verdict</th></tr></thead><tbody>${lines.join('\n')}</tbody></table></div>`
}

function familySection(rows: readonly Row[]): string {
  const headlines = [...new Set(rows.map(({ headline }) => headline))]
  const charts = headlines.map((headline) => {
    const of = rows.filter((row) => row.headline === headline)
    return chart(headline, of.flatMap(bars))
  })
  return `<h2>${escapeHtml(rows[0].family)}</h2>\n${charts.join('\n')}\n${figuresTable(rows)}`
}

function chart(headline: FigureName, bars: readonly Bar[]): string {
  const { title, unit, better } = FIGURES[headline]
  const caption = `${title}${unit === 'x' ? '' : `, ${unit === 'bytes' ? 'MB' : unit}`} (${better} is better)`
  return `<figure><figcaption>${escapeHtml(caption)}</figcaption>${barChart(bars, caption)}</figure>`
}

function bars(row: Row): readonly Bar[] {
  return [
    ...ownBar(row, 'own', `${row.title} [${row.dataset}]`),
    ...row.references.map(({ name, figure }) => ({
      label: name,
      spread: figure,
      kind: 'reference' as const,
      text: formatFigure(row.headline, figure.median),
    })),
  ]
}

function ownBar({ headline, figures }: Row, kind: Bar['kind'], label: string): readonly Bar[] {
  const own = figures[headline]
  return own === undefined ? [] : [{ label, spread: own, kind, text: formatFigure(headline, own.median) }]
}

function figuresTable(rows: readonly Row[]): string {
  const columns = COLUMNS.filter((name) => rows.some((row) => row.figures[name] !== undefined))
  const head = columns.map((name) => `<th class="n">${escapeHtml(FIGURES[name].title)}</th>`).join('')
  const body = rows.map((row) => {
    const cells = columns.map((name) => {
      const value = row.figures[name]
      return `<td class="n">${value === undefined ? '' : escapeHtml(formatFigure(name, value.median))}</td>`
    })
    return `<tr><td>${rowName(row)}${noise(row)}</td>${cells.join('')}</tr>`
  })
  return `<div class="wide"><table><thead><tr><th>row</th>${head}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`
}

function noise({ noise: { stealShare, othersShare, attempts } }: Row): string {
  const share = stealShare + othersShare
  return share < 0.05
    ? ''
    : `<small>others used ${Math.round(share * 100)} %${attempts === 1 ? '' : `, best of ${attempts} attempts`}</small>`
}

function rowName({ title, dataset }: Row): string {
  return `${escapeHtml(title)}<small>${escapeHtml(dataset)}</small>`
}

function skipped({ skipped }: Results): string {
  if (skipped.length === 0) return ''
  const items = skipped.map(({ row, reason }) => `<li>${escapeHtml(row)}: ${escapeHtml(reason)}</li>`)
  return `<h2>Not measured</h2><ul>${items.join('')}</ul>`
}
