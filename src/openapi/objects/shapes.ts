import type { AssignedId, UploadSummary } from '../../object/upload-summary.ts'
import { described, integer, list, named, type NamedShape, object, sent, type Shape } from '../description/shape.ts'
import { schemaRef } from '../description/shared.ts'

/**
 * Answers of the object endpoints, as shapes of their types: a member that only one of the two has does not compile.
 */

const COUNT: Shape<number> = { ...integer(0, Number.MAX_SAFE_INTEGER), schema: { type: 'integer', minimum: 0 } }

export const ASSIGNED_ID: NamedShape<AssignedId> = named(
  'AssignedId',
  object(
    {
      part: described(COUNT, 'The index of the part of the body, from 0; 0 without parts.'),
      index: described(COUNT, 'Which element of its array, from 0.'),
      id: sent<string>(schemaRef('ObjectId')),
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
