import type { InputField, InputsDescription, InputValue, SelectChoice } from './description.ts'
import { defaultOf } from './validate.ts'

/** The value of `$schema`: draft 2020-12. */
export const JSON_SCHEMA_DIALECT = 'https://json-schema.org/draft/2020-12/schema'

/** JSON Schema 2020-12 of inputs: one flat object, everything inline, standard keywords only. */
export interface InputsSchema {
  /** The dialect of JSON Schema. */
  readonly $schema: typeof JSON_SCHEMA_DIALECT
  /** Inputs are one JSON object. */
  readonly type: 'object'
  /** The title of the form, for people. */
  readonly title?: string
  /** Text about the form, for people. */
  readonly description?: string
  /** The schema of each input, by its name, in the order of the form. */
  readonly properties: Readonly<Record<string, InputSchema>>
  /** The names of the inputs that must be given. */
  readonly required: readonly string[]
  /** Other inputs are refused. */
  readonly additionalProperties: false
}

/** JSON Schema 2020-12 of one field. */
export interface InputSchema {
  /** The JSON type of the value. */
  readonly type: 'string' | 'number' | 'integer' | 'boolean'
  /** The label, for people. */
  readonly title?: string
  /** Text about the input, for people. */
  readonly description?: string
  /** The value if none is given. */
  readonly default?: InputValue
  /** The fewest characters. */
  readonly minLength?: number
  /** The most characters. */
  readonly maxLength?: number
  /** An ECMAScript pattern with the flag `u`, found anywhere in the text unless it is anchored. */
  readonly pattern?: string
  /** The value must be above this. */
  readonly exclusiveMinimum?: number
  /** The smallest value. */
  readonly minimum?: number
  /** The value must be below this. */
  readonly exclusiveMaximum?: number
  /** The largest value. */
  readonly maximum?: number
  /** The choices, if they have no labels. */
  readonly enum?: readonly (string | number)[]
  /** The choices with their labels. */
  readonly oneOf?: readonly { readonly const: string | number; readonly title: string }[]
  /** Marks a secret. */
  readonly format?: 'password'
  /** Marks a secret: it is never read back. */
  readonly writeOnly?: true
}

/** The keyword of each option that has another name in JSON Schema. */
export const KEYWORDS: Readonly<Record<string, string>> = {
  gt: 'exclusiveMinimum',
  gte: 'minimum',
  lt: 'exclusiveMaximum',
  lte: 'maximum',
}

/** The JSON Schema (draft 2020-12) of described inputs. `readInputsSchema` is its inverse. */
export function inputsSchema({ title, description, fields }: InputsDescription): InputsSchema {
  return {
    $schema: JSON_SCHEMA_DIALECT,
    type: 'object',
    ...present({ title, description }),
    properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(field)])),
    required: fields.filter(({ required }) => required).map(({ name }) => name),
    additionalProperties: false,
  }
}

function fieldSchema(field: InputField): InputSchema {
  const { title, description } = field
  return { ...rulesSchema(field), ...present({ title, description, default: defaultOf(field) }) }
}

function rulesSchema(field: InputField): InputSchema {
  if (field.kind === 'text') return { type: 'string', ...textSchema(field) }
  if (field.kind === 'secret') return { type: 'string', format: 'password', writeOnly: true, ...textSchema(field) }
  if (field.kind === 'select') return choicesSchema(field.options)
  if (field.kind === 'boolean') return { type: 'boolean' }
  return {
    type: field.kind,
    ...present({ exclusiveMinimum: field.gt, minimum: field.gte, exclusiveMaximum: field.lt, maximum: field.lte }),
  }
}

function textSchema({
  minLength,
  maxLength,
  pattern,
}: Pick<InputSchema, 'minLength' | 'maxLength' | 'pattern'>): Partial<InputSchema> {
  return present({ minLength, maxLength, pattern })
}

/** Both `enum` and `oneOf` together would make renderers of forms draw two controls or none. */
function choicesSchema(options: readonly SelectChoice[]): InputSchema {
  const type = typeOfChoices(options.map(({ value }) => value))
  const labelled = options.flatMap(({ value, label }) => (label === undefined ? [] : [{ const: value, title: label }]))
  return labelled.length > 0 ? { type, oneOf: labelled } : { type, enum: options.map(({ value }) => value) }
}

function typeOfChoices(values: readonly (string | number)[]): 'string' | 'number' | 'integer' {
  if (values.some((value) => typeof value === 'string')) return 'string'
  return values.every((value) => Number.isInteger(value)) ? 'integer' : 'number'
}

/** An object without the members that are `undefined`. */
export function present<T extends object>(members: T): { readonly [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    readonly [K in keyof T]?: Exclude<T[K], undefined>
  }
}
