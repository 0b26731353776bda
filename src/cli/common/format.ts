const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'] as const
const STEP = 1_024

/** A number of bytes as people say it. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= STEP && unit < UNITS.length - 1; unit++) value /= STEP
  return `${unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${UNITS[unit]}`
}

/** `1 object`, `1,234 objects`. */
export function formatCount(count: number, singular: string, plural: string = `${singular}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? singular : plural}`
}

/** A time as people say it, in its two largest units: `45 s`, `4 min 30 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600), Math.floor(seconds / 86_400)]
  if (minutes === 0) return `${seconds} s`
  if (hours === 0) return withRest(minutes, 'min', seconds % 60, 's')
  return days === 0 ? withRest(hours, 'h', minutes % 60, 'min') : withRest(days, 'd', hours % 24, 'h')
}

function withRest(count: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${count} ${unit}` : `${count} ${unit} ${rest} ${restUnit}`
}

// oxlint-disable-next-line no-control-regex -- the pattern searches for them
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g

/** Foreign text in one line, without characters that a terminal would take for commands. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
