import type { ApiArea } from './compose.ts'
import { errorResponses, headersOf, headOf, optionsOf, SHARED_HEADERS } from './shared.ts'
import type { Operation } from './types.ts'

const TAG = 'Description'

const getDescription: Operation = {
  operationId: 'getDescription',
  summary: 'This description',
  description: 'The OpenAPI document of the service that answers. Needs no token.',
  tags: [TAG],
  security: [],
  parameters: [
    { $ref: '#/components/parameters/RequestId' },
    { $ref: '#/components/parameters/IfMatch' },
    { $ref: '#/components/parameters/IfNoneMatch' },
  ],
  responses: {
    200: {
      description: 'An OpenAPI 3.1 document.',
      headers: headersOf(['Cache-Control'], { ETag: { ...SHARED_HEADERS.ETag, required: true } }),
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['openapi', 'info', 'paths'],
            properties: {
              openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
              info: { type: 'object' },
              paths: { type: 'object' },
            },
          },
        },
      },
    },
    304: {
      description: 'The client has this version.',
      headers: headersOf(['Cache-Control'], { ETag: { ...SHARED_HEADERS.ETag, required: true } }),
    },
    ...errorResponses(
      [
        { codes: ['precondition_failed'], message: 'If-Match does not match the current ETag' },
        { codes: ['closing', 'storage_unavailable'], message: 'the service is closing; try again a little later' },
      ],
      { 412: { ETag: { ...SHARED_HEADERS.ETag, required: true } } },
    ),
  },
}

/** The operation that serves the document itself. */
export const DESCRIPTION_AREA: ApiArea = {
  tags: [{ name: TAG, description: 'What this service is.' }],
  paths: {
    '/api/openapi.json': {
      get: getDescription,
      head: headOf(getDescription, 'headDescription', ['200', '304']),
      options: optionsOf('optionsDescription', TAG),
    },
  },
  components: {},
}
