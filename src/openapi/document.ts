import { type ApiArea, composeDocument } from './description/compose.ts'
import { DESCRIPTION_AREA } from './description/description-area.ts'
import { OBJECT_AREA } from './objects/area.ts'
import { SHARED_COMPONENTS } from './description/shared.ts'
import type { OpenApiDocument } from './description/types.ts'

/** The version of the interface, not of the package. */
const INTERFACE_VERSION = '1.0.0'

const SHARED_AREA: ApiArea = { tags: [], paths: {}, components: SHARED_COMPONENTS }

export interface DocumentOptions {
  /** The base of the paths: `/`, a path such as `/models`, or relative to the document. */
  readonly server: string
  /** Areas beyond the objects. */
  readonly areas?: readonly ApiArea[]
}

/** The OpenAPI 3.1 document of the HTTP interface of a service. */
export function openApiDocument({ server, areas = [] }: DocumentOptions): OpenApiDocument {
  return composeDocument(
    {
      openapi: '3.1.1',
      info: {
        title: 'Stowage',
        version: INTERFACE_VERSION,
        summary: 'Object graphs over HTTP.',
        description: [
          'An object is a JSON value with an id. Objects refer to others, so a model is a directed acyclic graph. Clients upload batches, ask which ids are held, and download one object, a list, or an object with everything below it.',
          'Every error is `{"message", "statusCode", "code"}`, on every route: a path that is not described here answers 404 `route_not_found`, a method that a path does not have 405 `method_not_allowed`. 503 comes with `Retry-After`. A server may answer 400, 408, 417 and 431 before it knows the request: for invalid HTTP, headers that arrive too late, unknown expectations, and headers that are too large.',
          'A list contains the items that exist, also in an unknown project; a single item that does not exist is 404.',
          'Bodies may be compressed with gzip, and responses are if `Accept-Encoding` allows it. 1 MB is 1,048,576 bytes.',
        ].join('\n\n'),
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: server, description: 'The server of this document.' }],
      security: [{ bearer: [] }],
    },
    [SHARED_AREA, OBJECT_AREA, ...areas, DESCRIPTION_AREA],
  )
}
