/** The parts of an OpenAPI 3.1 document (https://spec.openapis.org/oas/v3.1.1.html) that Stowage's description uses. */

/** JSON Schema, draft 2020-12. */
export interface Schema {
  readonly $ref?: string
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'
  readonly description?: string
  readonly format?: string
  readonly const?: string | number | boolean
  readonly enum?: readonly (string | number)[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  /** The most bytes of UTF-8: JSON Schema counts characters and has no keyword for bytes. */
  readonly 'x-maxBytes'?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly propertyNames?: Schema
  readonly prefixItems?: readonly Schema[]
  readonly items?: Schema
  readonly minProperties?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly contentMediaType?: string
  readonly contentSchema?: Schema
}

export interface Reference {
  readonly $ref: string
}

export interface Example {
  readonly summary?: string
  readonly description?: string
  readonly value: unknown
}

export type Examples = Readonly<Record<string, Example>>

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly description: string
  readonly required?: boolean
  readonly allowEmptyValue?: boolean
  readonly style?: 'form' | 'simple'
  readonly explode?: boolean
  readonly schema: Schema
  readonly examples?: Examples
}

export interface Header {
  readonly description: string
  readonly required?: boolean
  readonly schema: Schema
}

export type Headers = Readonly<Record<string, Header | Reference>>

export interface Encoding {
  readonly contentType?: string
  readonly headers?: Headers
}

export interface MediaType {
  readonly schema?: Schema
  readonly examples?: Examples
  readonly encoding?: Readonly<Record<string, Encoding>>
  /** The data of each server-sent event, by its name: OpenAPI 3.1 has no keyword for it. */
  readonly 'x-events'?: Readonly<Record<string, Schema>>
  /** The members of the lines of an answer in lines of JSON, of which each line has one. */
  readonly 'x-lines'?: Readonly<Record<string, Schema>>
}

export type Content = Readonly<Record<string, MediaType>>

export interface RequestBody {
  readonly description: string
  readonly required: boolean
  readonly content: Content
}

export interface Response {
  readonly description: string
  readonly headers?: Headers
  readonly content?: Content
}

export type Responses = Readonly<Record<string, Response | Reference>>

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly (Parameter | Reference)[]
  readonly requestBody?: RequestBody
  readonly responses: Responses
}

export type OperationMethod = 'get' | 'head' | 'options' | 'post' | 'put' | 'patch' | 'delete'

export type PathItem = { readonly [M in OperationMethod]?: Operation } & {
  readonly parameters?: readonly (Parameter | Reference)[]
}

export type Paths = Readonly<Record<string, PathItem>>

export interface Components {
  readonly schemas?: Readonly<Record<string, Schema>>
  readonly parameters?: Readonly<Record<string, Parameter>>
  readonly headers?: Readonly<Record<string, Header>>
  readonly responses?: Readonly<Record<string, Response>>
  readonly securitySchemes?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

export interface Tag {
  readonly name: string
  readonly description: string
}

export interface OpenApiDocument {
  readonly openapi: '3.1.1'
  readonly info: {
    readonly title: string
    readonly version: string
    readonly summary: string
    readonly description: string
    readonly license: { readonly name: string; readonly identifier: string }
  }
  readonly servers: readonly { readonly url: string; readonly description: string }[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly tags: readonly Tag[]
  readonly paths: Paths
  readonly components: Components
}
