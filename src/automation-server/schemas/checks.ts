import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import type { PageRequest } from '../../client/resources/types.ts'

const ID = /^[0-9a-f]{32}$/
const CONTROL = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u
const CONTROL_BUT_LINES = /[\p{Surrogate}]|(?![\n\r\t])\p{Cc}/u
export const NAME_CHARACTERS_MAX = 200
export const MESSAGE_CHARACTERS_MAX = 4_000
export const PAGE_ITEMS_MAX = 1_000

/** Throws `invalid_id`. */
export function checkResourceId(id: string, what: string): void {
  if (!ID.test(id))
    throw new StowageError(
      'invalid_id',
      `the ${what} id ${quoted(id)} is invalid; it must be 32 hex digits in lower case`,
    )
}

/** The same for a member of a body, by its name. Throws `invalid_id`. */
export function checkMemberId(id: string, at: string): void {
  if (!ID.test(id))
    throw new StowageError('invalid_id', `${at} is ${quoted(id)}; it must be an id of 32 hex digits in lower case`)
}

/** A name or title: one line. Throws `invalid_request`. */
export function checkName(text: string, what: string): void {
  if (text.trim() === '' || isLonger(text, NAME_CHARACTERS_MAX) || CONTROL.test(text)) {
    throw new StowageError(
      'invalid_request',
      `${what} is ${quoted(text)}; it must be one line of 1 to ${NAME_CHARACTERS_MAX} characters, without control characters and lone surrogates`,
    )
  }
}

/** Words for people, which may have lines. Throws `invalid_request`. */
export function checkMessage(text: string, what: string): void {
  if (!isLonger(text, MESSAGE_CHARACTERS_MAX) && !CONTROL_BUT_LINES.test(text)) return
  throw new StowageError(
    'invalid_request',
    `${what} ${quoted(text)} must have at most ${MESSAGE_CHARACTERS_MAX} characters, without control characters and lone surrogates`,
  )
}

/** A message of the length of a name. Throws `invalid_request`. */
export function checkShortMessage(text: string, what: string): void {
  checkMessage(text, what)
  if (!isLonger(text, NAME_CHARACTERS_MAX)) return
  throw new StowageError(
    'invalid_request',
    `${what} ${quoted(text)} must have at most ${NAME_CHARACTERS_MAX} characters`,
  )
}

/** Characters are code points, as in JSON Schema: most emoji have two UTF-16 units and are one character. */
function isLonger(text: string, charactersMax: number): boolean {
  return text.length > charactersMax && Array.from(text).length > charactersMax
}

/** Throws `invalid_request`. */
export function checkPage({ limit, cursor }: PageRequest): void {
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1 && limit <= PAGE_ITEMS_MAX)) {
    throw new StowageError('invalid_request', `limit is ${limit}; it must be an integer from 1 to ${PAGE_ITEMS_MAX}`)
  }
  if (cursor !== undefined && !/^[0-9a-f.-]{1,64}$/.test(cursor))
    throw new StowageError('invalid_request', `the cursor ${quoted(cursor)} is not one that a page gave`)
}

/** Checks the value of a header of that name; `undefined` is valid. Throws `invalid_request`. */
export function checkIdempotencyKey(key: string | undefined): void {
  if (key === undefined || (key !== '' && key.length <= NAME_CHARACTERS_MAX)) return
  throw new StowageError(
    'invalid_request',
    `Idempotency-Key has ${key.length} characters; it must have 1 to ${NAME_CHARACTERS_MAX}`,
  )
}

export function notFoundError(what: string, id: string): StowageError {
  return new StowageError('not_found', `there is no ${what} ${quoted(id)} in this project`)
}
