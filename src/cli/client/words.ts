const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const
const STEP = 1_024

/** A number of bytes as people say it. */
export function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= STEP && unit < UNITS.length - 1; unit++) value /= STEP
  return `${unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${UNITS[unit]}`
}

/** `1 object`, `1,234 objects`. */
export function countText(count: number, singular: string, plural: string = `${singular}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? singular : plural}`
}

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g

/** Foreign text in one line, without what a terminal would take for commands. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
