import { StowageError } from '../../errors.ts'
import type { AnnotatedObject } from '../context.ts'
import type { JsonObject, ObjectResult, ResultLevel } from '../run-data.ts'
import { checkName, checkText, cut, messageText } from './texts.ts'

/** Objects in one result; an annotation of more becomes several that are alike. */
const OBJECTS_PER_RESULT_MAX = 1_000
const OBJECTS_PER_CALL_MAX = 1_000_000
const METADATA_BYTES_MAX = 32_768
const ID_LENGTH_MAX = 512

/** An annotation as results. Throws `TypeError` and `invalid_request`. */
export function* annotationResults(level: ResultLevel, category: string, objects: readonly AnnotatedObject[], message: string, metadata?: JsonObject): Generator<ObjectResult> {
  checkName('the category of an annotation', category)
  checkText('the message of an annotation', message)
  if (!Array.isArray(objects) || objects.length === 0) throw new TypeError('an annotation needs an array of at least one object, or id of one')
  if (objects.length > OBJECTS_PER_CALL_MAX) throw new StowageError('invalid_request', `an annotation names ${objects.length} objects; the most is ${OBJECTS_PER_CALL_MAX}`)
  const common = { category, level, message: messageText(message), metadata: metadata === undefined ? null : plainJson('the metadata of an annotation', metadata) }
  const entries = objects.map(entryOf)
  for (let at = 0; at < entries.length; at += OBJECTS_PER_RESULT_MAX) {
    yield { ...common, objectAppIds: Object.fromEntries(entries.slice(at, at + OBJECTS_PER_RESULT_MAX)) }
  }
}

/** A copy, so that later changes do not reach it. Throws `TypeError` for what JSON cannot hold, `invalid_request` for what is too long. */
export function plainJson(what: string, value: JsonObject): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError(`${what} must be an object`)
  const text = jsonText(what, value)
  const bytes = Buffer.byteLength(text)
  if (bytes > METADATA_BYTES_MAX) throw new StowageError('invalid_request', `${what} has ${bytes} bytes as JSON; the most is ${METADATA_BYTES_MAX}`)
  return JSON.parse(text) as JsonObject
}

function jsonText(what: string, value: object): string {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    throw new TypeError(`${what} must be what JSON can hold`, { cause })
  }
}

function entryOf(object: AnnotatedObject, at: number): [string, string | null] {
  const id: unknown = typeof object === 'string' ? object : object?.id
  if (typeof id !== 'string' || id === '' || id.length > ID_LENGTH_MAX) throw new TypeError(`objects[${at}] of an annotation must be an id, or an object with an id, of 1 to ${ID_LENGTH_MAX} characters`)
  const applicationId = typeof object === 'string' ? undefined : object.applicationId
  return [id, typeof applicationId === 'string' ? cut(applicationId, ID_LENGTH_MAX) : null]
}
