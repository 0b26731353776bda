import type { FieldOptions, Input } from './builder.ts'
import { fieldFault, formFault } from './check.ts'
import type { InputField, InputsDescription, InputValues } from './description.ts'
import { quote } from './errors.ts'
import { inputsSchema, type InputsSchema, present } from './schema.ts'
import { Secret } from './secret.ts'
import { inputsParser } from './validate.ts'

/** Declared fields by their names. */
export type InputFields = Readonly<Record<string, Input<unknown, unknown>>>

type Types<I> = I extends Input<infer Value, infer Given> ? { readonly value: Value; readonly given: Given } : never
type OptionalNames<F extends InputFields> = {
  [K in keyof F]: undefined extends Types<F[K]>['given'] ? K : never
}[keyof F]

/** The values that the function receives. */
export type ValuesOf<F extends InputFields> = { readonly [K in keyof F]: Types<F[K]>['value'] }

/** The JSON that `parse` takes: optional members and members with a default may be omitted. */
export type GivenValuesOf<F extends InputFields> = {
  readonly [K in Exclude<keyof F, OptionalNames<F>>]: Types<F[K]>['given']
} & {
  readonly [K in OptionalNames<F>]?: Types<F[K]>['given']
}

/**
 * A class of inputs, as `defineInputs` makes it: one name for the type of the values and for their parser and
 * description.
 */
export interface InputsClass<Values extends object = object, Given = never> {
  /** Checks the values as `parse` does. Throws `InputsError`. */
  new (given: Given): Values
  /** The description of the inputs. */
  readonly description: InputsDescription
  /**
   * Parsed JSON as an instance, with defaults filled in and secrets wrapped. Throws `InputsError` with one issue for
   * each field, which never holds a value.
   */
  parse<Class extends abstract new (given: never) => object>(this: Class, json: unknown): InstanceType<Class>
  /** JSON Schema 2020-12. */
  toJSONSchema(): InputsSchema
}

/** The texts that people see of the inputs as a whole. */
export interface InputsOptions {
  /** The title of the form, for people. */
  readonly title?: string
  /** Text about the form, for people. */
  readonly description?: string
}

/**
 * Declares the inputs of a function:
 *
 * ```ts
 * export class Inputs extends defineInputs({ tolerance: number({ default: 10, gt: 0, lt: 100 }), apiKey: secret() }) {}
 * ```
 *
 * Throws `TypeError` for what no form could show or nothing could satisfy: a default that breaks the field's own rules, a range or list that is empty, a
 * pattern that cannot be run in linear time, an option that the kind does not have.
 */
export function defineInputs<F extends InputFields>(
  fields: F,
  options: InputsOptions = {},
): InputsClass<ValuesOf<F>, GivenValuesOf<F>> {
  const { title, description: text } = options
  const description: InputsDescription = {
    ...present({ title, description: text }),
    fields: Object.entries(fields).map(([name, input]) =>
      nameField(name, (input as Partial<Input<unknown, unknown>> | undefined)?.field),
    ),
  }
  const fault = formFault(description)
  if (fault !== undefined) throw new TypeError(`the inputs: ${fault.option} ${fault.message}`)
  const parse = inputsParser(description)
  const Defined = class {
    static readonly description = description

    constructor(given: unknown) {
      Object.assign(this, withSecrets(description, parse(given)))
    }

    static parse(this: new (json: unknown) => object, json: unknown): object {
      return new this(json)
    }

    static toJSONSchema(): InputsSchema {
      return inputsSchema(description)
    }
  }
  return Defined as unknown as InputsClass<ValuesOf<F>, GivenValuesOf<F>>
}

/** Optional values are members too, so that instances of one class have one shape. */
function withSecrets({ fields }: InputsDescription, values: InputValues): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    fields.map(({ name, kind }) => {
      const value = Object.hasOwn(values, name) ? values[name] : undefined
      return [name, kind === 'secret' && value !== undefined ? new Secret(String(value)) : value]
    }),
  )
}

const COMMON_OPTIONS: readonly string[] = ['kind', 'title', 'description', 'required', 'default']

const OPTIONS: Readonly<Record<InputField['kind'], readonly string[]>> = {
  text: ['minLength', 'maxLength', 'pattern'],
  number: ['gt', 'gte', 'lt', 'lte'],
  integer: ['gt', 'gte', 'lt', 'lte'],
  boolean: [],
  select: ['options'],
  secret: ['minLength', 'maxLength', 'pattern'],
}

function nameField(name: string, options: FieldOptions | undefined): InputField {
  const where = `input ${quote(name)}`
  if (options === undefined || !Object.hasOwn(OPTIONS, options.kind))
    throw new TypeError(
      `${where} must be made by text, number, integer, boolean, select or secret; a schema of another library replaces the whole class`,
    )
  const known = [...COMMON_OPTIONS, ...OPTIONS[options.kind]]
  const unknown = Object.keys(options).find((option) => !known.includes(option))
  if (unknown !== undefined)
    throw new TypeError(
      `${where}: ${options.kind} has no option ${quote(unknown)}; it has ${known.slice(1).join(', ')}`,
    )
  if (options.kind === 'secret' && options.default !== undefined)
    throw new TypeError(`${where}: a secret cannot have a default: everybody could read it in the schema`)
  if (options.required !== undefined && typeof options.required !== 'boolean')
    throw new TypeError(`${where}: required must be true or false`)
  const { pattern, required = options.default === undefined } = options
  const field = present({ ...options, name, required, pattern: patternSource(where, pattern) }) as unknown as InputField
  const fault = fieldFault(field)
  if (fault !== undefined)
    throw new TypeError(`${where}: ${[fault.option, fault.message].filter((part) => part !== '').join(' ')}`)
  return field
}

/** Patterns of JSON Schema have no flags. They imply `u`; any other flag would be lost. */
function patternSource(where: string, pattern: unknown): unknown {
  if (!(pattern instanceof RegExp)) return pattern
  const foreign = pattern.flags.replace('u', '')
  if (foreign !== '')
    throw new TypeError(
      `${where}: pattern has the flag ${foreign}, which a schema cannot express; write the pattern without it, such as [Aa] for i`,
    )
  return pattern.source
}
