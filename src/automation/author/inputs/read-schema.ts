import { fieldFault, formFault } from './check.ts'
import { type InputField, INPUTS_LIMITS, type InputsDescription } from './description.ts'
import { InputsError, type InputsIssue, quote } from './errors.ts'
import { type Keywords, readField, refuse, Refusal } from './read-field.ts'
import { JSON_SCHEMA_DIALECT, KEYWORDS, present } from './schema.ts'
import { isJSONObject } from './validate.ts'

const ROOT_KEYWORDS: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$comment',
  'type',
  'title',
  'description',
  'properties',
  'required',
  'additionalProperties',
])
const ISSUES_MAX = 20

/**
 * Reads a JSON Schema of inputs, also one made by another SDK, into the description that validation and forms are made
 * from. It accepts schemas that a form can show: one flat object of texts, numbers, booleans, choices and secrets,
 * everything inline. A value that may be null counts as optional. Throws `InputsError` (`invalid_inputs_schema`); its
 * issues name a JSON Pointer, the keyword, and the remedy.
 */
export function readInputsSchema(json: unknown): InputsDescription {
  const issues: InputsIssue[] = []
  const collect = <T>(path: string, read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      issues.push({ path: `${path}${error.path}`, message: error.message })
      return undefined
    }
  }
  const description = collect('', () => readRoot(json, collect))
  if (description === undefined || issues.length > 0)
    throw new InputsError('invalid_inputs_schema', issues.slice(0, ISSUES_MAX))
  return description
}

function readRoot(json: unknown, collect: <T>(path: string, read: () => T) => T | undefined): InputsDescription {
  const schema = checkRoot(json)
  const required = readRequired(schema)
  const properties = schema.properties ?? {}
  if (!isJSONObject(properties)) refuse('/properties', 'must be an object with one schema for each input')
  const entries = Object.entries(properties)
  if (entries.length > INPUTS_LIMITS.fieldsMax)
    refuse('/properties', `has ${entries.length} inputs; the limit is ${INPUTS_LIMITS.fieldsMax}`)
  for (const name of required)
    if (!Object.hasOwn(properties, name)) refuse('/required', `names ${quote(name)}, which is not in properties`)
  const fields = entries.map(([name, field]) =>
    collect(`/properties/${pointerSegment(name)}`, () => readNamed(name, field, required.has(name))),
  )
  const { title, description } = readWords(schema)
  const read: InputsDescription = {
    ...present({ title, description }),
    fields: fields.filter((field) => field !== undefined),
  }
  const fault = formFault(read)
  if (fault !== undefined) refuse(fault.option === '' ? '' : `/${fault.option}`, fault.message)
  return read
}

function checkRoot(json: unknown): Keywords {
  if (!isJSONObject(json)) return refuse('', 'must be an object')
  const bytes = jsonBytes(json)
  if (bytes > INPUTS_LIMITS.schemaBytesMax)
    refuse('', `has ${bytes} bytes of JSON; the limit is ${INPUTS_LIMITS.schemaBytesMax}`)
  if (json.$schema !== undefined && json.$schema !== JSON_SCHEMA_DIALECT)
    refuse('/$schema', `must be ${quote(JSON_SCHEMA_DIALECT)}, or be left out`)
  for (const keyword of Object.keys(json))
    if (!ROOT_KEYWORDS.has(keyword)) refuse(`/${pointerSegment(keyword)}`, rootAdvice(keyword))
  if (json.type !== 'object') refuse('/type', 'must be "object": inputs are one flat object')
  if (typeof json.additionalProperties === 'object')
    refuse('/additionalProperties', 'must be true or false: a form has one control for each named input')
  return json
}

function rootAdvice(keyword: string): string {
  if (keyword === '$defs' || keyword === 'definitions')
    return 'is not supported: write every definition inline, at the place of its use'
  return 'is a keyword that no form can show; inputs are one object with properties, required and additionalProperties'
}

function jsonBytes(json: unknown): number {
  try {
    return new TextEncoder().encode(JSON.stringify(json)).length
  } catch {
    return refuse('', 'is not JSON')
  }
}

function readRequired(schema: Keywords): ReadonlySet<string> {
  const required = schema.required ?? []
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string'))
    return refuse('/required', 'must be a list of names')
  return new Set(required as readonly string[])
}

function readNamed(name: string, json: unknown, required: boolean): InputField {
  const field = readField(name, json, required)
  const fault = fieldFault(field)
  if (fault !== undefined) refuse(fault.option === '' ? '' : `/${keywordOf(field, fault.option)}`, fault.message)
  return field
}

function keywordOf(field: InputField, option: string): string {
  if (option !== 'options' || field.kind !== 'select') return KEYWORDS[option] ?? option
  return field.options.some(({ label }) => label !== undefined) ? 'oneOf' : 'enum'
}

function readWords({ title, description }: Keywords): { readonly title?: string; readonly description?: string } {
  return present({ title, description }) as { readonly title?: string; readonly description?: string }
}

/** RFC 6901, section 3. */
function pointerSegment(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
