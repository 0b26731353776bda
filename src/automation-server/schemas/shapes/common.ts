import { isDeeper, JSON_DEPTH_MAX } from '../../../automation/runtime/run/json-depth.ts'
import type { JsonObject } from '../../../automation/author/json.ts'
import { checkObjectId, checkProjectId, quoted } from '../../../object/id.ts'
import {
  found,
  integer,
  isObject,
  list,
  named,
  type NamedShape,
  nullable,
  object,
  type Shape,
  text,
  wrong,
} from '../../../openapi/description/shape.ts'
import type { Page } from '../../../client/resources/types.ts'
import {
  checkMemberId,
  checkMessage,
  checkName,
  MESSAGE_CHARACTERS_MAX,
  NAME_CHARACTERS_MAX,
  PAGE_ITEMS_MAX,
} from '../checks.ts'

/** Parts that the shapes of automation share. */

const ONE_LINE = '[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]'
/** One line that is not blank. */
export const ONE_LINE_WITH_TEXT: string = `^${ONE_LINE}*[^\\s\\u0000-\\u001f\\u007f-\\u009f]${ONE_LINE}*$`
const FUNCTION_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
/** Text that may have several lines, without other control characters. */
export const LINES = '^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$'

export const TIME: NamedShape<string> = named(
  'Time',
  text({
    pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
    description: 'A time in ISO 8601, in UTC, with milliseconds.',
  }),
)

export const RESOURCE_ID: NamedShape<string> = named(
  'ResourceId',
  text(
    { pattern: '^[0-9a-f]{32}$', description: 'Made by the server: 32 hex digits that sort by age.' },
    checkMemberId,
  ),
)

/** Described by the object endpoints. */
export const PROJECT_ID: Shape<string> = {
  schema: { $ref: '#/components/schemas/ProjectId' },
  read: (value, at) => {
    const id = text().read(value, at)
    checkProjectId(id, at)
    return id
  },
}

export const FUNCTION_ID: NamedShape<string> = named(
  'FunctionId',
  text(
    {
      pattern: FUNCTION_ID_PATTERN.source,
      description: 'Names a function. Whoever registers the function chooses it.',
    },
    (id, at) => {
      if (!FUNCTION_ID_PATTERN.test(id))
        throw wrong(at, 'the id of a function: 1 to 100 letters, digits, dots, dashes and underscores', quoted(id))
    },
  ),
)

/** Described by the object endpoints. */
export const OBJECT_ID: Shape<string> = {
  schema: { $ref: '#/components/schemas/ObjectId' },
  read: (value, at) => {
    const id = text().read(value, at)
    checkObjectId(id, at)
    return id
  },
}

/** Any number of things. */
export const COUNT: Shape<number> = {
  schema: { type: 'integer', minimum: 0 },
  read: integer(0, Number.MAX_SAFE_INTEGER).read,
}

/** A name or title: one line. */
export function nameText(description: string): Shape<string> {
  return text({ minLength: 1, maxLength: NAME_CHARACTERS_MAX, pattern: ONE_LINE_WITH_TEXT, description }, checkName)
}

/** Text for people, which may have several lines. */
export function messageText(description: string): Shape<string> {
  return text({ maxLength: MESSAGE_CHARACTERS_MAX, pattern: LINES, description }, checkMessage)
}

/** Any JSON object within these bytes and levels. */
export function jsonObject(bytesMax: number, description: string): Shape<JsonObject> {
  return {
    schema: { type: 'object', description },
    read: (value, at) => {
      if (!isObject(value)) throw wrong(at, 'an object', found(value))
      if (isDeeper(value, JSON_DEPTH_MAX)) throw wrong(at, `an object of at most ${JSON_DEPTH_MAX} levels`, 'deeper')
      const bytes = Buffer.byteLength(JSON.stringify(value))
      if (bytes > bytesMax) throw wrong(at, `an object of at most ${bytesMax} bytes of JSON`, `one of ${bytes}`)
      return value as JsonObject
    },
  }
}

/** A part of a list of such items. */
export function pageOf<T>(item: NamedShape<T>): NamedShape<Page<T>> {
  return named(
    `${item.name}Page`,
    object(
      {
        items: list(item, { itemsMax: PAGE_ITEMS_MAX }),
        cursor: nullable(
          text(),
          'The value of `cursor` for the next part; `null` at the end. A part may be short, or empty, before the end.',
        ),
      },
      'A part of a list.',
    ),
  )
}
