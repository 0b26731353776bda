import type { InputField, SelectChoice } from './description.ts'
import { quote } from './errors.ts'
import { present } from './schema.ts'
import { isJSONObject } from './validate.ts'

/** A schema's keywords, nothing known of their values. */
export type Keywords = Readonly<Record<string, unknown>>

/** The reason why a schema is refused; `path` is a JSON Pointer relative to the reader's position. */
export class Refusal extends Error {
  readonly path: string

  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

export function refuse(path: string, message: string): never {
  throw new Refusal(path, message)
}

/** Keywords that only annotate, and that a form does not show. */
const IGNORED: readonly string[] = ['$comment', 'examples', 'deprecated']
const COMMON: readonly string[] = [...IGNORED, 'type', 'title', 'description', 'default']

/** Keywords that list the choices of a selection; one of them at a time. */
const CHOICES = ['enum', 'const', 'oneOf', 'anyOf'] as const

const BOUNDS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'] as const

const KINDS: Readonly<Record<JSONType, readonly string[]>> = {
  string: [...COMMON, 'minLength', 'maxLength', 'pattern', 'format', 'writeOnly', ...CHOICES],
  number: [...COMMON, ...BOUNDS, ...CHOICES],
  integer: [...COMMON, ...BOUNDS, ...CHOICES],
  boolean: COMMON,
}

type JSONType = 'string' | 'number' | 'integer' | 'boolean'

const ADVICE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    $ref: 'is not followed: write the schema inline; choices as "enum", or as "oneOf" of "const" and "title"',
    allOf: 'is not read: write the one schema inline',
    not: 'cannot be shown in a form; state the allowed values with a pattern, a range or choices',
    multipleOf: 'cannot be shown in a form; use type "integer", or check it in the function',
    properties: 'would be an object inside the object; inputs are flat',
    items: 'would be a list, which has no control; inputs are texts, numbers, booleans, choices and secrets',
  }),
)

/**
 * Reads one property into a field. What its values mean, such as whether the range is empty, is checked afterwards.
 * Throws `Refusal`.
 */
export function readField(name: string, json: unknown, required: boolean): InputField {
  const { schema, nullable } = withoutNull(json)
  if (nullable && required)
    refuse('', 'is required and may be null; a form cannot send null: take it out of "required", or take null out')
  const type = typeOf(schema)
  for (const keyword of Object.keys(schema))
    if (!KINDS[type].includes(keyword)) refuse(`/${keyword}`, ADVICE.get(keyword) ?? notAllowed(type))
  /* Null as a default is how some generators say that there is none. */
  const fallback = schema.default ?? undefined
  if (schema.default === null && required) refuse('/default', 'is null, which a form cannot send; leave it out')
  const named = {
    ...present({ title: schema.title, description: schema.description, default: fallback }),
    name,
    required: required && fallback === undefined,
  }
  return { ...named, ...rulesOf(type, schema) } as InputField
}

function notAllowed(type: JSONType): string {
  return `is not among the keywords of a ${type} that a form can show: ${KINDS[type].filter((keyword) => !IGNORED.includes(keyword)).join(', ')}`
}

/** `{"anyOf": [X, {"type": "null"}]}` and `{"type": ["string", "null"]}` are how generators write an optional value. */
function withoutNull(json: unknown): { readonly schema: Keywords; readonly nullable: boolean } {
  if (!isJSONObject(json)) return refuse('', 'must be an object: the schema of one input')
  const key = json.anyOf === undefined ? 'oneOf' : 'anyOf'
  const members: unknown = json[key]
  if (Array.isArray(members) && members.some(isNullType)) {
    const others: readonly unknown[] = members.filter((member) => !isNullType(member))
    const [only] = others
    const { [key]: _, ...rest } = json
    if (others.length === 1 && isJSONObject(only)) return { schema: { ...only, ...rest }, nullable: true }
    return { schema: { ...rest, [key]: others }, nullable: true }
  }
  if (Array.isArray(json.type) && json.type.length === 2 && json.type.includes('null')) {
    return { schema: { ...json, type: json.type.find((type) => type !== 'null') as unknown }, nullable: true }
  }
  return { schema: json, nullable: false }
}

function isNullType(member: unknown): boolean {
  return isJSONObject(member) && member.type === 'null' && Object.keys(member).length === 1
}

function typeOf(schema: Keywords): JSONType {
  const { type } = schema
  if (typeof type === 'string' && Object.hasOwn(KINDS, type)) return type as JSONType
  for (const keyword of ['$ref', 'allOf']) if (keyword in schema) refuse(`/${keyword}`, ADVICE.get(keyword) ?? '')
  const choices = CHOICES.find((keyword) => keyword in schema)
  if (type === undefined && choices !== undefined) return isNumeric(schema[choices]) ? 'number' : 'string'
  if (type === undefined) return refuse('/type', 'is missing; it must be "string", "number", "integer" or "boolean"')
  return refuse('/type', `is ${quote(JSON.stringify(type))}; it must be "string", "number", "integer" or "boolean"`)
}

function isNumeric(choices: unknown): boolean {
  const [first]: readonly unknown[] = Array.isArray(choices) ? choices : [choices]
  return typeof (isJSONObject(first) ? first.const : first) === 'number'
}

function rulesOf(type: JSONType, schema: Keywords): object {
  if (type === 'boolean') return { kind: 'boolean' }
  const choice = CHOICES.find((keyword) => keyword in schema)
  if (choice !== undefined) return { kind: 'select', options: readChoices(schema, choice, type) }
  if (type !== 'string') {
    return {
      kind: type,
      ...present({
        gt: schema.exclusiveMinimum,
        gte: schema.minimum,
        lt: schema.exclusiveMaximum,
        lte: schema.maximum,
      }),
    }
  }
  return {
    kind: isSecret(schema) ? 'secret' : 'text',
    ...present({ minLength: schema.minLength, maxLength: schema.maxLength, pattern: schema.pattern }),
  }
}

function isSecret({ format, writeOnly, default: fallback }: Keywords): boolean {
  if (format !== undefined && format !== 'password')
    refuse('/format', 'must be "password", which makes a secret; for anything else use a pattern')
  if (writeOnly !== undefined && writeOnly !== (format === 'password'))
    refuse('/writeOnly', 'belongs to secrets: {"type":"string","format":"password","writeOnly":true}')
  if (format === 'password' && fallback !== undefined && fallback !== null)
    refuse('/default', 'must be left out: everybody could read the default of a secret')
  return format === 'password'
}

type ChoiceType = Exclude<JSONType, 'boolean'>

function readChoices(schema: Keywords, keyword: (typeof CHOICES)[number], type: ChoiceType): readonly SelectChoice[] {
  for (const other of ['minLength', 'maxLength', 'pattern', 'format', 'writeOnly', ...BOUNDS, ...CHOICES]) {
    if (other !== keyword && other in schema)
      refuse(`/${other}`, `cannot be combined with "${keyword}": the choices already define the values`)
  }
  const choices: unknown = schema[keyword]
  if (keyword === 'const') return [{ value: choiceValue('/const', choices, type) }]
  if (!Array.isArray(choices)) return refuse(`/${keyword}`, 'must be a list')
  if (keyword === 'enum') return choices.map((value, index) => ({ value: choiceValue(`/enum/${index}`, value, type) }))
  return labelAll(choices.map((member, index) => readChoice(`/${keyword}/${index}`, member, type)))
}

/** If some choices have labels, the others show their value. */
function labelAll(choices: readonly SelectChoice[]): readonly SelectChoice[] {
  if (choices.every(({ label }) => label === undefined)) return choices
  return choices.map(({ value, label = String(value) }) => ({ value, label }))
}

function readChoice(path: string, member: unknown, type: ChoiceType): SelectChoice {
  if (!isJSONObject(member)) return refuse(path, 'must be an object with "const" and "title"')
  const foreign = Object.keys(member).find(
    (keyword) => !['const', 'title', 'type', 'description', ...IGNORED].includes(keyword),
  )
  if (foreign !== undefined)
    refuse(
      `${path}/${foreign}`,
      ADVICE.get(foreign) ?? 'makes this an alternative that no form can show; choices are "const" and "title"',
    )
  if (member.type !== undefined && (member.type === 'string') !== (type === 'string'))
    refuse(`${path}/type`, `must be "${type}", as that of the input`)
  const value = choiceValue(`${path}/const`, member.const, type)
  if (member.title !== undefined && typeof member.title !== 'string') refuse(`${path}/title`, 'must be a text')
  return { value, ...present({ label: member.title }) }
}

function choiceValue(path: string, value: unknown, type: ChoiceType): string | number {
  if (type === 'string')
    return typeof value === 'string'
      ? value
      : refuse(path, 'must be a text, as the type of the input says; titles say what choices mean')
  const isRight = typeof value === 'number' && Number.isFinite(value) && (type === 'number' || Number.isInteger(value))
  return isRight
    ? value
    : refuse(path, `must be ${type === 'integer' ? 'a whole number' : 'a number'}, as the type of the input says`)
}
