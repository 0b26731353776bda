import { schemaRef } from '../description/shared.ts'
import type { Schema } from '../description/types.ts'
import { OBJECT_SHAPES } from './shapes.ts'

export const NO_CONTROL_CHARACTERS = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]+$'

export const SCHEMAS: Readonly<Record<string, Schema>> = {
  ObjectId: {
    type: 'string',
    minLength: 1,
    maxLength: 512,
    'x-maxBytes': 512,
    pattern: NO_CONTROL_CHARACTERS,
    description:
      'Names an object. 1 to 512 bytes of UTF-8 without control characters (C0, DEL, C1), U+2028 and U+2029; in a path it is percent-encoded. Two ids are the same when their bytes are.',
  },
  ProjectId: {
    type: 'string',
    minLength: 1,
    maxLength: 128,
    'x-maxBytes': 128,
    pattern: NO_CONTROL_CHARACTERS,
    description: 'Names a project: at most 128 bytes, otherwise by the rules of object ids.',
  },
  ObjectIdArray: {
    type: 'string',
    contentMediaType: 'application/json',
    contentSchema: { type: 'array', items: { type: 'string' } },
    description:
      "A string, not an array: it holds the JSON text of an array of object ids. An id that can be no object's is not held.",
  },
  ObjectIdList: {
    type: 'object',
    required: ['objects'],
    properties: {
      objects: {
        description: 'The ids, as many as fit 32 MB; 1,000 for each request is a recommendation.',
        oneOf: [schemaRef('ObjectIdArray'), { type: 'array', items: { type: 'string' } }],
      },
    },
  },
  ObjectIdForm: { type: 'object', required: ['objects'], properties: { objects: schemaRef('ObjectIdArray') } },
  Object: {
    type: 'object',
    required: ['id'],
    properties: {
      id: schemaRef('ObjectId'),
      service_type: {
        description: 'By the contract a string that names the type of the object. Stowage keeps any value.',
      },
      totalChildrenCount: {
        description: 'By the contract an integer, the number of objects below this one. Stowage keeps any value.',
      },
      numbers: {
        description: 'By the contract an array of numbers, as an example of content. Stowage keeps any value.',
      },
    },
    description:
      'A JSON object with an id. It may hold any other members, and refers to others by `{"referencedId": "<id>"}` at any depth. Downloads return it character for character, except for white space between lines.',
  },
  ObjectArray: { type: 'array', items: schemaRef('Object') },
  ObjectLines: {
    type: 'string',
    pattern: '^([^\\t\\n]+\\t(\\{[^\\n]*\\}|\\[[^\\n]*\\])\\n)*$',
    description:
      'One object a line: its id, a tab character, its JSON text, a line feed, also after the last one. The text may be a delta only if `delta` was requested.',
  },
  ObjectLinesWithHeartbeats: {
    type: 'string',
    pattern: '^(:heartbeat\\n|[^\\t\\n]+\\t\\{[^\\n]*\\}\\n)*$',
    description:
      'One object a line: its id, a tab character, its JSON text, a line feed, also after the last one. Lines `:heartbeat` are sent only on request.',
  },
  UploadBatch: {
    type: 'array',
    items: {
      type: 'object',
      properties: { id: schemaRef('ObjectId') },
      description: 'An object. One without an id is assigned one.',
    },
    description: 'Objects of at most 10 MB each.',
  },
  DeltaBatch: {
    type: 'array',
    items: { oneOf: [{ type: 'object', description: 'An object.' }, schemaRef('Delta')] },
    description:
      'Objects, and deltas of objects, of at most 10 MB each. The results of deltas and their bases count toward the limit of the inflated request.',
  },
  Delta: {
    type: 'array',
    minItems: 2,
    prefixItems: [
      { type: 'string', ...schemaRef('ObjectId'), description: 'The id of the base, which the project must hold.' },
      {
        type: 'integer',
        minimum: 0,
        maximum: 4_294_967_295,
        description: 'The CRC-32 (RFC 1952) of the text of the object that the delta makes, in UTF-8.',
      },
    ],
    items: { oneOf: [{ type: 'integer' }, { type: 'string' }] },
    description:
      'An object as edits to the text of another one that is held, its base: after the base and the checksum come steps of three, `skip`, `copy`, `insert`: move by `skip` bytes in the base from the end of the last copy (0 at first, and it may be negative), append the `copy` bytes from there, then append the text `insert`. At most 1,048,576 characters.',
  },
  ...Object.fromEntries(OBJECT_SHAPES.map(({ name, definition }) => [name, definition])),
}
