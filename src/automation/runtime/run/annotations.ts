import { StowageError } from '../../../errors.ts'
import { checkObjectId } from '../../../object/id.ts'
import type { AnnotatedObject } from '../../author/context.ts'
import type { JsonObject, Annotation, AnnotationLevel } from '../../author/run-data.ts'
import { isDeeper, JSON_DEPTH_MAX } from './json-depth.ts'
import type { SecretRedactor } from './secret-redactor.ts'
import { checkName, checkText, cut, messageText, TEXT_LIMITS } from './texts.ts'

/** Objects in one result; an annotation of more becomes several that are alike. */
const OBJECTS_PER_ANNOTATION_MAX = 1_000
const OBJECTS_PER_CALL_MAX = 1_000_000
const METADATA_BYTES_MAX = 32_768
const APPLICATION_ID_LENGTH_MAX = 512

/** One annotation of objects by a function. */
export interface AnnotationCall {
  readonly level: AnnotationLevel
  readonly category: string
  readonly objects: readonly AnnotatedObject[]
  readonly message: string
  readonly metadata: JsonObject | null | undefined
}

/**
 * An annotation as annotations, as a server takes them, without secrets: those are removed before anything is cut, so that no part of one stays. Throws `TypeError`,
 * `invalid_request` and `invalid_id`.
 */
export function* annotationsOf(
  { level, category, objects, message, metadata }: AnnotationCall,
  redactor: SecretRedactor,
): Generator<Annotation> {
  checkName('the category of an annotation', category)
  checkText('the message of an annotation', message)
  if (!Array.isArray(objects) || objects.length === 0)
    throw new TypeError('an annotation needs an array of at least one object, or id of one')
  if (objects.length > OBJECTS_PER_CALL_MAX)
    throw new StowageError(
      'invalid_request',
      `an annotation names ${objects.length} objects; the limit is ${OBJECTS_PER_CALL_MAX}`,
    )
  const common = {
    category: cut(redactor.text(category), TEXT_LIMITS.nameMax),
    level,
    message: messageText(redactor.text(message)),
    metadata:
      metadata === undefined || metadata === null
        ? null
        : redactor.json(plainJson('the metadata of an annotation', metadata)),
  }
  const entries = objects.map((object, at) => entryOf(object, at, redactor))
  for (let at = 0; at < entries.length; at += OBJECTS_PER_ANNOTATION_MAX) {
    yield { ...common, objectAppIds: Object.fromEntries(entries.slice(at, at + OBJECTS_PER_ANNOTATION_MAX)) }
  }
}

/**
 * A copy, so that later changes do not affect it. Throws `TypeError` for values that JSON cannot hold, and
 * `invalid_request` for values that are too long or too deep.
 */
export function plainJson(what: string, value: JsonObject): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TypeError(`${what} must be an object`)
  const text = jsonText(what, value)
  const bytes = Buffer.byteLength(text)
  if (bytes > METADATA_BYTES_MAX)
    throw new StowageError('invalid_request', `${what} has ${bytes} bytes as JSON; the limit is ${METADATA_BYTES_MAX}`)
  const copy = JSON.parse(text) as JsonObject
  if (isDeeper(copy, JSON_DEPTH_MAX))
    throw new StowageError('invalid_request', `${what} has more than ${JSON_DEPTH_MAX} levels, the limit`)
  return copy
}

function jsonText(what: string, value: object): string {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    throw new TypeError(`${what} must be valid as JSON`, { cause })
  }
}

function entryOf(object: AnnotatedObject, at: number, redactor: SecretRedactor): [string, string | null] {
  const id = idOf(object)
  if (typeof id !== 'string' || id === '')
    throw new TypeError(`objects[${at}] of an annotation must be an id, a reference, or an object with an id`)
  checkObjectId(id)
  const applicationId = typeof object === 'string' || !('applicationId' in object) ? undefined : object.applicationId
  return [
    redactor.text(id),
    typeof applicationId === 'string' ? cut(redactor.text(applicationId), APPLICATION_ID_LENGTH_MAX) : null,
  ]
}

/** Callers that know no types may hand in anything. */
function idOf(object: AnnotatedObject | null | undefined): unknown {
  if (typeof object !== 'object' || object === null) return object
  return 'id' in object ? object.id : object.referencedId
}
