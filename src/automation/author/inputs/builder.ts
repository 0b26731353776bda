import type { InputField, NumberRules, SelectChoice, TextRules } from './description.ts'
import type { Secret } from './secret.ts'

/** A field without its name, which `defineInputs` gives it. */
export type FieldOptions = Readonly<Record<string, unknown>> & { readonly kind: InputField['kind'] }

/**
 * One declared input, made by `text`, `number`, `integer`, `boolean`, `select` or `secret`. `Value` is what the function gets, `Given` what the JSON
 * may hold; either has `undefined` where it may be missing.
 */
export interface Input<Value, Given> {
  readonly field: FieldOptions
  /** Types only; there is no such member. */
  readonly types?: { readonly value: Value; readonly given: Given }
}

/** What a person sees of every kind of input, and whether it must be given: by default it must, unless there is a `default`. */
export interface CommonOptions<R extends boolean> {
  readonly title?: string
  readonly description?: string
  /** `false` makes the value `undefined` when it is not given. Cannot stand beside `default`. */
  readonly required?: R
}

/** What `text` can be told. */
export interface TextOptions<R extends boolean = boolean, D extends string | undefined = string | undefined>
  extends CommonOptions<R>, TextPatternRules {
  readonly default?: D
}

/** Lengths count Unicode code points. A pattern has no flags but `u`, and runs in linear time, so lookaround and references back to groups are refused. */
export interface TextPatternRules extends Omit<TextRules, 'pattern'> {
  readonly pattern?: RegExp | string
}

/** What `number` and `integer` can be told. */
export interface NumberOptions<R extends boolean = boolean, D extends number | undefined = number | undefined>
  extends CommonOptions<R>, NumberRules {
  readonly default?: D
}

/** What `boolean` can be told. */
export interface BooleanOptions<
  R extends boolean = boolean,
  D extends boolean | undefined = boolean | undefined,
> extends CommonOptions<R> {
  readonly default?: D
}

/** What `select` can be told beside its choices. */
export interface SelectOptions<
  V extends string,
  R extends boolean = boolean,
  D extends V | undefined = V | undefined,
> extends CommonOptions<R> {
  readonly default?: D
}

/** Secrets have no default: it would stand in the schema for everyone to read. */
export interface SecretOptions<R extends boolean = boolean> extends CommonOptions<R>, TextPatternRules {}

/** `T`, or `T | undefined` where it is neither required nor has a default. */
export type ValueOf<T, R extends boolean, D> = [D] extends [undefined] ? (false extends R ? T | undefined : T) : T
/** What may be given for a field: `undefined` where it is not required or has a default. */
export type GivenOf<T, R extends boolean, D> = [D] extends [undefined]
  ? false extends R
    ? T | undefined
    : T
  : T | undefined
/** A declared field: the type that the function gets, and the type that may be given for it. */
export type Declared<T, Given, R extends boolean, D> = Input<ValueOf<T, R, D>, GivenOf<Given, R, D>>

/** One line of text. */
export function text<R extends boolean = true, D extends string | undefined = undefined>(
  options: TextOptions<R, D> = {},
): Declared<string, string, R, D> {
  return { field: { ...options, kind: 'text' } }
}

/** A finite number. */
export function number<R extends boolean = true, D extends number | undefined = undefined>(
  options: NumberOptions<R, D> = {},
): Declared<number, number, R, D> {
  return { field: { ...options, kind: 'number' } }
}

/** A whole number. */
export function integer<R extends boolean = true, D extends number | undefined = undefined>(
  options: NumberOptions<R, D> = {},
): Declared<number, number, R, D> {
  return { field: { ...options, kind: 'integer' } }
}

/** Yes or no. */
export function boolean<R extends boolean = true, D extends boolean | undefined = undefined>(
  options: BooleanOptions<R, D> = {},
): Declared<boolean, boolean, R, D> {
  return { field: { ...options, kind: 'boolean' } }
}

/** One of some texts: `['mm', 'm']`, or with labels for people `{ mm: 'Millimetres', m: 'Metres' }`. */
export function select<const V extends string, R extends boolean = true, D extends NoInfer<V> | undefined = undefined>(
  choices: readonly V[] | Readonly<Record<V, string>>,
  options: SelectOptions<NoInfer<V>, R, D> = {},
): Declared<V, V, R, D> {
  return { field: { ...options, kind: 'select', options: choicesOf(choices) } }
}

/** A text that is masked in forms, in logs and wherever else it is not asked for with `reveal()`. */
export function secret<R extends boolean = true>(
  options: SecretOptions<R> = {},
): Declared<Secret, string, R, undefined> {
  return { field: { ...options, kind: 'secret' } }
}

function choicesOf(choices: readonly string[] | Readonly<Record<string, string>>): readonly SelectChoice[] {
  if (Array.isArray(choices)) return (choices as readonly string[]).map((value) => ({ value }))
  return Object.entries(choices).map(([value, label]) => ({ value, label }))
}
