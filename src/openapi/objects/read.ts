import { headerRef, headersOf, headOf, optionsOf, SHARED_HEADERS, schemaRef } from '../description/shared.ts'
import type { Content, Headers, Operation, PathItem } from '../description/types.ts'
import { faults } from './errors.ts'
import { DOOR, lines, ROOT, WALL } from './examples.ts'
import { HEADERS, parameters, pathParameters, required, TAG } from './parts.ts'

/** The two endpoints that are asked with GET. */

const TOO_MUCH_MEMORY = { 413: 'this request needs more than the 62914560 bytes of memory that one request may use' }

const getSingleObject: Operation = {
  operationId: 'getSingleObject',
  summary: 'One object, without its children',
  description:
    'The object as it was uploaded. Answers JSON regardless of `Accept`. An object never changes, so the response may be cached forever.',
  tags: [TAG],
  parameters: parameters('AcceptEncoding', 'IfMatch', 'IfNoneMatch'),
  responses: {
    200: {
      description: 'The object.',
      headers: headersOf(['Cache-Control', 'Content-Encoding'], required('ETag', SHARED_HEADERS.ETag)),
      content: { 'application/json': { schema: schemaRef('Object'), examples: { root: { value: ROOT } } } },
    },
    304: {
      description: 'The client has this version.',
      headers: headersOf(['Cache-Control'], required('ETag', SHARED_HEADERS.ETag)),
    },
    ...faults(['not_found', 'not_acceptable', 'precondition_failed', 'memory_limit_exceeded'], TOO_MUCH_MEMORY),
  },
}

const SELECTION_HEADERS: Headers = headersOf([
  'Cache-Control',
  'Stowage-Objects',
  'Stowage-Missing-Objects',
  'Stowage-Closure',
  'Stowage-Have',
  'ETag',
  'Accept-Ranges',
])

const GRAPH_CONTENT: Content = {
  'application/json': { schema: schemaRef('ObjectArray'), examples: { root: { value: [ROOT, WALL, DOOR] } } },
  'text/plain': { schema: schemaRef('ObjectLines'), examples: { root: { value: lines([ROOT, WALL, DOOR]) } } },
  'application/gzip': {
    schema: {
      contentMediaType: 'application/gzip',
      description: 'With `archive=gzip`: the lines of text/plain, compressed with gzip (RFC 1952).',
    },
  },
}

const PART: Content = {
  'application/json': { schema: { type: 'string', description: 'A part of the JSON array, or of its gzip.' } },
  'text/plain': { schema: { type: 'string', description: 'A part of the lines, or of their gzip.' } },
  'application/gzip': { schema: { contentMediaType: 'application/gzip', description: 'A part of the file.' } },
}

const getObjectWithChildren: Operation = {
  operationId: 'getObjectWithChildren',
  summary: 'An object with everything below it',
  description: [
    'The object and all objects that it refers to, at any depth, each once, the root first. `Accept` chooses between a JSON array (`application/json`, the default) and lines (`text/plain`).',
    'If the server has planned the response, which it does after the first request for a graph, the response has `Content-Length`, a strong `ETag` and `Accept-Ranges`. A client that needs them and does not find them can ask again a little later.',
    'Missing objects are omitted and counted; with `strict` they cause a 409.',
  ].join('\n\n'),
  tags: [TAG],
  parameters: parameters(
    'Have',
    'Delta',
    'Strict',
    'Archive',
    'AcceptEncoding',
    'IfMatch',
    'IfNoneMatch',
    'Range',
    'IfRange',
  ),
  responses: {
    200: {
      description: 'The root and its descendants, without the objects that the client has.',
      headers: {
        ...SELECTION_HEADERS,
        'Content-Encoding': headerRef('Content-Encoding'),
        'Content-Disposition': headerRef('Content-Disposition'),
      },
      content: GRAPH_CONTENT,
    },
    206: {
      description: 'The bytes of the range.',
      headers: {
        ...SELECTION_HEADERS,
        'Content-Encoding': headerRef('Content-Encoding'),
        'Content-Disposition': headerRef('Content-Disposition'),
        'Content-Range': headerRef('Content-Range'),
        ...required('ETag', SHARED_HEADERS.ETag),
        ...required('Accept-Ranges', HEADERS['Accept-Ranges']),
      },
      content: PART,
    },
    304: {
      description: 'The client has this version.',
      headers: {
        ...SELECTION_HEADERS,
        'Content-Disposition': headerRef('Content-Disposition'),
        ...required('ETag', SHARED_HEADERS.ETag),
      },
    },
    ...faults(
      [
        'not_found',
        'not_acceptable',
        'objects_missing',
        'precondition_failed',
        'range_not_satisfiable',
        'memory_limit_exceeded',
        'not_supported',
      ],
      TOO_MUCH_MEMORY,
    ),
  },
}

const IDS = pathParameters('ProjectId', 'ObjectId')

export const SINGLE_PATH: PathItem = {
  parameters: IDS,
  get: getSingleObject,
  head: headOf(getSingleObject, 'headSingleObject', ['200', '304']),
  options: optionsOf('optionsSingleObject', TAG),
}

/** A range of a HEAD has no meaning (RFC 9110 section 14.2), so it neither gets 206 nor 416. */
const headGraph = headOf(getObjectWithChildren, 'headObjectWithChildren', ['200', '304'])
const { 416: _range, ...headResponses } = headGraph.responses
const RANGE_PARAMETERS: ReadonlySet<string> = new Set([
  '#/components/parameters/Range',
  '#/components/parameters/IfRange',
])

export const GRAPH_PATH: PathItem = {
  parameters: IDS,
  get: getObjectWithChildren,
  head: {
    ...headGraph,
    parameters: headGraph.parameters?.filter((one) => !('$ref' in one && RANGE_PARAMETERS.has(one.$ref))) ?? [],
    responses: headResponses,
  },
  options: optionsOf('optionsObjectWithChildren', TAG),
}
