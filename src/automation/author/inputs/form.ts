import type { InputField, InputsDescription } from './description.ts'

/** The values of a submitted form, as the JSON that is validated next. */
export interface FormInputs {
  /**
   * For `inputsParser`. What could not be read as its kind stays the text it was, so that validation has something to
   * say about it.
   */
  readonly json: Readonly<Record<string, unknown>>
  /** Secrets that were left empty: to keep an earlier value, put it into `json` before validating. */
  readonly emptySecrets: readonly string[]
}

/**
 * The syntax of numbers in JSON (RFC 8259, section 6) with a plus, leading zeros and a bare point, which people write.
 */
const NUMBER = /^[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,4})?$/
const WHOLE = /^[+-]?\d+$/

/**
 * The values of a form, which are texts, as JSON by the kinds of their fields. The last value of a repeated name
 * counts; names without a field are omitted; an empty text means no value. A checkbox that is not sent is `false`,
 * except for an optional field without a default: that has three states and needs a control that sends `true`, `false`
 * or nothing. Line ends of texts become line feeds.
 */
export function fromFormValues(
  description: InputsDescription,
  entries: Iterable<readonly [name: string, value: unknown]>,
): FormInputs {
  const sent = new Map<string, string>()
  for (const [name, value] of entries) if (typeof value === 'string') sent.set(name, value)
  const json: Record<string, unknown> = {}
  const emptySecrets: string[] = []
  for (const field of description.fields) {
    const value = fromFormValue(field, sent.get(field.name) ?? '')
    if (value !== undefined) json[field.name] = value
    else if (field.kind === 'secret') emptySecrets.push(field.name)
  }
  return { json, emptySecrets }
}

function fromFormValue(field: InputField, text: string): unknown {
  if (field.kind === 'boolean') return fromCheckbox(text, isThreeState(field))
  if (field.kind === 'number' || field.kind === 'integer') return fromNumberText(text.trim(), field.kind)
  const choice = field.kind === 'select' ? field.options.find(({ value }) => String(value) === text) : undefined
  if (choice !== undefined) return choice.value
  return text === '' ? undefined : text.replaceAll('\r\n', '\n')
}

/** Whether a boolean may also be left open, which a checkbox cannot show. */
export function isThreeState(field: InputField): boolean {
  return field.kind === 'boolean' && !field.required && field.default === undefined
}

/** Browsers send `on` for a checkbox without a value. */
function fromCheckbox(text: string, threeState: boolean): unknown {
  if (text === '') return threeState ? undefined : false
  if (text === 'on' || text === 'true') return true
  return text === 'false' ? false : text
}

/** A whole number of more digits than are exact would silently become another one. */
function fromNumberText(text: string, kind: 'number' | 'integer'): unknown {
  if (text === '') return undefined
  const value = NUMBER.test(text) ? Number(text) : Number.NaN
  const isExact = kind === 'number' || !WHOLE.test(text) || Number.isSafeInteger(value)
  return Number.isFinite(value) && isExact ? value : text
}
