import type {
  InputField,
  InputsDescription,
  InputValue,
  InputValues,
  NumberField,
  SelectField,
  TextRules,
} from './description.ts'
import { INPUTS_LIMITS } from './description.ts'
import { InputsError, type InputsIssue } from './errors.ts'
import { compilePattern } from './pattern.ts'

/**
 * The fault of a value, as a sentence that continues after the name of the field; `undefined` for a valid one. It never
 * contains the value.
 */
type FieldCheck = (value: unknown) => string | undefined

const UNKNOWN_FIELDS_SHOWN_MAX = 10
const DIGITS = /^[+-]?\d+$/

/**
 * Prepares the validation of inputs: the same for the function, the server and the pages. The result takes parsed JSON
 * and returns it with the defaults filled in, fields in the order of the description, secrets as plain texts. It throws
 * `InputsError` (`invalid_inputs`) with one issue for each field.
 */
export function inputsParser(description: InputsDescription): (json: unknown) => InputValues {
  const checks = description.fields.map((field) => ({ field, check: fieldCheck(field) }))
  const names = new Set(description.fields.map(({ name }) => name))
  return (json) => {
    if (!isJSONObject(json)) throw new InputsError('invalid_inputs', [{ path: '', message: 'must be an object' }])
    const values: Record<string, InputValue> = {}
    const issues: InputsIssue[] = []
    for (const { field, check } of checks) {
      const value = Object.hasOwn(json, field.name) ? json[field.name] : undefined
      const message = value === undefined ? missing(field) : check(value)
      if (message !== undefined) issues.push({ path: field.name, message })
      const kept = value ?? defaultOf(field)
      if (kept !== undefined) values[field.name] = kept as InputValue
    }
    const unknown = Object.keys(json).filter((name) => !names.has(name))
    for (const name of unknown.slice(0, UNKNOWN_FIELDS_SHOWN_MAX))
      issues.push({ path: name, message: 'is not an input of this function' })
    if (issues.length > 0) throw new InputsError('invalid_inputs', issues)
    return values
  }
}

/** The texts of all secrets in some JSON, valid or not: they must be kept out of logs and messages. */
export function secretTexts(description: InputsDescription, json: unknown): readonly string[] {
  if (!isJSONObject(json)) return []
  const texts = description.fields
    .filter(({ kind }) => kind === 'secret')
    .map(({ name }) => (Object.hasOwn(json, name) ? json[name] : undefined))
  return texts.filter((text): text is string => typeof text === 'string' && text !== '')
}

/** Throws `PatternUnsupported` for a pattern that cannot be run. */
export function fieldCheck(field: InputField): FieldCheck {
  if (field.kind === 'text' || field.kind === 'secret') return textCheck(field)
  if (field.kind === 'select') return selectCheck(field)
  if (field.kind === 'boolean') return (value) => (typeof value === 'boolean' ? undefined : 'must be true or false')
  return (value) => checkNumber(field, value)
}

export function defaultOf(field: InputField): InputValue | undefined {
  return field.kind === 'secret' ? undefined : field.default
}

export function isJSONObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

function missing(field: InputField): string | undefined {
  return field.required ? 'is required' : undefined
}

function textCheck({ minLength = 0, maxLength, pattern }: TextRules): FieldCheck {
  const compiled = pattern === undefined ? undefined : compilePattern(pattern)
  const unitsMax = compiled === undefined ? INPUTS_LIMITS.textCharactersMax : INPUTS_LIMITS.patternTextCharactersMax
  return (value) => {
    if (typeof value !== 'string') return 'must be a text'
    if (value.length > unitsMax) return `must have at most ${unitsMax} characters`
    const length = codePointsOf(value)
    if (length < minLength) return `must have at least ${counted(minLength)}`
    if (maxLength !== undefined && length > maxLength) return `must have at most ${counted(maxLength)}`
    return compiled === undefined || compiled.test(value) ? undefined : patternMessage(pattern)
  }
}

/** Short patterns help people, long ones do not. */
function patternMessage(pattern = ''): string {
  return /^[^\p{Cc}]{1,80}$/u.test(pattern) ? `must match the pattern ${pattern}` : 'must match its pattern'
}

function counted(length: number): string {
  return length === 1 ? '1 character' : `${length} characters`
}

/** JSON Schema counts characters (RFC 8259), not UTF-16 units: a surrogate pair is one. */
function codePointsOf(text: string): number {
  let count = 0
  for (const char of text) count += char.length > 0 ? 1 : 0
  return count
}

function checkNumber({ kind, gt, gte, lt, lte }: NumberField, value: unknown): string | undefined {
  if (kind === 'integer' && typeof value === 'string' && DIGITS.test(value) && !Number.isSafeInteger(Number(value)))
    return `must be from -${Number.MAX_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}, where whole numbers are exact`
  if (typeof value !== 'number' || !Number.isFinite(value))
    return `must be ${kind === 'integer' ? 'a whole number' : 'a number'}`
  if (kind === 'integer' && !Number.isInteger(value)) return 'must be a whole number'
  if (gt !== undefined && value <= gt) return `must be greater than ${gt}`
  if (gte !== undefined && value < gte) return `must be ${gte} or more`
  if (lt !== undefined && value >= lt) return `must be less than ${lt}`
  if (lte !== undefined && value > lte) return `must be ${lte} or less`
  return undefined
}

function selectCheck({ options }: SelectField): FieldCheck {
  const values = new Set<unknown>(options.map(({ value }) => value))
  return (value) => (values.has(value) ? undefined : 'must be one of the choices')
}
