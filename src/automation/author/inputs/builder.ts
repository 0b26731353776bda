import type { InputField, NumberRules, SelectChoice, TextRules } from './description.ts'
import type { Secret } from './secret.ts'

/** A field without its name, which `defineInputs` gives it. */
export type FieldOptions = Readonly<Record<string, unknown>> & { readonly kind: InputField['kind'] }

/**
 * One declared input, made by `text`, `number`, `integer`, `boolean`, `select` or `secret`. `Value` is what the function gets, `Given` what the JSON
 * may hold; either has `undefined` where it may be missing.
 */
export interface Input<Value, Given> {
  /** The options that the input was declared with. */
  readonly field: FieldOptions
  /** Types only; there is no such member. */
  readonly types?: { readonly value: Value; readonly given: Given }
}

/** What a person sees of every kind of input, and whether it must be given: by default it must, unless there is a `default`. */
export interface CommonOptions<R extends boolean> {
  /** The label, for people; the name of the input by default. */
  readonly title?: string
  /** Text about the input, for people. */
  readonly description?: string
  /** `false` makes the value `undefined` when it is not given. Cannot stand beside `default`. */
  readonly required?: R
}

/** What `text` can be told. */
export interface TextOptions<R extends boolean = boolean, D extends string | undefined = string | undefined>
  extends CommonOptions<R>, TextPatternRules {
  /** The value if none is given. */
  readonly default?: D
}

/** Lengths count Unicode code points. A pattern has no flags but `u`, and runs in linear time, so lookaround and references back to groups are refused. */
export interface TextPatternRules extends Omit<TextRules, 'pattern'> {
  /** An ECMAScript pattern with the flag `u`, found anywhere in the text unless it is anchored. Without lookaround and back references. */
  readonly pattern?: RegExp | string
}

/** What `number` and `integer` can be told. */
export interface NumberOptions<R extends boolean = boolean, D extends number | undefined = number | undefined>
  extends CommonOptions<R>, NumberRules {
  /** The value if none is given. */
  readonly default?: D
}

/** What `boolean` can be told. */
export interface BooleanOptions<
  R extends boolean = boolean,
  D extends boolean | undefined = boolean | undefined,
> extends CommonOptions<R> {
  /** The value if none is given. */
  readonly default?: D
}

/** The choices of `select`: a list of values, or an object of values by their labels, such as an `enum` of TypeScript. */
export type Choices = readonly (string | number)[] | Readonly<Record<string, string | number>>

/** The values among which `select` lets people choose. */
export type ChoiceOf<C extends Choices> = C extends readonly (infer V extends string | number)[]
  ? V
  : C[Extract<keyof C, string>]

/** What `select` can be told beside its choices. */
export interface SelectOptions<
  V extends string | number,
  R extends boolean = boolean,
  D extends V | undefined = V | undefined,
> extends CommonOptions<R> {
  /** The value if none is given. */
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

/**
 * One of some values. `['mm', 'm']` lists them. An object has them by their labels, which people see: `{ Millimetres: 'mm', Metres: 'm' }`. An `enum` is such
 * an object: `select(Unit)` shows the names of its members and gives the function their values. Values are either all texts or all numbers.
 */
export function select<
  const C extends Choices,
  R extends boolean = true,
  D extends NoInfer<ChoiceOf<C>> | undefined = undefined,
>(choices: C, options: SelectOptions<NoInfer<ChoiceOf<C>>, R, D> = {}): Declared<ChoiceOf<C>, ChoiceOf<C>, R, D> {
  return { field: { ...options, kind: 'select', options: choicesOf(choices) } }
}

/** A text that is masked in forms, in logs and wherever else it is not asked for with `reveal()`. */
export function secret<R extends boolean = true>(
  options: SecretOptions<R> = {},
): Declared<Secret, string, R, undefined> {
  return { field: { ...options, kind: 'secret' } }
}

function choicesOf(choices: Choices): readonly SelectChoice[] {
  if (isList(choices)) return choices.map((value) => ({ value }))
  const labels = Object.keys(choices).filter((label) => !isReverseMapping(choices, label))
  return labels.map((label) => ({ value: choices[label], label }))
}

function isList(choices: Choices): choices is readonly (string | number)[] {
  return Array.isArray(choices)
}

/** `enum Level { Low }` is `{ Low: 0, 0: 'Low' }` when it runs: the second member is no choice. */
function isReverseMapping(choices: Readonly<Record<string, string | number>>, label: string): boolean {
  const name = choices[label]
  return (
    typeof name === 'string' &&
    String(Number(label)) === label &&
    Object.hasOwn(choices, name) &&
    choices[name] === Number(label)
  )
}
