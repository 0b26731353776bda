import { inspect } from 'node:util'
import { StowageError } from '../../../errors.ts'
import { InputsError } from '../../author/inputs/errors.ts'
import type { SecretRedactor } from './secret-redactor.ts'

/** The longest texts of each kind, in UTF-16 units. Messages and lines are cut, names are refused. */
export const TEXT_LIMITS: { readonly messageMax: number; readonly lineMax: number; readonly nameMax: number } = {
  messageMax: 4_000,
  lineMax: 16_384,
  nameMax: 200,
}
const FILE_NAME_BYTES_MAX = 255
const SHOWN_TEXT_LENGTH_MAX = 2_000

/** Characters that cannot be shown: control characters except tabs and line ends. */
const HIDDEN = /(?![\n\r\t])\p{Cc}/gu

export function cut(text: string, lengthMax: number): string {
  return (text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text).replace(/\p{Cs}/gu, '\uFFFD')
}

/** A message for people, as it is delivered: cut, and without characters that cannot be shown. */
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
  if (text.length > TEXT_LIMITS.nameMax)
    throw new TypeError(`${what} has ${text.length} characters; the limit is ${TEXT_LIMITS.nameMax}`)
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(text))
    throw new TypeError(`${what} must be one line, without control characters and halves of characters`)
  return text
}

/** Throws `TypeError` unless it is a text with something in it. */
export function checkText(what: string, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '') throw new TypeError(`${what} must be a text that is not empty`)
}

/** Throws `invalid_request` for a name that servers refuse for its length. */
export function checkFileName(name: string): string {
  const bytes = Buffer.byteLength(name)
  if (bytes <= FILE_NAME_BYTES_MAX) return name
  throw new StowageError(
    'invalid_request',
    `the name of a file result has ${bytes} bytes of UTF-8; the limit is ${FILE_NAME_BYTES_MAX}`,
  )
}

/** A thrown value as the message of a run, not cut: it may hold secrets. This never fails, whatever the value is. */
export function describeThrown(thrown: unknown): string {
  try {
    if (thrown instanceof InputsError) return thrown.message
    if (!(thrown instanceof Error)) return `something that is not an error was thrown: ${shown(thrown, Infinity)}`
    const { name, message }: { readonly name: unknown; readonly message: unknown } = thrown
    const words = typeof message === 'string' ? message : shown(message, Infinity)
    if (typeof name === 'string' && name !== 'Error' && name !== '') return `${name}: ${words}`
    return words.trim() === '' ? 'an error without a message was thrown' : words
  } catch {
    return 'something was thrown that cannot be shown'
  }
}

/**
 * The fields of a log line, and a thrown value with its stack and causes. Their contents never make it fail. Long texts
 * within are cut.
 */
export function shown(value: unknown, textCharactersMax: number = SHOWN_TEXT_LENGTH_MAX): string {
  try {
    return inspect(value, { depth: 4, breakLength: Infinity, maxArrayLength: 100, maxStringLength: textCharactersMax })
  } catch {
    return 'a value that cannot be shown'
  }
}

/**
 * The same without secrets. Where there are any, no text within is cut, since a part of one would be left at the end.
 */
export function shownWithout(redactor: SecretRedactor, value: unknown): string {
  const whole = shown(value, Infinity)
  const clean = redactor.text(whole)
  return clean === whole ? shown(value) : clean
}
