import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import type { Schema } from './types.ts'

/**
 * The shape of a JSON value on the wire, described once: `read` checks a value that a client sent, and `schema`
 * describes it in the OpenAPI document. The TypeScript types are generated from the same shapes (`npm run schemas`).
 */
export interface Shape<T> {
  /** JSON Schema, draft 2020-12. */
  readonly schema: Schema
  /** `at` is the position of the value; it is empty for the whole body. Throws `invalid_request`. */
  readonly read: (value: unknown, at: string) => T
}

/** A shape that the OpenAPI document describes among its components, and that has a type of the same name. */
export interface NamedShape<T> extends Shape<T> {
  readonly name: string
  readonly definition: Schema
}

/** A member that may be absent. */
export interface OptionalShape<T> extends Shape<T | undefined> {
  readonly isOptional: true
}

type Members = Readonly<Record<string, Shape<unknown>>>
type OptionalNames<M extends Members> = { [K in keyof M]: M[K] extends OptionalShape<unknown> ? K : never }[keyof M]

/** The value of a shape. */
export type ValueOf<S> = S extends OptionalShape<infer T> ? T : S extends Shape<infer T> ? T : never

/** The object that has these members. */
export type ValuesOf<M extends Members> = {
  readonly [K in Exclude<keyof M, OptionalNames<M>>]: ValueOf<M[K]>
} & {
  readonly [K in OptionalNames<M>]?: ValueOf<M[K]>
}

/** An object with these members and no others. */
export function object<M extends Members>(members: M, description?: string): Shape<ValuesOf<M>> {
  const names = Object.keys(members)
  return {
    schema: {
      type: 'object',
      required: names.filter((name) => !isOptional(members[name])),
      additionalProperties: false,
      properties: Object.fromEntries(names.map((name) => [name, members[name].schema])),
      ...(description === undefined ? {} : { description }),
    },
    read: (value, at) => {
      if (!isObject(value)) throw wrong(at, 'an object', found(value))
      for (const name of Object.keys(value)) if (!Object.hasOwn(members, name)) throw unknownMember(at, name, names)
      const read: Record<string, unknown> = {}
      for (const name of names) {
        const member = members[name].read(
          Object.hasOwn(value, name) ? value[name] : undefined,
          at === '' ? name : `${at}.${name}`,
        )
        if (member !== undefined) read[name] = member
      }
      return read as ValuesOf<M>
    },
  }
}

/** An object with exactly one of these members. */
export function exactlyOne<M extends Members>(
  members: M,
  description: string,
): Shape<{ [K in keyof M]: { readonly [P in K]: ValueOf<M[P]> } }[keyof M]> {
  const names = Object.keys(members)
  const choices = names.map((name) => object({ [name]: members[name] }))
  return {
    schema: { oneOf: choices.map(({ schema }) => schema), description },
    read: (value, at) => {
      const given = isObject(value) ? Object.keys(value) : []
      const choice = given.length === 1 ? choices[names.indexOf(given[0])] : undefined
      if (choice === undefined)
        throw wrong(at, `an object with exactly one of ${names.join(', ')}`, givenMembers(value, given))
      return choice.read(value, at) as { [K in keyof M]: { readonly [P in K]: ValueOf<M[P]> } }[keyof M]
    },
  }
}

/** Describes the shape among the components of the document, under this name. */
export function named<T>(name: string, { schema, read }: Shape<T>): NamedShape<T> {
  return { name, definition: schema, schema: { $ref: `#/components/schemas/${name}` }, read }
}

/** The same shape with other words about it. */
export function described<T>({ schema, read }: Shape<T>, description: string): Shape<T> {
  return { schema: { ...schema, description }, read }
}

export function optional<T>({ schema, read }: Shape<T>): OptionalShape<T> {
  return { isOptional: true, schema, read: (value, at) => (value === undefined ? undefined : read(value, at)) }
}

export function nullable<T>({ schema, read }: Shape<T>, description: string): Shape<T | null> {
  return {
    schema: { oneOf: [schema, { type: 'null' }], description },
    read: (value, at) => (value === null ? null : read(value, at)),
  }
}

export function list<T>(
  item: Shape<T>,
  options: { readonly itemsMin?: number; readonly itemsMax?: number; readonly description?: string } = {},
): Shape<readonly T[]> {
  const { itemsMin = 0, itemsMax = Number.MAX_SAFE_INTEGER, description } = options
  return {
    schema: {
      type: 'array',
      ...(itemsMin === 0 ? {} : { minItems: itemsMin }),
      ...(options.itemsMax === undefined ? {} : { maxItems: itemsMax }),
      items: item.schema,
      ...(description === undefined ? {} : { description }),
    },
    read: (value, at) => {
      if (!Array.isArray(value) || value.length < itemsMin || value.length > itemsMax)
        throw wrong(at, `a list of ${itemsMin === 0 ? '' : `${itemsMin} to `}${itemsMax} items at most`, found(value))
      return value.map((one, index) => item.read(one, `${at}[${index}]`))
    },
  }
}

/** An object with any number of members. `name.read` checks the names, and its errors pass unchanged. */
export function record<T>(
  name: Shape<string>,
  member: Shape<T>,
  description: string,
): Shape<{ readonly [name: string]: T }> {
  return {
    schema: { type: 'object', propertyNames: name.schema, additionalProperties: member.schema, description },
    read: (value, at) => {
      if (!isObject(value)) throw wrong(at, 'an object', found(value))
      return Object.fromEntries(
        Object.entries(value).map(([key, one]) => [
          name.read(key, `a name in ${at}`),
          member.read(one, `${at}[${quoted(key)}]`),
        ]),
      )
    },
  }
}

/**
 * `check` throws `invalid_request` or `invalid_id` for texts that the keywords of `schema` refuse; its message names
 * the rule.
 */
export function text(
  schema: Omit<Schema, 'type'> = {},
  check: (text: string, at: string) => void = () => undefined,
): Shape<string> {
  return {
    schema: { type: 'string', ...schema },
    read: (value, at) => {
      if (typeof value !== 'string') throw wrong(at, 'a string', found(value))
      check(value, at)
      return value
    },
  }
}

export function boolean(description: string): Shape<boolean> {
  return {
    schema: { type: 'boolean', description },
    read: (value, at) => {
      if (typeof value !== 'boolean') throw wrong(at, 'true or false', found(value))
      return value
    },
  }
}

export function number(minimum: number, maximum: number, description: string): Shape<number> {
  return {
    schema: { type: 'number', minimum, maximum, description },
    read: (value, at) => {
      if (typeof value !== 'number' || !(value >= minimum && value <= maximum))
        throw wrong(at, `a number from ${minimum} to ${maximum}`, found(value))
      return value
    },
  }
}

export function integer(minimum: number, maximum: number, description?: string): Shape<number> {
  return {
    schema: { type: 'integer', minimum, maximum, ...(description === undefined ? {} : { description }) },
    read: (value, at) => {
      if (!Number.isSafeInteger(value) || (value as number) < minimum || (value as number) > maximum)
        throw wrong(at, `an integer from ${minimum} to ${maximum}`, found(value))
      return value as number
    },
  }
}

export function oneOf<const T extends string>(choices: readonly T[], description?: string): Shape<T> {
  const words = choices.map((choice) => `"${choice}"`).join(', ')
  return {
    schema: { type: 'string', enum: choices, ...(description === undefined ? {} : { description }) },
    read: (value, at) => {
      if (!choices.includes(value as T))
        throw wrong(at, `one of ${words}`, typeof value === 'string' ? quoted(value) : found(value))
      return value as T
    },
  }
}

/** A shape that is only ever sent, such as a part of JSON Schema: `read` takes it as it is. */
export function sent<T>(schema: Schema): Shape<T> {
  return { schema, read: (value) => value as T }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value at `at` is wrong. */
export function wrong(at: string, right: string, is: string): StowageError {
  return new StowageError('invalid_request', `${at === '' ? 'the body' : at} must be ${right}; it is ${is}`)
}

/** Texts are not shown: they may be long, or secrets in a wrong place. */
export function found(value: unknown): string {
  if (value === undefined) return 'missing'
  if (typeof value === 'string') return 'a string'
  if (Array.isArray(value)) return `a list of ${value.length}`
  return typeof value === 'number' || typeof value === 'boolean' || value === null ? String(value) : 'an object'
}

function unknownMember(at: string, name: string, known: readonly string[]): StowageError {
  return new StowageError(
    'invalid_request',
    `${at === '' ? 'the body' : at} has the unknown member ${quoted(name)}; known members are ${known.join(', ')}`,
  )
}

function givenMembers(value: unknown, names: readonly string[]): string {
  return names.length === 0 ? found(value) : `an object with ${names.map((name) => quoted(name)).join(', ')}`
}

function isOptional(shape: Shape<unknown>): boolean {
  return 'isOptional' in shape
}
