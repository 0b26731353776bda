import type { Spread } from '../macro/results.ts'
import { escapeHtml } from './html.ts'

export interface Bar {
  readonly label: string
  readonly spread: Spread
  readonly kind: 'own' | 'reference'
  /** The median with its unit. */
  readonly text: string
}

const WIDTH = 900
const LABEL_WIDTH = 420
const VALUE_WIDTH = 110
const BAR_HEIGHT = 18
const GAP = 8
/** A gap before the bars of the next row, so that a row and its references are seen as one group. */
const GROUP_GAP = 10
const LABEL_CHARACTERS_MAX = 60

/** Horizontal bars from 0 to the median, with a line from the least to the greatest value. Colours come from the page. */
export function barChart(bars: readonly Bar[], description: string): string {
  const scale =
    (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / Math.max(...bars.map(({ spread }) => spread.max), Number.MIN_VALUE)
  let y = 0
  const shapes = bars.map((bar, index) => {
    if (index > 0) y += bar.kind === 'own' ? GAP + GROUP_GAP : GAP
    const shape = drawBar(bar, y, scale)
    y += BAR_HEIGHT
    return shape
  })
  return `<svg viewBox="0 0 ${WIDTH} ${y}" role="img" aria-label="${escapeHtml(description)}">${shapes.join('')}</svg>`
}

function drawBar({ label, spread: { median, min, max }, kind, text }: Bar, y: number, scale: number): string {
  const middle = y + BAR_HEIGHT / 2
  const [from, to, end] = [min, max, median].map((value) => LABEL_WIDTH + value * scale)
  const shown = label.length > LABEL_CHARACTERS_MAX ? `${label.slice(0, LABEL_CHARACTERS_MAX - 1)}…` : label
  const range =
    max > min
      ? `<path class="range" d="M${round(from)} ${middle}H${round(to)}M${round(from)} ${middle - 4}V${middle + 4}M${round(to)} ${middle - 4}V${middle + 4}"/>`
      : ''
  return (
    `<text class="${kind}" x="${LABEL_WIDTH - 10}" y="${middle}" text-anchor="end">${escapeHtml(shown)}</text>` +
    `<rect class="${kind}" x="${LABEL_WIDTH}" y="${y}" width="${round(Math.max(1, end - LABEL_WIDTH))}" height="${BAR_HEIGHT}" rx="2"/>` +
    `${range}<text class="value" x="${round(Math.max(end, to) + 8)}" y="${middle}">${escapeHtml(text)}</text>`
  )
}

function round(value: number): string {
  return value.toFixed(1)
}
