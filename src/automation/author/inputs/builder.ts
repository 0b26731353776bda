import type { InputField, NumberRules, SelectChoice, TextRules } from './description.ts'
import type { Secret } from './secret.ts'

/** A field without its name, which `defineInputs` adds. */
export type FieldOptions = Readonly<Record<string, unknown>> & { readonly kind: InputField['kind'] }

/**
 * One declared input, made by `text`, `number`, `integer`, `boolean`, `select` or `secret`. `Value` is the type that
 * the function receives, `Given` the type that the JSON may hold. Either includes `undefined` if the value may be
 * missing.
 */
export interface Input<Value, Given> {
  /** The options that the input was declared with. */
  readonly field: FieldOptions
  /** For types only; no such member exists. */
  readonly types?: { readonly value: Value; readonly given: Given }
}

/**
 * The parts that every kind of input shows to people, and whether a value is required: by default it is, unless there
 * is a `default`.
 */
export interface CommonOptions<R extends boolean> {
  /** The label, for people; the name of the input by default. */
  readonly title?: string
  /** Text about the input, for people. */
  readonly description?: string
  /** `false` makes the value `undefined` if it is not given. It excludes `default`. */
  readonly required?: R
}

/** Options of `text`. */
export interface TextOptions<R extends boolean = boolean, D extends string | undefined = string | undefined>
  extends CommonOptions<R>, TextPatternRules {
  /** The value if none is given. */
  readonly default?: D
}

/**
 * Lengths count Unicode code points. A pattern has no flags but `u`, and runs in linear time, so lookaround and
 * references back to groups are refused.
 */
export interface TextPatternRules extends Omit<TextRules, 'pattern'> {
  /**
   * An ECMAScript pattern with the flag `u`, found anywhere in the text unless it is anchored. Without lookaround and
   * back references.
   */
  readonly pattern?: RegExp | string
}

/** Options of `number` and `integer`. */
export interface NumberOptions<R extends boolean = boolean, D extends number | undefined = number | undefined>
  extends CommonOptions<R>, NumberRules {
  /** The value if none is given. */
  readonly default?: D
}

/** Options of `boolean`. */
export interface BooleanOptions<
  R extends boolean = boolean,
  D extends boolean | undefined = boolean | undefined,
> extends CommonOptions<R> {
  /** The value if none is given. */
  readonly default?: D
}

/**
 * The choices of `select`: a list of values, or an object of values by their labels, such as an `enum` of TypeScript.
 */
export type Choices = readonly (string | number)[] | Readonly<Record<string, string | number>>

/** The values among which `select` lets people choose. */
export type ChoiceOf<C extends Choices> = C extends readonly (infer V extends string | number)[]
  ? V
  : C[Extract<keyof C, string>]

/** Options of `select`, besides its choices. */
export interface SelectOptions<
  V extends string | number,
  R extends boolean = boolean,
  D extends V | undefined = V | undefined,
> extends CommonOptions<R> {
  /** The value if none is given. */
  readonly default?: D
}

/** Secrets have no default: everyone could read it in the schema. */
export interface SecretOptions<R extends boolean = boolean> extends CommonOptions<R>, TextPatternRules {}

/** `T`, or `T | undefined` if the input is not required and has no default. */
export type ValueOf<T, R extends boolean, D> = [D] extends [undefined] ? (false extends R ? T | undefined : T) : T
/** The type that may be given for a field: it includes `undefined` if the field is not required or has a default. */
export type GivenOf<T, R extends boolean, D> = [D] extends [undefined]
  ? false extends R
    ? T | undefined
    : T
  : T | undefined
/** A declared field: the type that the function gets, and the type that may be given for it. */
export type DeclaredInput<T, Given, R extends boolean, D> = Input<ValueOf<T, R, D>, GivenOf<Given, R, D>>

/** One line of text. */
export function text<R extends boolean = true, D extends string | undefined = undefined>(
  options: TextOptions<R, D> = {},
): DeclaredInput<string, string, R, D> {
  return { field: { ...options, kind: 'text' } }
}

/** A finite number. */
export function number<R extends boolean = true, D extends number | undefined = undefined>(
  options: NumberOptions<R, D> = {},
): DeclaredInput<number, number, R, D> {
  return { field: { ...options, kind: 'number' } }
}

/** A whole number. */
export function integer<R extends boolean = true, D extends number | undefined = undefined>(
  options: NumberOptions<R, D> = {},
): DeclaredInput<number, number, R, D> {
  return { field: { ...options, kind: 'integer' } }
}

/** Yes or no. */
export function boolean<R extends boolean = true, D extends boolean | undefined = undefined>(
  options: BooleanOptions<R, D> = {},
): DeclaredInput<boolean, boolean, R, D> {
  return { field: { ...options, kind: 'boolean' } }
}

/**
 * One of some values. `['mm', 'm']` lists them. An object has them by their labels, which people see: `{ Millimetres:
 * 'mm', Metres: 'm' }`. An `enum` is such an object: `select(Unit)` shows the names of its members and gives the
 * function their values. Values are either all texts or all numbers.
 */
export function select<
  const C extends Choices,
  R extends boolean = true,
  D extends NoInfer<ChoiceOf<C>> | undefined = undefined,
>(choices: C, options: SelectOptions<NoInfer<ChoiceOf<C>>, R, D> = {}): DeclaredInput<ChoiceOf<C>, ChoiceOf<C>, R, D> {
  return { field: { ...options, kind: 'select', options: choicesOf(choices) } }
}

/** A text that is masked in forms, in logs and wherever else it is not asked for with `reveal()`. */
export function secret<R extends boolean = true>(
  options: SecretOptions<R> = {},
): DeclaredInput<Secret, string, R, undefined> {
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

/** `enum Level { Low }` is `{ Low: 0, 0: 'Low' }` at run time: the second member is not a choice. */
function isReverseMapping(choices: Readonly<Record<string, string | number>>, label: string): boolean {
  const name = choices[label]
  return (
    typeof name === 'string' &&
    String(Number(label)) === label &&
    Object.hasOwn(choices, name) &&
    choices[name] === Number(label)
  )
}
