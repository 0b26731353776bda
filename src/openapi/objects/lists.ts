import { headersOf, optionsOf, schemaRef } from '../description/shared.ts'
import type { Example, Headers, Operation, PathItem } from '../description/types.ts'
import { BODY_FAULTS, faults } from './errors.ts'
import { DOOR, DOOR_ID, lines, ROOT_ID, UNKNOWN_ID, WALL, WALL_ID } from './examples.ts'
import { idListContent, parameters, pathParameters, TAG } from './parts.ts'

/** The two endpoints that send the objects of a list. */

const HEADERS: Headers = headersOf(['Cache-Control', 'Content-Encoding', 'Stowage-Objects', 'Stowage-Missing-Objects'])
const OBJECTS: Example = { value: [WALL, DOOR] }
const LINES: Example = { value: lines([WALL, DOOR]) }

const getObjects: Operation = {
  operationId: 'getObjects',
  summary: 'A list of objects by id',
  description: [
    'The objects of a list that are held, each once. Meant for clients that have a root, compare the ids below it with their cache, and fetch the rest.',
    '`Accept` chooses between a JSON array (`application/json`, the default) and lines (`text/plain`). The order is not promised.',
  ].join('\n\n'),
  tags: [TAG],
  parameters: parameters('Strict', 'AcceptEncoding', 'ContentEncoding'),
  requestBody: {
    description: 'The ids. Other members are ignored.',
    required: true,
    content: idListContent([WALL_ID, DOOR_ID], UNKNOWN_ID),
  },
  responses: {
    200: {
      description: 'The objects that are held.',
      headers: HEADERS,
      content: {
        'application/json': {
          schema: schemaRef('ObjectArray'),
          examples: { string: OBJECTS, array: OBJECTS, form: OBJECTS },
        },
        'text/plain': { schema: schemaRef('ObjectLines'), examples: { string: LINES, array: LINES, form: LINES } },
      },
    },
    ...faults([...BODY_FAULTS, 'not_acceptable', 'objects_missing', 'id_list_too_large']),
  },
}

const streamObjects: Operation = {
  operationId: 'streamObjects',
  summary: 'A list of objects by id as lines, with an attribute mask',
  description: [
    'As `getObjects`, always as lines, with all members of each object or some. The path may end in a slash.',
    'The body is read strictly: unknown members are refused.',
  ].join('\n\n'),
  tags: [TAG],
  parameters: parameters('Strict', 'Heartbeats', 'AcceptEncoding', 'ContentEncoding'),
  requestBody: {
    description: 'The ids, and which members to send.',
    required: true,
    content: {
      'application/json': {
        schema: schemaRef('ObjectStreamRequest'),
        examples: {
          whole: { value: { objectIds: [WALL_ID, DOOR_ID] } },
          include: {
            summary: 'Only these members',
            value: { objectIds: [ROOT_ID], attributeMask: { include: ['service_type'] } },
          },
          exclude: {
            summary: 'All but these members',
            value: { objectIds: [WALL_ID], attributeMask: { exclude: ['numbers', 'totalChildrenCount'] } },
          },
        },
      },
    },
  },
  responses: {
    200: {
      description: 'The objects that are held.',
      headers: HEADERS,
      content: {
        'text/plain': {
          schema: schemaRef('ObjectLinesWithHeartbeats'),
          examples: {
            whole: LINES,
            include: { value: lines([{ id: ROOT_ID, service_type: 'Building' }]) },
            exclude: { value: lines([{ id: WALL_ID, service_type: 'Wall' }]) },
          },
        },
      },
    },
    ...faults([...BODY_FAULTS, 'not_acceptable', 'objects_missing', 'id_list_too_large'], {
      415: 'the body has the content type "text/html"; it must be application/json, in UTF-8',
    }),
  },
}

export const LIST_PATH: PathItem = {
  parameters: pathParameters('ProjectId'),
  post: getObjects,
  options: optionsOf('optionsGetObjects', TAG),
}
export const STREAM_PATH: PathItem = {
  parameters: pathParameters('ProjectId'),
  post: streamObjects,
  options: optionsOf('optionsStreamObjects', TAG),
}
