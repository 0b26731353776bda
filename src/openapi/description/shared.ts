import { ERROR_STATUS, type ErrorBody, type ServiceErrorCode } from '../../errors.ts'
import { integer, list, named, type NamedShape, object, oneOf, optional, text } from './shape.ts'
import type { Components, Header, Headers, Operation, Parameter, Reference, Response, Responses } from './types.ts'

/**
 * Parts that every area of the interface has in common: headers of every response, the one shape of errors, the
 * preflight.
 */

const REQUEST_ID = '^[\\w.:+/=-]{1,128}$'
const CODES = Object.keys(ERROR_STATUS) as ServiceErrorCode[]

const ISSUE = object({ path: text(), message: text() })

const ERROR: NamedShape<ErrorBody> = named(
  'Error',
  object(
    {
      message: text({
        minLength: 1,
        description: 'The broken rule, the place, and the remedy. For people; it may change.',
      }),
      statusCode: integer(400, 599, 'The status of the answer.'),
      code: oneOf(CODES, 'For programs; it does not change.'),
      ids: optional(
        list(text(), {
          itemsMax: 100,
          description: 'With `objects_missing`: the first hundred ids that are not held.',
        }),
      ),
      issues: optional(list(ISSUE, { description: 'With `invalid_inputs`: each input that is wrong, and why.' })),
    },
    'The body of every error answer, on every route.',
  ),
)

export const SHARED_HEADERS: Readonly<Record<string, Header>> = {
  'X-Request-Id': {
    description:
      'Names this request in logs: the same header of the request if that has 1 to 128 harmless characters, otherwise a new id.',
    required: true,
    schema: { type: 'string', pattern: REQUEST_ID },
  },
  'X-Content-Type-Options': {
    description: 'Keeps browsers from guessing another content type.',
    required: true,
    schema: { type: 'string', const: 'nosniff' },
  },
  'Access-Control-Allow-Origin': {
    description: 'The origin that may read the response, or `*`; only if the server allows other origins.',
    schema: { type: 'string' },
  },
  'Access-Control-Expose-Headers': {
    description: 'The headers that a page of another origin may read.',
    schema: { type: 'string' },
  },
  'Access-Control-Allow-Credentials': {
    description: 'Whether a page of another origin may send cookies and client certificates.',
    schema: { type: 'string', const: 'true' },
  },
  'Access-Control-Allow-Methods': {
    description: 'In the answer to a preflight request: the methods of the path.',
    schema: { type: 'string' },
  },
  'Access-Control-Allow-Headers': {
    description: 'In the response to a preflight request: the requested headers. Any header may be sent.',
    schema: { type: 'string' },
  },
  'Access-Control-Max-Age': {
    description: 'Seconds for which a browser may keep the answer to a preflight request.',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  Allow: {
    description: 'The methods of the path (RFC 9110 section 10.2.1).',
    required: true,
    schema: { type: 'string', pattern: '^([A-Z]+, )*OPTIONS$' },
  },
  Vary: { description: 'What of the request the answer depends on.', schema: { type: 'string' } },
  'Cache-Control': {
    description: 'Who may keep the answer, and how long.',
    required: true,
    schema: { type: 'string' },
  },
  ETag: {
    description: 'Names this version, byte for byte (RFC 9110 section 8.8.3).',
    schema: { type: 'string', pattern: '^"[^"]+"$' },
  },
  'WWW-Authenticate': {
    description: 'A challenge (RFC 9110 section 11.6.1): `Bearer` (RFC 6750 section 3), or that of the host.',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z]+ realm="' },
  },
  'Retry-After': {
    description: 'Whole seconds after which to try again.',
    required: true,
    schema: { type: 'string', pattern: '^\\d+$' },
  },
}

export const REQUEST_ID_PARAMETER: Reference = { $ref: '#/components/parameters/RequestId' }

const PARAMETERS: Readonly<Record<string, Parameter>> = {
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    description:
      'Names the request in logs and in the answer. Any other value than 1 to 128 letters, digits and `_.:+/=-` is replaced, not refused.',
    schema: { type: 'string' },
    examples: { named: { value: 'upload-17' } },
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description: 'Entity tags of which the answer must have one, else 412 (RFC 9110 section 13.1.1).',
    schema: { type: 'string' },
    examples: { any: { value: '*' } },
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'Entity tags that the client has; one of them answers 304 (RFC 9110 section 13.1.2).',
    schema: { type: 'string' },
    examples: { other: { value: '"0123456789abcdef-text-gzip"' } },
  },
}

export function headerRef(name: string): Reference {
  return { $ref: `#/components/headers/${name}` }
}

export function schemaRef(name: string): Reference {
  return { $ref: `#/components/schemas/${name}` }
}

/** Headers that every response has, and may have for other origins. */
const COMMON: Headers = Object.fromEntries(
  [
    'X-Request-Id',
    'X-Content-Type-Options',
    'Vary',
    'Access-Control-Allow-Origin',
    'Access-Control-Expose-Headers',
    'Access-Control-Allow-Credentials',
  ].map((name) => [name, headerRef(name)]),
)

/** The headers of an answer: the common ones, those of the components by name, and its own. */
export function headersOf(names: readonly string[], own: Headers = {}): Headers {
  return { ...COMMON, ...Object.fromEntries(names.map((name) => [name, headerRef(name)])), ...own }
}

/** One possible error of a status. */
interface ErrorCase {
  readonly codes: readonly ServiceErrorCode[]
  /** A message of the server. */
  readonly message: string
  readonly ids?: readonly string[]
}

const HEADERS_OF_STATUS: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/**
 * The error answers of an operation, one for each status. Throws `TypeError` for codes of several statuses in one case.
 */
export function errorResponses(cases: readonly ErrorCase[], own: Readonly<Record<number, Headers>> = {}): Responses {
  return Object.fromEntries(
    cases.map((one) => {
      const status = statusOf(one.codes)
      return [String(status), errorResponse(one, own[status])]
    }),
  )
}

export function errorResponse(one: ErrorCase, own: Headers = {}): Response {
  const { codes, message, ids } = one
  const statusCode = statusOf(codes)
  const value = { message, statusCode, code: codes[0], ...(ids === undefined ? {} : { ids }) }
  return {
    description: codes.map((code) => `\`${code}\``).join(', '),
    headers: headersOf(['Cache-Control', ...(HEADERS_OF_STATUS[statusCode] ?? [])], own),
    content: {
      'application/json': {
        schema: {
          allOf: [
            schemaRef('Error'),
            {
              type: 'object',
              properties: { statusCode: { type: 'integer', const: statusCode }, code: { type: 'string', enum: codes } },
            },
          ],
        },
        examples: { [codes[0]]: { value } },
      },
    },
  }
}

function statusOf(codes: readonly ServiceErrorCode[]): number {
  const [status, ...others] = new Set(codes.map((code) => ERROR_STATUS[code]))
  if (others.length > 0) throw new TypeError(`the codes ${codes.join(', ')} have different statuses`)
  return status
}

/** The same responses without their bodies, as for HEAD (RFC 9110 section 9.3.2). */
export function headOf(operation: Operation, operationId: string, statuses: readonly string[]): Operation {
  const responses = Object.entries(operation.responses)
    .filter(([status]) => statuses.includes(status) || Number(status) >= 400)
    .map(([status, response]) => [status, bodiless(response as Response)])
  return {
    ...operation,
    operationId,
    summary: `${operation.summary} (headers only)`,
    description: 'The headers of the GET, without its body.',
    responses: Object.fromEntries(responses) as Responses,
  }
}

function bodiless({ description, headers }: Response): Response {
  return { description, ...(headers === undefined ? {} : { headers }) }
}

/** OPTIONS, for browsers that ask before they send (https://fetch.spec.whatwg.org, section 3.3). It needs no token. */
export function optionsOf(operationId: string, tag: string): Operation {
  return {
    operationId,
    summary: 'Methods of this path, and the answer to a preflight request',
    description:
      'Lists the methods of the path. If the server allows other origins, it answers their preflight requests. Needs no token.',
    tags: [tag],
    security: [],
    parameters: [
      REQUEST_ID_PARAMETER,
      {
        name: 'Origin',
        in: 'header',
        description: 'The origin that asks.',
        schema: { type: 'string' },
        examples: { viewer: { value: 'https://viewer.example' } },
      },
      {
        name: 'Access-Control-Request-Method',
        in: 'header',
        description: 'The method that it wants to use.',
        schema: { type: 'string' },
        examples: { get: { value: 'GET' } },
      },
      {
        name: 'Access-Control-Request-Headers',
        in: 'header',
        description: 'The headers that it wants to send.',
        schema: { type: 'string' },
        examples: { authorization: { value: 'authorization' } },
      },
    ],
    responses: {
      204: {
        description: 'The methods of the path.',
        headers: headersOf([
          'Allow',
          'Access-Control-Allow-Methods',
          'Access-Control-Allow-Headers',
          'Access-Control-Max-Age',
        ]),
      },
    },
  }
}

/** Answers that belong to no operation. */
const RESPONSES: Readonly<Record<string, Response>> = {
  RouteNotFound: errorResponse({ codes: ['route_not_found'], message: 'there is nothing at this path' }),
  MethodNotAllowed: errorResponse({ codes: ['method_not_allowed'], message: 'this path allows GET, HEAD, OPTIONS' }),
}

export const SHARED_COMPONENTS: Components = {
  schemas: { Error: ERROR.definition },
  parameters: PARAMETERS,
  headers: SHARED_HEADERS,
  responses: RESPONSES,
  securitySchemes: {
    bearer: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'A token in the header `Authorization: Bearer <token>`. `write` on a project includes `read`.',
    },
  },
}
