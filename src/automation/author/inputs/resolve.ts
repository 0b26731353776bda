import type { InputsClass } from './define.ts'
import type { InputsDescription } from './description.ts'
import { INPUTS_LIMITS } from './description.ts'
import { InputsError, type InputsIssue } from './errors.ts'
import { readInputsSchema } from './read-schema.ts'
import { inputsSchema, type InputsSchema } from './schema.ts'
import { inputsParser, isJSONObject, secretTexts } from './validate.ts'

/**
 * A schema of another library: a Standard Schema (standardschema.dev) that also offers a JSON Schema, as those of zod 4
 * and arktype do and those of valibot after `toStandardJsonSchema` of `@valibot/to-json-schema`.
 */
export interface StandardInputs<Values extends object = object> {
  /** The members that Standard Schema and Standard JSON Schema define. */
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly types?: { readonly input: unknown; readonly output: Values } | undefined
    /** Checks the given value (Standard Schema, version 1). */
    readonly validate: (value: unknown) => StandardResult<Values> | Promise<StandardResult<Values>>
    readonly jsonSchema: {
      /** The JSON Schema of valid input (Standard JSON Schema, version 1). */
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>
    }
  }
}

/** The result of a Standard Schema (https://standardschema.dev): a value, or issues. */
export type StandardResult<Values> =
  | { readonly value: Values; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
      }[]
    }

/** The ways in which a function may declare its inputs. */
export type InputsSource<Values extends object = object> = InputsClass<Values> | StandardInputs<Values>

/** The type of the inputs that a function gets. */
export type InferInputs<Source> = Source extends abstract new (given: never) => infer Values
  ? Values
  : Source extends { readonly '~standard': { readonly types?: infer Types } }
    ? NonNullable<Types> extends { readonly output: infer Values }
      ? Values
      : never
    : never

/** Declared inputs, whatever they were declared with. */
export interface ResolvedInputs<Values> {
  /** The description of the inputs. */
  readonly description: InputsDescription
  /**
   * Turns parsed JSON into the values that the function receives. Rejects with `InputsError`, which never contains a
   * value.
   */
  parse(json: unknown): Promise<Values>
  /** The JSON Schema of valid input. */
  toJSONSchema(): InputsSchema
  /** The texts of all secrets in the same JSON, right or wrong, to be kept out of logs and messages. */
  secretTexts(json: unknown): readonly string[]
}

/**
 * Reads a declaration. Schemas of other libraries must follow the rules of `readInputsSchema`. Throws `TypeError` for
 * anything that is not a declaration, and `InputsError` (`invalid_inputs_schema`) for a schema that no form can show.
 */
export function resolveInputs<Source extends InputsSource>(source: Source): ResolvedInputs<InferInputs<Source>> {
  const { description, parse } = isStandard(source) ? resolveStandard(source) : resolveClass(source)
  return {
    description,
    parse: parse as (json: unknown) => Promise<InferInputs<Source>>,
    toJSONSchema: () => inputsSchema(description),
    secretTexts: (json) => secretTexts(description, json),
  }
}

interface Resolved {
  readonly description: InputsDescription
  readonly parse: (json: unknown) => Promise<unknown>
}

/** Schemas of arktype are functions, so the type of the value does not tell. */
function isStandard(source: unknown): source is StandardInputs {
  return ((typeof source === 'object' && source !== null) || typeof source === 'function') && '~standard' in source
}

function resolveClass(source: InputsClass): Resolved {
  if (typeof source !== 'function' || !isJSONObject(source.description)) {
    throw new TypeError(
      'inputs are a class that extends defineInputs({...}), or a Standard Schema that offers a JSON Schema',
    )
  }
  return { description: source.description, parse: async (json) => source.parse(json) }
}

function resolveStandard(source: StandardInputs): Resolved {
  const standard = source['~standard']
  const description = readInputsSchema(standardSchema(standard))
  const check = inputsParser(description)
  const parse = async (json: unknown): Promise<unknown> => {
    const values = check(json)
    const result = await standard.validate(values)
    if (result.issues !== undefined) {
      throw new InputsError(
        'invalid_inputs',
        result.issues.slice(0, INPUTS_LIMITS.fieldsMax).map((issue) => safeIssue(description, values, issue)),
      )
    }
    return result.value
  }
  return { description, parse }
}

function standardSchema(standard: StandardInputs['~standard']): unknown {
  const convert = (standard as Partial<StandardInputs['~standard']>).jsonSchema
  const vendor = JSON.stringify(standard.vendor.slice(0, 60))
  if (convert === undefined) {
    throw new TypeError(
      `the schema of ${vendor} offers no JSON Schema (~standard.jsonSchema); zod 4 and arktype do, valibot through toStandardJsonSchema`,
    )
  }
  try {
    return convert.input({ target: 'draft-2020-12' })
  } catch (error) {
    throw new TypeError(`the schema of ${vendor} cannot be written as JSON Schema, so no form can be made from it`, {
      cause: error,
    })
  }
}

type StandardIssue = Extract<StandardResult<unknown>, { readonly issues: readonly unknown[] }>['issues'][number]

/** Messages of other libraries may quote the value, which may be a secret: those that do are replaced. */
function safeIssue(
  { fields }: InputsDescription,
  values: Readonly<Record<string, unknown>>,
  { path = [], message }: StandardIssue,
): InputsIssue {
  const [first] = path
  const key = String(typeof first === 'object' ? first.key : (first ?? ''))
  const quotes = Object.values(values).some((value) => value !== '' && message.includes(String(value)))
  const kept =
    quotes || message.length > INPUTS_LIMITS.titleCharactersMax ? 'is refused by the rules of the function' : message
  return { path: fields.some(({ name }) => name === key) ? key : '', message: kept }
}
