import { gunzipSync } from 'node:zlib'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type {
  Header,
  MediaType,
  OpenApiDocument,
  Operation,
  OperationMethod,
  Response,
  Schema,
} from '../../src/openapi/description/types.ts'
import type { Answered } from '../mounts/ask.ts'

/** A request as far as the document knows it. */
export interface Asked {
  readonly method: string
  /** Below the prefix, with its query. */
  readonly path: string
}

export interface Found {
  readonly template: string
  readonly method: OperationMethod
  readonly operation: Operation
}

/** Of every answer, and of the protocol rather than of the interface. */
const OF_HTTP: ReadonlySet<string> = new Set(['content-type', 'content-length'])
const METHODS: readonly OperationMethod[] = ['get', 'head', 'options', 'post', 'put', 'patch', 'delete']
/** JSON Schema counts characters. Ids are bounded in bytes of UTF-8. */
const BYTES_MAX = 'x-maxBytes'
const ID = 'https://document.example/openapi.json'

/** The document as a judge of answers. */
export class Conformance {
  readonly document: OpenApiDocument
  readonly #ajv: Ajv2020
  readonly #compiled = new Map<string, ValidateFunction>()

  constructor(document: OpenApiDocument) {
    this.document = document
    this.#ajv = new Ajv2020({ strict: false, allErrors: true })
    this.#ajv.addKeyword({
      keyword: BYTES_MAX,
      type: 'string',
      validate: (bytesMax: number, text: string) => Buffer.byteLength(text) <= bytesMax,
    })
    this.#ajv.removeKeyword('contentSchema')
    this.#ajv.addKeyword({
      keyword: 'contentSchema',
      type: 'string',
      validate: (schema: Schema, text: string) => this.#holds(schema, text),
    })
    this.#ajv.addSchema({ ...(JSON.parse(JSON.stringify(document)) as object), $id: ID })
  }

  operations(): Found[] {
    return Object.entries(this.document.paths).flatMap(([template, item]) =>
      METHODS.flatMap((method) => (item[method] === undefined ? [] : [{ template, method, operation: item[method] }])),
    )
  }

  operation(operationId: string): Found {
    const found = this.operations().find(({ operation }) => operation.operationId === operationId)
    if (found === undefined) throw new Error(`the document has no operation ${operationId}`)
    return found
  }

  /** What a thing of the document stands for, behind its `$ref`. */
  resolve<T extends object>(thing: T | { readonly $ref: string }): T {
    if (!isReference(thing)) return thing
    return pointed(this.document, thing.$ref.slice(2).split('/')) as T
  }

  /** What of an answer is not as the document says, one sentence each. */
  problems(asked: Asked, answered: Answered): string[] {
    const found = this.#find(asked)
    if (typeof found === 'string')
      return this.#responseProblems(['components', 'responses', found], answered, asked.method === 'HEAD')
    const { operation } = found
    if (!(String(answered.status) in operation.responses))
      return [`${operation.operationId} answers ${answered.status}, which is not documented`]
    return this.#responseProblems(this.responsePointer(found, answered.status), answered)
  }

  /** Where the response of an operation stands, behind its `$ref`. */
  responsePointer({ template, method, operation }: Found, status: number | string): readonly string[] {
    const response = operation.responses[String(status)]
    if (isReference(response)) return response.$ref.slice(2).split('/')
    return ['paths', template, method, 'responses', String(status)]
  }

  /** What the document has as the response of an operation. */
  response({ operation }: Found, status: number | string): Response {
    return this.resolve(operation.responses[String(status)])
  }

  /** What is wrong with a value by a schema of the document. */
  valueProblems(pointer: readonly string[], value: unknown): string[] {
    // Most errors are described alike, and to compile a schema takes longer than all else here.
    const text = JSON.stringify(pointed(this.document, pointer))
    let validate = this.#compiled.get(text)
    if (validate === undefined) {
      const place = pointer
        .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
        .join('/')
      validate = this.#ajv.compile({ $ref: `${ID}#/${place}` })
      this.#compiled.set(text, validate)
    }
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message }) => `${pointer.join('/')}: ${instancePath} ${message}`,
    )
  }

  /** Whether a schema of the document allows a value. */
  allows(schema: Schema, value: unknown): boolean {
    const text = JSON.stringify(schema)
    let validate = this.#compiled.get(text)
    if (validate === undefined) {
      validate = this.#ajv.compile(JSON.parse(text.replaceAll('"#/components/', `"${ID}#/components/`)) as object)
      this.#compiled.set(text, validate)
    }
    return validate(value)
  }

  /** Whether a text is JSON that a schema allows. */
  #holds(schema: Schema, text: string): boolean {
    try {
      return this.allows(schema, JSON.parse(text))
    } catch {
      return false
    }
  }

  #find({ method, path }: Asked): Found | 'RouteNotFound' | 'MethodNotAllowed' {
    const [raw] = path.split('?', 1)
    const segments = raw.split('/')
    if (segments.at(-1) === '' && segments.at(-2) === 'object-stream') segments.pop()
    const templates = Object.keys(this.document.paths).filter((template) => {
      const shape = template.split('/')
      return (
        shape.length === segments.length &&
        shape.every((part, at) => (part.startsWith('{') ? segments[at] !== '' : part === segments[at]))
      )
    })
    if (templates.length === 0) return 'RouteNotFound'
    const [template] = templates.sort((a, b) => a.split('{').length - b.split('{').length)
    const lower = method.toLowerCase() as OperationMethod
    const operation = METHODS.includes(lower) ? this.document.paths[template][lower] : undefined
    return operation === undefined ? 'MethodNotAllowed' : { template, method: lower, operation }
  }

  #responseProblems(pointer: readonly string[], answered: Answered, bodiless: boolean = false): string[] {
    const { content, ...described } = this.resolve(pointed(this.document, pointer) as Response)
    const response: Response = bodiless || content === undefined ? described : { ...described, content }
    return [...this.#headerProblems(pointer, response, answered), ...this.#bodyProblems(pointer, response, answered)]
  }

  #headerProblems(pointer: readonly string[], response: Response, { headers, status }: Answered): string[] {
    const documented = new Map(
      Object.entries(response.headers ?? {}).map(([name, header]) => [
        name.toLowerCase(),
        { name, header: this.resolve<Header>(header) },
      ]),
    )
    const problems: string[] = []
    for (const [name, { header }] of documented)
      if (header.required === true && !(name in headers)) problems.push(`${status} lacks the header ${name}`)
    for (const [name, value] of Object.entries(headers)) {
      const known = documented.get(name)
      if (known === undefined && !OF_HTTP.has(name))
        problems.push(`${status} has the header ${name}, which is not documented`)
      if (known === undefined) continue
      const place = response.headers?.[known.name] ?? {}
      const at =
        '$ref' in place
          ? (place as { readonly $ref: string }).$ref.slice(2).split('/')
          : [...pointer, 'headers', known.name]
      problems.push(...this.valueProblems([...at, 'schema'], value))
    }
    return problems
  }

  #bodyProblems(pointer: readonly string[], response: Response, { status, headers, body }: Answered): string[] {
    if (response.content === undefined) return body === '' ? [] : [`${status} has a body, which is not documented`]
    const type = (headers['content-type'] ?? '').split(';')[0]
    const media: MediaType | undefined = response.content[type]
    if (media === undefined) return [`${status} has the content type "${type}", which is not documented`]
    if (media.schema === undefined) return []
    const place = [...pointer, 'content', type, 'schema']
    if (status === 206 || type === 'application/gzip') return []
    const text = bodyText(headers, body)
    if (type !== 'application/json') return this.valueProblems(place, text)
    try {
      return this.valueProblems(place, JSON.parse(text))
    } catch (error) {
      return [`${status} has a body that is not JSON: ${String(error)}`]
    }
  }
}

/** The text of a body, decompressed where it says so. */
export function bodyText(headers: Answered['headers'], body: string): string {
  const bytes = Buffer.from(body, 'latin1')
  return (headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString('utf8')
}

export function isReference(thing: object): thing is { readonly $ref: string } {
  return '$ref' in thing
}

function pointed(document: object, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (value as Readonly<Record<string, unknown>>)[key], document)
}
