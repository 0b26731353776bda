import {
  type InputField,
  INPUTS_LIMITS,
  type InputsDescription,
  type NumberField,
  type SelectField,
  type TextRules,
} from './description.ts'
import { quote } from './errors.ts'
import { compilePattern, PatternUnsupported } from './pattern.ts'
import { defaultOf, fieldCheck } from './validate.ts'

/**
 * A rule of the description that is broken, and the option that breaks it; `option` is empty for the field or the form
 * as a whole.
 */
export interface Fault {
  readonly option: string
  readonly message: string
}

type Found = Fault | undefined

/**
 * Characters that forms change in transit: carriage returns become line feeds, and characters that cannot be shown
 * become another character.
 */
const UNSENDABLE = /(?![\t\n])\p{Cc}|\p{Surrogate}/u

/** Checks the rules for a form as a whole. */
export function formFault({ title, description, fields }: InputsDescription): Found {
  if (fields.length > INPUTS_LIMITS.fieldsMax)
    return { option: '', message: `has ${fields.length} fields; the limit is ${INPUTS_LIMITS.fieldsMax}` }
  const patterns = fields.flatMap((field) => ('pattern' in field && field.pattern !== undefined ? [field.pattern] : []))
  const size = patterns.reduce((sum, pattern) => sum + compilePattern(pattern).size, 0)
  if (size > INPUTS_LIMITS.formPatternStepsMax)
    return {
      option: '',
      message: `has patterns of ${size} steps together; the limit is ${INPUTS_LIMITS.formPatternStepsMax}: repeat less`,
    }
  return wordsFault({ title, description })
}

/** The first thing that is wrong with a field: from its name to its default, which must pass the field's own rules. */
export function fieldFault(field: InputField): Found {
  return nameFault(field.name) ?? wordsFault(field) ?? rulesFault(field) ?? defaultFault(field)
}

/**
 * Names become properties of an object and of a form. A name that every object has already, such as `constructor`,
 * would be shadowed or lost.
 */
export function nameFault(name: string): Found {
  const max = INPUTS_LIMITS.nameCharactersMax
  if (name.length === 0 || name.length > max) return { option: '', message: `needs a name of 1 to ${max} characters` }
  if (/[\p{Cc}\p{Cs}]/u.test(name)) return { option: '', message: 'has a control character in its name' }
  if (name in Object.prototype)
    return { option: '', message: 'has a name that every object has already; choose another' }
  return undefined
}

function wordsFault({
  title,
  description,
}: {
  readonly title?: string | undefined
  readonly description?: string | undefined
}): Found {
  return (
    lengthFault('title', title, INPUTS_LIMITS.titleCharactersMax) ??
    lengthFault('description', description, INPUTS_LIMITS.descriptionCharactersMax)
  )
}

function lengthFault(option: string, text: unknown, max: number): Found {
  if (text === undefined) return undefined
  if (typeof text !== 'string') return { option, message: 'must be a text' }
  return text.length > max ? { option, message: `has ${text.length} characters; the limit is ${max}` } : undefined
}

function rulesFault(field: InputField): Found {
  if (field.kind === 'text' || field.kind === 'secret') return textFault(field)
  if (field.kind === 'select') return selectFault(field)
  return field.kind === 'boolean' ? undefined : numberFault(field)
}

function textFault({ minLength, maxLength, pattern }: TextRules): Found {
  for (const [option, value] of Object.entries({ minLength, maxLength })) {
    if (value !== undefined && (!Number.isSafeInteger(value) || value < 0))
      return { option, message: 'must be a whole number, 0 or more' }
  }
  const unitsMax = pattern === undefined ? INPUTS_LIMITS.textCharactersMax : INPUTS_LIMITS.patternTextCharactersMax
  if (minLength !== undefined && minLength > unitsMax)
    return { option: 'minLength', message: `must be ${unitsMax} or less` }
  if (minLength !== undefined && maxLength !== undefined && minLength > maxLength)
    return { option: 'minLength', message: 'must not be greater than maxLength' }
  return lengthFault('pattern', pattern, INPUTS_LIMITS.patternCharactersMax) ?? patternFault(pattern)
}

function patternFault(pattern: string | undefined): Found {
  if (pattern === undefined) return undefined
  try {
    const { size } = compilePattern(pattern)
    const max = INPUTS_LIMITS.patternStepsMax
    return size > max
      ? { option: 'pattern', message: `${quote(pattern)} has ${size} steps; the limit is ${max}: repeat less` }
      : undefined
  } catch (error) {
    if (!(error instanceof PatternUnsupported)) throw error
    return { option: 'pattern', message: `${quote(pattern)} ${error.message}` }
  }
}

function numberFault({ kind, gt, gte, lt, lte }: NumberField): Found {
  for (const [option, value] of Object.entries({ gt, gte, lt, lte })) {
    if (value !== undefined && (typeof value !== 'number' || !Number.isFinite(value)))
      return { option, message: 'must be a finite number' }
  }
  const least = lowest(kind, gt, gte)
  const most = -lowest(kind, negated(lt), negated(lte))
  const open = kind === 'number' && least === most && (gt === least || lt === most)
  if (least <= most && !open) return undefined
  const what = kind === 'integer' ? 'whole number' : 'number'
  return {
    option: lt === undefined ? 'lte' : 'lt',
    message: `leaves no ${what}: the upper bound must be above the lower one`,
  }
}

/** The lower end of a range; for whole numbers the first one in it. */
function lowest(kind: 'number' | 'integer', gt: number | undefined, gte: number | undefined): number {
  const above = gt === undefined ? -Infinity : kind === 'integer' ? Math.floor(gt) + 1 : gt
  const from = gte === undefined ? -Infinity : kind === 'integer' ? Math.ceil(gte) : gte
  return Math.max(above, from)
}

function negated(bound: number | undefined): number | undefined {
  return bound === undefined ? undefined : -bound
}

function selectFault({ options }: SelectField): Found {
  const { choicesMax, choiceCharactersMax } = INPUTS_LIMITS
  const fault = (message: string): Fault => ({ option: 'options', message })
  if (options.length === 0) return fault('must hold at least one choice')
  if (options.length > choicesMax) return fault(`holds ${options.length} choices; the limit is ${choicesMax}`)
  const values = options.map(({ value }) => value)
  const texts = values.filter((value) => typeof value === 'string')
  const labels = options.flatMap(({ label }) => label ?? [])
  const areNumbers = values.every((value) => Number.isFinite(value))
  if (texts.length < values.length && !areNumbers) return fault('must be either all texts or all finite numbers')
  if (labels.some((label) => typeof label !== 'string')) return fault('must have texts as labels')
  if (texts.includes('')) return fault('must not be empty: a form sends an empty text for no choice')
  if (texts.some((text) => UNSENDABLE.test(text)))
    return fault(
      'must be without control characters but tabs and line feeds, and without halves of characters: no form sends them as they are',
    )
  if ([...texts, ...labels].some((word) => word.length > choiceCharactersMax))
    return fault(`must have at most ${choiceCharactersMax} characters each`)
  if (new Set(values).size < options.length) return fault('must differ from each other')
  return labels.length > 0 && labels.length < options.length ? fault('must either all have labels or none') : undefined
}

function defaultFault(field: InputField): Found {
  const value = defaultOf(field)
  if (value === undefined) return undefined
  if (field.required)
    return { option: 'required', message: 'makes no sense with a default: a value with a default is never missing' }
  const message = fieldCheck(field)(value)
  return message === undefined ? undefined : { option: 'default', message }
}
