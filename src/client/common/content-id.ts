import { ClientError, quoted } from './errors.ts'
import type { TextWithBase, ObjectText } from './types.ts'

const HEX_DIGITS = 32
const encoder = new TextEncoder()
/**
 * A member `id`, of this object or of one inside it, even if its name is spelled with escapes: the last of two counts.
 */
const MAY_NAME_ID = /"(?:i|\\u0069)(?:d|\\u0064)"\s*:/i
/** Line ends for other languages; the server writes them as escapes, and takes its hash of that. */
const UNSAFE_IN_LINES = /[\u0085\u2028\u2029]/g

/**
 * The id of an object whose text has none: the first 32 hex digits of the SHA-256 of the text, as the server computes
 * it.
 */
export async function contentId(textWithoutId: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(textWithoutId)), 0, HEX_DIGITS / 2)
  let hex = ''
  for (const byte of digest) hex += byte.toString(16).padStart(2, '0')
  return hex
}

/** Whether the object's id comes first in its text, and nowhere else, and is the hash of the rest. */
export async function hasContentId({ id, json }: ObjectText): Promise<boolean> {
  const member = `{"id":"${id}"`
  if (!json.startsWith(member)) return false
  const rest = json.startsWith(',', member.length) ? json.slice(member.length + 1) : json.slice(member.length)
  return (await contentId(`{${rest}`)) === id && (!MAY_NAME_ID.test(rest) || parsedId(json) === id)
}

/** Throws `integrity_failed` for an object whose id is not the hash of its text. */
export async function checkContentIds(objects: readonly ObjectText[]): Promise<void> {
  const verdicts = await Promise.all(objects.map(hasContentId))
  const wrong = verdicts.indexOf(false)
  if (wrong !== -1)
    throw new ClientError('integrity_failed', `the id ${quoted(objects[wrong].id)} is not the hash of its text`)
}

/** A value as JSON in one line, whatever splits lines. */
export function lineText(value: unknown): string {
  return inOneLine(JSON.stringify(value))
}

function inOneLine(json: string): string {
  return json.replace(UNSAFE_IN_LINES, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The text of an object with the id as its first member. `text` has none. */
export function withId(id: string, text: string): ObjectText {
  return { id, json: `{"id":${JSON.stringify(id)}${text === '{}' ? '' : ','}${text.slice(1)}` }
}

/** An object on its way: with its id, or before it is known. */
export interface DraftText {
  readonly id: string | undefined
  readonly json: string
  /** The delta on an older object that the server holds, if it is shorter. */
  readonly delta?: string
}

/**
 * The text of an upload item: an object, `{ id, json }` or `{ id, json, base }`. A value with exactly these members,
 * two of them strings and `base` such a pair, is one of the latter. Throws `invalid_value`, `invalid_id`.
 */
export function draftText(value: object): DraftText {
  if (isObjectText(value) || hasBase(value)) {
    checkTextHasId(value)
    return value
  }
  const json = jsonText(value)
  if (json === undefined || !json.startsWith('{'))
    throw new ClientError(
      'invalid_value',
      `an object to upload must be a JSON object; this one is ${quoted(json ?? typeof value)}`,
    )
  const id = hasOwnText(value)
    ? (JSON.parse(json) as { readonly id?: unknown }).id
    : (value as { readonly id?: unknown }).id
  if (id !== undefined && typeof id !== 'string')
    throw new ClientError('invalid_value', `an object's id must be a string; this one is ${quoted(lineText(id))}`)
  return { id, json }
}

/** Adds the id of the text, if it has none yet. */
export async function completeText({ id, json, delta }: DraftText): Promise<ObjectText & Pick<DraftText, 'delta'>> {
  return id === undefined ? withId(await contentId(json), json) : { id, json, delta }
}

/** Whether the text may have members that the value does not show. */
function hasOwnText(value: object): boolean {
  return 'toJSON' in value || ('id' in value && !Object.prototype.propertyIsEnumerable.call(value, 'id'))
}

/** Throws `invalid_value` for values that JSON cannot hold, such as `bigint` and cycles. */
function jsonText(value: object): string | undefined {
  try {
    const json = JSON.stringify(value) as string | undefined
    return json === undefined ? undefined : inOneLine(json)
  } catch (cause) {
    if (!(cause instanceof TypeError) && !(cause instanceof RangeError)) throw cause
    throw new ClientError(
      'invalid_value',
      `an object to upload cannot be written as JSON: ${cause.message.split('\n', 1)[0]}`,
      { cause },
    )
  }
}

function isObjectText(value: object): value is ObjectText {
  const { id, json } = value as { readonly id?: unknown; readonly json?: unknown }
  return typeof id === 'string' && typeof json === 'string' && Object.keys(value).length === 2
}

/** Whether the upload item comes with an older object that it resembles. */
export function hasBase(value: object): value is TextWithBase {
  const { base, ...text } = value as { readonly base?: unknown }
  return typeof base === 'object' && base !== null && isObjectText(base) && isObjectText(text)
}

/**
 * Whether this is the text of an object with this id. Whether all of it is JSON is checked only if the id comes neither
 * first nor last.
 */
export function isTextOf(object: ObjectText): boolean {
  return showsId(object) || isWholeTextOf(object)
}

/** Whether this is JSON, and an object with this id. */
export function isWholeTextOf(object: ObjectText): boolean {
  try {
    return parsedId(object.json) === object.id
  } catch {
    return false
  }
}

/** The server uses the member in the text. It usually comes first or last; otherwise the text has to be parsed. */
function showsId({ id, json }: ObjectText): boolean {
  const member = `"id":${JSON.stringify(id)}`
  return json.startsWith(`{${member}`) ? json.endsWith('}') : json.startsWith('{') && json.endsWith(`,${member}}`)
}

function checkTextHasId({ id, json }: ObjectText): void {
  if (showsId({ id, json })) return
  const found = parsedId(json)
  if (found !== id)
    throw new ClientError(
      'invalid_id',
      `the text of object ${quoted(id)} has the id ${found === undefined ? 'nowhere' : quoted(JSON.stringify(found))}`,
    )
}

function parsedId(json: string): unknown {
  try {
    return (JSON.parse(json) as { readonly id?: unknown } | null)?.id
  } catch (cause) {
    throw new ClientError(
      'invalid_value',
      `an object's text is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
  }
}
