import { readFileSync } from 'node:fs'
import { InvalidArgumentError, Option } from 'commander'
import { PERIOD_MS_MAX } from '../../object/roots.ts'

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }
const SECONDS_MAX = PERIOD_MS_MAX / 1_000

export function dataOption(): Option {
  return new Option('--data <folder>', 'the data folder').env('STOWAGE_DATA').argParser(folderName).default('.stowage')
}

export function jsonOption(what: string): Option {
  return new Option('--json', `${what}, for scripts`)
}

/** An empty name would be the current folder. */
export function folderName(text: string): string {
  if (text === '') throw new InvalidArgumentError('It must be the name of a folder.')
  return text
}

/** The content of the file. */
export function fileText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new InvalidArgumentError(`The file cannot be read: ${(error as NodeJS.ErrnoException).code}.`)
  }
}

export function positiveInteger(text: string): number {
  const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value) || value < 1)
    throw new InvalidArgumentError('It must be a whole number of 1 or more.')
  return value
}

/** Such as a bound that 0 turns off. */
export function wholeNumber(text: string): number {
  return text === '0' ? 0 : positiveInteger(text)
}

export function integerUpTo(max: number): (text: string) => number {
  return (text) => {
    const value = positiveInteger(text)
    if (value > max) throw new InvalidArgumentError(`It must be ${max} or less.`)
    return value
  }
}

export function portNumber(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (!(port <= 65_535)) throw new InvalidArgumentError('It must be a whole number from 0 (any free port) to 65535.')
  return port
}

/** `90s`, `15m`, `12h` or `30d`, in seconds. */
export function durationSeconds(text: string): number {
  const seconds = parsedSeconds(text)
  if (!(seconds >= 1))
    throw new InvalidArgumentError('It must be a whole number, at least 1, and a unit: 90s, 15m, 12h or 30d.')
  return checkedSeconds(seconds)
}

/** The same, or 0 with a unit or without. */
export function durationSecondsOrNone(text: string): number {
  const seconds = text === '0' ? 0 : parsedSeconds(text)
  if (Number.isNaN(seconds))
    throw new InvalidArgumentError('It must be 0, or a whole number and a unit: 90s, 15m, 12h or 30d.')
  return checkedSeconds(seconds)
}

/** `NaN` for text that is no duration. */
function parsedSeconds(text: string): number {
  const [, count, unit] = /^([0-9]{1,15})([smhd])$/.exec(text) ?? []
  return Number(count) * (SECONDS[unit] ?? Number.NaN)
}

function checkedSeconds(seconds: number): number {
  if (seconds <= SECONDS_MAX) return seconds
  throw new InvalidArgumentError(`It must be ${SECONDS_MAX / SECONDS.d}d or less.`)
}

/** For options that can be given more than once. */
export function collected(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}
