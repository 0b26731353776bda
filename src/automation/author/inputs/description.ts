/**
 * The inputs that a function asks its users for. The validator, the schema and the page are all made from this one
 * description. It is plain data, so it can be stored, compared and sent.
 */
export interface InputsDescription {
  /** The title of the form, for people. */
  readonly title?: string
  /** Text about the form, for people. */
  readonly description?: string
  /** In the order of the form. Names are unique. */
  readonly fields: readonly InputField[]
}

/** One field of the inputs, as data. */
export type InputField = TextField | NumberField | BooleanField | SelectField | SecretField

/** The members that every field has: its name, and the texts that people see. */
export interface NamedField {
  /** The key in the JSON of the inputs. */
  readonly name: string
  /** The label, for people. */
  readonly title?: string
  /** Text about the input, for people. */
  readonly description?: string
  /** Whether the JSON must hold it. A field with a default is never required. */
  readonly required: boolean
}

/** Bounds of a text. Lengths count Unicode code points, as JSON Schema does. */
export interface TextRules {
  /** The fewest characters. */
  readonly minLength?: number
  /** The most characters. */
  readonly maxLength?: number
  /**
   * An ECMAScript pattern as with the flag `u`, found anywhere in the text unless it is anchored (JSON Schema 2020-12
   * Validation, section 6.3.3).
   */
  readonly pattern?: string
}

/** A field for one line of text. */
export interface TextField extends NamedField, TextRules {
  /** The kind of the input. */
  readonly kind: 'text'
  /** The value if none is given. */
  readonly default?: string
}

/** A text that is not shown: it has no default, and pages do not return it. */
export interface SecretField extends NamedField, TextRules {
  /** The kind of the input. */
  readonly kind: 'secret'
}

/** Bounds of a number: greater than, greater than or equal, less than, less than or equal. */
export interface NumberRules {
  /** The value must be above this. */
  readonly gt?: number
  /** The value must be at least this. */
  readonly gte?: number
  /** The value must be below this. */
  readonly lt?: number
  /** The value must be at most this. */
  readonly lte?: number
}

/** A field for a number, or for a whole one. */
export interface NumberField extends NamedField, NumberRules {
  /** The kind of the input. */
  readonly kind: 'number' | 'integer'
  /** The value if none is given. */
  readonly default?: number
}

/** A field that is true or false. */
export interface BooleanField extends NamedField {
  /** The kind of the input. */
  readonly kind: 'boolean'
  /** The value if none is given. */
  readonly default?: boolean
}

/** A field for one of some texts or numbers. */
export interface SelectField extends NamedField {
  /** The kind of the input. */
  readonly kind: 'select'
  /**
   * At least one; values are unique, and either all texts or all numbers. Either every choice has a label or none has.
   */
  readonly options: readonly SelectChoice[]
  /** The value if none is given. */
  readonly default?: string | number
}

/** One of the values of a `select`, and its label. */
export interface SelectChoice {
  /** The value that the function receives. */
  readonly value: string | number
  /** The text that people see; the value by default. */
  readonly label?: string
}

/** The JSON of inputs: one flat object. */
export type InputValue = string | number | boolean
/** Checked inputs by the names of their fields. */
export type InputValues = Readonly<Record<string, InputValue>>

/**
 * Each is the largest value that is still accepted. Lengths of names, titles, descriptions, labels and patterns are in
 * UTF-16 units.
 */
export interface InputsLimits {
  /** Inputs of one function. */
  readonly fieldsMax: number
  /** Characters of the name of an input. */
  readonly nameCharactersMax: number
  /** Characters of one title. */
  readonly titleCharactersMax: number
  /** Characters of one description. */
  readonly descriptionCharactersMax: number
  /** Characters of one pattern. */
  readonly patternCharactersMax: number
  /** Choices of one input. */
  readonly choicesMax: number
  /** Characters of one choice or its label. */
  readonly choiceCharactersMax: number
  /** UTF-16 units of one text or secret, regardless of its `maxLength`. */
  readonly textCharactersMax: number
  /** The same with a pattern, whose time grows with the length of the text times its own size. */
  readonly patternTextCharactersMax: number
  /** Steps of one compiled pattern. */
  readonly patternStepsMax: number
  /** Steps of all compiled patterns of one form together. */
  readonly formPatternStepsMax: number
  /** Bytes of a schema as compact JSON in UTF-8. */
  readonly schemaBytesMax: number
}

/** The default limits of inputs. */
export const INPUTS_LIMITS: InputsLimits = {
  fieldsMax: 100,
  nameCharactersMax: 100,
  titleCharactersMax: 200,
  descriptionCharactersMax: 2_000,
  patternCharactersMax: 1_000,
  choicesMax: 1_000,
  choiceCharactersMax: 200,
  textCharactersMax: 65_536,
  patternTextCharactersMax: 4_096,
  patternStepsMax: 2_500,
  formPatternStepsMax: 5_000,
  schemaBytesMax: 262_144,
}
