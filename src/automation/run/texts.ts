import { inspect } from 'node:util'
import { InputsError } from '../inputs/errors.ts'

/** The longest texts of each kind, in UTF-16 units. Messages and lines are cut, names are refused. */
export const TEXT_LIMITS: { readonly messageMax: number; readonly lineMax: number; readonly nameMax: number } = { messageMax: 4_000, lineMax: 16_384, nameMax: 200 }

/** What cannot be shown: control characters but tabs and line ends. */
const HIDDEN = /(?![\n\r\t])\p{Cc}/gu

export function cut(text: string, lengthMax: number): string {
  return (text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text).replace(/\p{Cs}/gu, '\uFFFD')
}

/** Words for people, as they are delivered: cut, and without what cannot be shown. */
export function messageText(text: string): string {
  return cut(text.replace(HIDDEN, '\uFFFD'), TEXT_LIMITS.messageMax)
}

/** The same on one short line. */
export function lineText(text: string): string {
  return cut(text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' '), TEXT_LIMITS.nameMax)
}

/** Throws `TypeError` unless it is one line with something in it. */
export function checkName(what: string, value: unknown): string {
  checkText(what, value)
  const text = value as string
  if (text.length > TEXT_LIMITS.nameMax) throw new TypeError(`${what} has ${text.length} characters; the most is ${TEXT_LIMITS.nameMax}`)
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(text)) throw new TypeError(`${what} must be one line, without control characters and halves of characters`)
  return text
}

/** Throws `TypeError` unless it is a text with something in it. */
export function checkText(what: string, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '') throw new TypeError(`${what} must be a text that is not empty`)
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
