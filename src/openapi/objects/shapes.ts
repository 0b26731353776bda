import type {
  AssignedId,
  AttributeMask,
  ObjectDiffResponse,
  ObjectStreamRequest,
  UploadSummary,
} from '../../object/wire-types.ts'
import {
  described,
  exactlyOne,
  integer,
  list,
  named,
  type NamedShape,
  object,
  optional,
  record,
  sent,
  type Shape,
  text,
} from '../description/shape.ts'

/** The JSON that the object endpoints take and answer, described once: `npm run schemas` makes the types. */

/** The most names in an attribute mask. */
export const MASK_NAMES_MAX = 1_000

const COUNT: Shape<number> = { ...integer(0, Number.MAX_SAFE_INTEGER), schema: { type: 'integer', minimum: 0 } }

export const ASSIGNED_ID: NamedShape<AssignedId> = named(
  'AssignedId',
  object(
    {
      part: described(COUNT, 'The index of the part of the body, from 0; 0 without parts.'),
      index: described(COUNT, 'Which element of its array, from 0.'),
      id: sent<string>({ $ref: '#/components/schemas/ObjectId', description: 'The id that the service made.' }),
    },
    'An object that arrived without an id, and the id that it was assigned.',
  ),
)

export const UPLOAD_SUMMARY: NamedShape<UploadSummary> = named(
  'UploadSummary',
  object(
    {
      objects: described(COUNT, 'Received objects, each id once.'),
      created: described(COUNT, 'How many of these were not held before.'),
      differing: described(
        COUNT,
        'How many of the others arrived with a text that differs from the held one. The held one stays.',
      ),
      rewritten: described(
        COUNT,
        'Objects whose text is not kept byte for byte, because an object travels as one line: line ends and tabs between tokens are removed, and raw U+0085, U+2028 and U+2029 in strings become escapes. The JSON value stays the same.',
      ),
      assigned: list(ASSIGNED_ID, {
        description:
          'The objects that arrived without an id: the first 10,000 of them, unless a server has another limit.',
      }),
      assignedCount: described(
        COUNT,
        'How many arrived without an id. If `assigned` has fewer, the others are omitted; smaller uploads list all.',
      ),
    },
    'What became of an upload.',
  ),
)

export const OBJECT_DIFF_RESPONSE: NamedShape<ObjectDiffResponse> = named(
  'ObjectDiffResponse',
  record(
    text(),
    sent<boolean>({ type: 'boolean' }),
    'Each requested id: `true` if the project holds it, otherwise `false`.',
  ),
)

function maskNames(description: string): Shape<readonly string[]> {
  return list(text(), { itemsMax: MASK_NAMES_MAX, description })
}

export const ATTRIBUTE_MASK: NamedShape<AttributeMask> = named(
  'AttributeMask',
  exactlyOne(
    { include: maskNames('Only these.'), exclude: maskNames('All but these.') },
    'The top-level members to send. `id` is always sent.',
  ),
)

export const OBJECT_STREAM_REQUEST: NamedShape<ObjectStreamRequest> = named(
  'ObjectStreamRequest',
  object(
    {
      objectIds: list(text(), { itemsMin: 1, description: 'The ids, as many as fit 32 MB.' }),
      attributeMask: optional(ATTRIBUTE_MASK),
    },
    'Objects to send, and which of their members.',
  ),
)

/** Every shape of the object endpoints that the OpenAPI document names. */
export const OBJECT_SHAPES: readonly NamedShape<unknown>[] = [
  ASSIGNED_ID,
  UPLOAD_SUMMARY,
  OBJECT_DIFF_RESPONSE,
  ATTRIBUTE_MASK,
  OBJECT_STREAM_REQUEST,
]
