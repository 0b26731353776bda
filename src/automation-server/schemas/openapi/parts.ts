import type { ServiceErrorCode } from '../../../errors.ts'
import { faults } from '../../../openapi/objects/errors.ts'
import { pathParameters } from '../../../openapi/objects/parts.ts'
import { headersOf, headOf, optionsOf, schemaRef } from '../../../openapi/description/shared.ts'
import type {
  Examples,
  Header,
  MediaType,
  Operation,
  OperationMethod,
  Parameter,
  PathItem,
  RequestBody,
  Response,
  Responses,
  Schema,
} from '../../../openapi/description/types.ts'
import {
  ARTIFACT_ID,
  ARTIFACT_TEXT,
  AUTOMATION_ID,
  FUNCTION_ID,
  MODEL_ID,
  PIN_ID,
  RUN_ID,
  VERSION_ID,
} from './examples.ts'
import { ONE_LINE_WITH_TEXT, RESOURCE_ID } from '../shapes/common.ts'

/** Parts that the paths of automation share: parameters, headers, responses. */

export const PROJECT = '/api/v1/projects/{projectId}'

function idParameter(name: string, what: string, value: string): Parameter {
  return {
    name,
    in: 'path',
    required: true,
    description: `The ${what}.`,
    schema: RESOURCE_ID.schema,
    examples: { one: { value } },
  }
}

/** Each list has its own format of cursors. */
function cursorParameter(pattern: string): Parameter {
  return {
    name: 'cursor',
    in: 'query',
    description: 'Where to continue: the `cursor` of the page before.',
    schema: { type: 'string', pattern },
  }
}

export const PARAMETERS: Readonly<Record<string, Parameter>> = {
  ModelId: idParameter('modelId', 'model', MODEL_ID),
  VersionId: idParameter('versionId', 'version', VERSION_ID),
  AutomationId: idParameter('automationId', 'automation', AUTOMATION_ID),
  RunId: idParameter('runId', 'run', RUN_ID),
  ArtifactId: idParameter('artifactId', 'artifact', ARTIFACT_ID),
  PinId: idParameter('pinId', 'pin', PIN_ID),
  FunctionId: {
    name: 'functionId',
    in: 'path',
    required: true,
    description: 'The function.',
    schema: schemaRef('FunctionId'),
    examples: { one: { value: FUNCTION_ID } },
  },
  Limit: {
    name: 'limit',
    in: 'query',
    description: 'How many items the answer has at most. 100 by default.',
    schema: { type: 'integer', minimum: 1, maximum: 1_000 },
    examples: { most: { value: 1_000 } },
  },
  Cursor: cursorParameter('^[0-9a-f.-]{1,64}$'),
  Deleted: {
    name: 'deleted',
    in: 'query',
    description: 'Whether deleted ones are in the list too. `false` by default.',
    schema: { type: 'boolean' },
    examples: { all: { value: true } },
  },
  ObjectCursor: cursorParameter('^[0-9a-f]{1,8}\\.[0-9a-f]{1,12}\\.[0-9a-f]{1,8}$'),
  FunctionCursor: cursorParameter('^[0-9a-f]{1,8}$'),
  AnnotationCursor: cursorParameter('^[0-9a-f]{1,8}\\.[0-9a-f]{1,8}$'),
  LogCursor: cursorParameter('^[0-9a-f]{8}$'),
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'Two requests of one run with the same key have one result.',
    schema: { type: 'string', minLength: 1, maxLength: 200 },
    examples: { first: { value: 'walls-1' } },
  },
}

export const HEADERS: Readonly<Record<string, Header>> = {
  'Content-Security-Policy': {
    description: 'Whatever the file holds, a browser runs nothing of it.',
    required: true,
    schema: { type: 'string', const: "sandbox; default-src 'none'" },
  },
  'X-Accel-Buffering': {
    description: 'Keeps proxies from holding events back.',
    required: true,
    schema: { type: 'string', const: 'no' },
  },
}

/** The errors that reading a JSON body adds. */
const JSON_FAULTS: readonly ServiceErrorCode[] = [
  'invalid_json',
  'invalid_utf8',
  'request_aborted',
  'unsupported_media_type',
  'request_too_large',
  'body_consumed',
]

/** The errors that writing adds. */
export const WRITE_FAULTS: readonly ServiceErrorCode[] = ['storage_full']

const RIGHT_WORDS = {
  read: 'this token does not give the right to read in this project',
  write: 'this token does not give the right to write in this project',
  run: "this path accepts only the run's own token",
} as const

export interface OperationWords {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tag: string
  /** Whose token it takes: with the right to read or to write in the project, or the run's own. */
  readonly right: keyof typeof RIGHT_WORDS
  readonly parameters?: readonly string[]
  readonly ownParameters?: readonly Parameter[]
  readonly body?: RequestBody
  readonly answers: Responses
  readonly faults: readonly ServiceErrorCode[]
  readonly messages?: Readonly<Record<number, string>>
}

/** An operation with the errors that it can answer. */
export function operationOf(words: OperationWords): Operation {
  const {
    operationId,
    summary,
    description,
    tag,
    right,
    parameters: names = [],
    ownParameters = [],
    body,
    answers,
    faults: codes,
    messages = {},
  } = words
  const isJson = body !== undefined && 'application/json' in body.content
  const said = {
    400: 'limit is 0; it must be an integer from 1 to 1000',
    403: RIGHT_WORDS[right],
    413: "the request's body is larger than the limit of 262144 bytes",
    415: 'the body\'s type is "text/html"; it must be application/json',
    ...messages,
  }
  return {
    operationId,
    summary,
    description,
    tags: [tag],
    parameters: [...pathParameters(...names, 'RequestId'), ...ownParameters],
    ...(body === undefined ? {} : { requestBody: body }),
    responses: { ...answers, ...faults([...(isJson ? JSON_FAULTS : []), ...codes], said) },
  }
}

/** The display name of a file. */
export const FILE_NAME: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  'x-maxBytes': 255,
  pattern: ONE_LINE_WITH_TEXT,
}

export const FILE_BODY: RequestBody = {
  description: 'The bytes of the file. Without them the file is empty.',
  required: false,
  content: {
    'application/octet-stream': {
      schema: { type: 'string', contentMediaType: 'application/octet-stream' },
      examples: { file: { value: ARTIFACT_TEXT } },
    },
  },
}

export function jsonBody(
  schema: string,
  description: string,
  examples: Examples,
  required: boolean = true,
): RequestBody {
  return { description, required, content: { 'application/json': { schema: schemaRef(schema), examples } } }
}

export function jsonAnswer(schema: string, description: string, examples: Examples): Response {
  const media: MediaType = { schema: schemaRef(schema), examples }
  return { description, headers: headersOf(['Cache-Control']), content: { 'application/json': media } }
}

/** A path with its operations; HEAD comes with GET, OPTIONS with all. */
export function pathOf(
  parameters: readonly string[],
  operations: { readonly [M in OperationMethod]?: Operation },
): PathItem {
  const [first] = Object.values(operations)
  const named = `${first.operationId[0].toUpperCase()}${first.operationId.slice(1)}`
  const { get } = operations
  const statuses = Object.keys(get?.responses ?? {}).filter((status) => Number(status) < 400)
  return {
    parameters: pathParameters('ProjectId', ...parameters),
    ...operations,
    ...(get === undefined ? {} : { head: headOf(get, `head${named}`, statuses) }),
    options: optionsOf(`options${named}`, first.tags[0]),
  }
}
