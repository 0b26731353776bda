import { inspect } from 'node:util'
import { InputsError } from '../inputs/errors.ts'

/** The longest texts of each kind, in UTF-16 units. Messages and lines are cut, names are refused. */
export const TEXT_LIMITS: { readonly messageMax: number; readonly lineMax: number; readonly categoryMax: number; readonly nameMax: number } = {
  messageMax: 10_000,
  lineMax: 16_384,
  categoryMax: 500,
  nameMax: 255,
}

export function cut(text: string, lengthMax: number): string {
  return text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text
}

/** Throws `TypeError` unless it is a text with something in it. */
export function checkText(what: string, value: unknown, lengthMax: number = Infinity): void {
  if (typeof value !== 'string' || value.trim() === '') throw new TypeError(`${what} must be a text that is not empty`)
  if (value.length > lengthMax) throw new TypeError(`${what} has ${value.length} characters; the most is ${lengthMax}`)
}

/** What was thrown, as the message of a run. */
export function describeThrown(thrown: unknown): string {
  if (thrown instanceof InputsError) return thrown.message
  if (!(thrown instanceof Error)) return `something that is not an error was thrown: ${shown(thrown)}`
  return thrown.name === 'Error' || thrown.name === '' ? thrown.message || 'an error without a message was thrown' : `${thrown.name}: ${thrown.message}`
}

/** With its stack and causes, for the log. */
export function explainThrown(thrown: unknown): string {
  return shown(thrown)
}

/** Fields of a line of the log: whatever they hold, they do not fail. */
export function shown(value: unknown): string {
  try {
    return inspect(value, { depth: 4, breakLength: Infinity, maxArrayLength: 100, maxStringLength: 2_000 })
  } catch {
    return 'a value that cannot be shown'
  }
}
