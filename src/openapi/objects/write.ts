import { headersOf, optionsOf, schemaRef } from '../description/shared.ts'
import type { Example, Operation, PathItem } from '../description/types.ts'
import { BODY_FAULTS, faults } from './errors.ts'
import { BLOCKS_MEDIA_TYPE } from '../../blocks/ready-blocks.ts'
import { DELTA_MEDIA_TYPE } from '../../delta/delta.ts'
import { DOOR, DOOR_ID, ROOT, ROOT_ID, SECOND_DOOR_DELTA, UNKNOWN_ID, WALL } from './examples.ts'
import { idListContent, parameters, pathParameters, TAG } from './parts.ts'

/** The two endpoints that need the right to write. */

const FORBIDDEN = { 403: 'this token does not give the right to write in this project' }

const DIFF_EXAMPLE: Example = { value: { [ROOT_ID]: true, [DOOR_ID]: true, [UNKNOWN_ID]: false } }

const checkObjectsExist: Operation = {
  operationId: 'checkObjectsExist',
  summary: 'Which of a list of objects are held',
  description: [
    'Tells which of a list of objects the project already holds, so that nothing is uploaded twice. An unknown project holds nothing.',
    'Answers JSON regardless of `Accept`.',
  ].join('\n\n'),
  tags: [TAG],
  parameters: parameters('ContentEncoding'),
  requestBody: {
    description: 'The ids. Other members are ignored.',
    required: true,
    content: idListContent([ROOT_ID, DOOR_ID], UNKNOWN_ID),
  },
  responses: {
    200: {
      description: 'Every id of the list, once.',
      headers: headersOf(['Cache-Control', 'Accept-Post']),
      content: {
        'application/json': {
          schema: schemaRef('ObjectDiffResponse'),
          examples: { string: DIFF_EXAMPLE, array: DIFF_EXAMPLE, form: DIFF_EXAMPLE },
        },
      },
    },
    ...faults([...BODY_FAULTS, 'id_list_too_large'], FORBIDDEN),
  },
}

const MODEL: Example = { summary: 'A building with a wall and a door', value: [ROOT, WALL, DOOR] }
const WITHOUT_ID: Example = { summary: 'An object without an id', value: [{ service_type: 'Window', numbers: [1.2] }] }
const SUMMARY: Example = {
  value: { objects: 3, created: 3, differing: 0, rewritten: 0, assigned: [], assignedCount: 0 },
}

const UPLOADED = {
  description: 'Everything is stored and durable.',
  headers: headersOf(['Cache-Control', 'Accept-Post']),
  content: {
    'application/json': {
      schema: schemaRef('UploadSummary'),
      examples: {
        model: SUMMARY,
        files: SUMMARY,
        compressed: SUMMARY,
        blocks: SUMMARY,
        nameless: {
          value: {
            objects: 1,
            created: 1,
            differing: 0,
            rewritten: 0,
            assigned: [{ part: 0, index: 0, id: 'c4ca4238a0b923820dcc509a6f75849b' }],
            assignedCount: 1,
          },
        },
      },
    },
  },
} as const

const uploadObjects: Operation = {
  operationId: 'uploadObjects',
  summary: 'Upload a batch of objects',
  description: [
    'Stores a batch of objects, all or nothing: after an error nothing of the request is stored. A held object stays unchanged.',
    'At most 50 MB in one request and 10 MB in one object; a server can set other limits. Larger uploads are several requests, which may run at the same time.',
    `Objects of a newer version can be uploaded as deltas on those of an older one (\`${DELTA_MEDIA_TYPE}\`), which costs a small part of their bytes and needs the right to read, too. If a base is not held, or has another text, the response is a 409 \`base_mismatch\`: send that batch whole.`,
    `Objects can also be uploaded as ready blocks (\`${BLOCKS_MEDIA_TYPE}\`): compressed as the server stores them, which saves it most of the work. The format is described in the guide to the client.`,
    'Uploading writes objects that nothing refers to yet, so an abandoned upload leaves unused objects.',
  ].join('\n\n'),
  tags: [TAG],
  parameters: parameters('ContentEncoding'),
  requestBody: {
    description: 'JSON arrays of objects. Compressing them with gzip is recommended.',
    required: true,
    content: {
      'multipart/form-data': {
        schema: {
          type: 'object',
          required: ['file'],
          properties: {
            file: {
              type: 'array',
              minItems: 1,
              maxItems: 100,
              items: { type: 'string', contentMediaType: 'application/json', contentSchema: schemaRef('UploadBatch') },
              description:
                'Files, each a JSON array of objects, plain or compressed with gzip. Every part must be a file.',
            },
          },
        },
        encoding: { file: { contentType: 'application/json, application/gzip, text/plain, application/octet-stream' } },
        examples: {
          files: {
            summary: 'Two batches as two files',
            value: { file: [JSON.stringify([ROOT]), JSON.stringify([WALL, DOOR])] },
          },
        },
      },
      'application/gzip': {
        schema: {
          contentMediaType: 'application/gzip',
          description: 'A JSON array of objects, compressed with gzip (RFC 1952).',
        },
        examples: { compressed: { summary: 'This array, compressed with gzip', value: [ROOT, WALL, DOOR] } },
      },
      'application/json': { schema: schemaRef('UploadBatch'), examples: { model: MODEL, nameless: WITHOUT_ID } },
      [BLOCKS_MEDIA_TYPE]: {
        schema: { contentMediaType: BLOCKS_MEDIA_TYPE, description: 'Ready blocks of objects.' },
        examples: { blocks: { summary: 'These objects, as one block', value: [ROOT, WALL, DOOR] } },
      },
      [DELTA_MEDIA_TYPE]: {
        schema: schemaRef('DeltaBatch'),
        examples: {
          deltas: { summary: 'An object, and one as a delta on the door', value: [{ id: 'c0' }, SECOND_DOOR_DELTA] },
        },
      },
    },
  },
  responses: {
    200: UPLOADED,
    201: {
      ...UPLOADED,
      description: 'The same, from servers that are configured to answer 201, for clients that require it.',
    },
    ...faults(
      [
        ...BODY_FAULTS,
        'invalid_object',
        'invalid_delta',
        'invalid_blocks',
        'invalid_multipart',
        'project_removed',
        'base_mismatch',
        'request_too_large',
        'object_too_large',
        'inflated_too_large',
        'too_many_objects',
        'too_many_parts',
        'part_header_too_large',
        'memory_limit_exceeded',
        'storage_full',
        'quota_exceeded',
      ],
      {
        ...FORBIDDEN,
        409: 'the project was removed while objects were uploaded to it',
        413: "the request's body (52428801 bytes) is larger than the limit of 52428800 bytes",
        415: 'the body is "text/html"; an upload must be multipart/form-data, application/gzip, or application/json (plain or with Content-Encoding gzip)',
      },
    ),
  },
}

export const DIFF_PATH: PathItem = {
  parameters: pathParameters('ProjectId'),
  post: checkObjectsExist,
  options: optionsOf('optionsCheckObjectsExist', TAG),
}
export const UPLOAD_PATH: PathItem = {
  parameters: pathParameters('ProjectId'),
  post: uploadObjects,
  options: optionsOf('optionsUploadObjects', TAG),
}
