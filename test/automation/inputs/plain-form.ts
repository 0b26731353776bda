import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'

/** Ajv as a strict server runs it. */
const ajv = new Ajv2020({
  strict: true,
  strictRequired: true,
  strictTypes: true,
  strictTuples: true,
  allErrors: true,
  formats: { password: true },
})

const WORDS = ['title', 'description', 'default'] as const
const ROOT_KEYWORDS: ReadonlySet<string> = new Set([
  '$schema',
  'type',
  'title',
  'description',
  'properties',
  'required',
  'additionalProperties',
])
/** What a renderer of forms that knows nothing but the six kinds can show, for each type. */
const KEYWORDS: Readonly<Record<string, ReadonlySet<string> | undefined>> = {
  string: new Set(['type', ...WORDS, 'minLength', 'maxLength', 'pattern', 'enum', 'oneOf', 'format', 'writeOnly']),
  number: new Set(['type', ...WORDS, 'exclusiveMinimum', 'minimum', 'exclusiveMaximum', 'maximum', 'enum', 'oneOf']),
  integer: new Set(['type', ...WORDS, 'exclusiveMinimum', 'minimum', 'exclusiveMaximum', 'maximum', 'enum', 'oneOf']),
  boolean: new Set(['type', ...WORDS]),
}

type Json = Readonly<Record<string, unknown>>

/**
 * Asserts that a schema passes strict validators, and that every control of it is one that a plain form has: no
 * references, no unions, nothing within something.
 */
export function assertPlainForm(given: unknown): void {
  const schema = JSON.parse(JSON.stringify(given)) as Json & {
    readonly properties: Readonly<Record<string, Json>>
    readonly required: readonly string[]
  }
  const where = JSON.stringify(schema)
  assert.equal(ajv.validateSchema(schema), true, where)
  ajv.compile(schema)
  assert.deepEqual(
    [schema.$schema, schema.type, schema.additionalProperties],
    ['https://json-schema.org/draft/2020-12/schema', 'object', false],
    where,
  )
  assert.deepEqual(
    Object.keys(schema).filter((keyword) => !ROOT_KEYWORDS.has(keyword)),
    [],
    where,
  )
  assert.deepEqual(
    schema.required.filter((name) => !Object.hasOwn(schema.properties, name)),
    [],
    where,
  )
  for (const [name, field] of Object.entries(schema.properties)) assertControl(field, `${name} of ${where}`)
}

function assertControl(field: Json, where: string): void {
  const { type } = field
  assert.ok(typeof type === 'string', where)
  assert.deepEqual(
    Object.keys(field).filter((keyword) => KEYWORDS[type]?.has(keyword) !== true),
    [],
    where,
  )
  assert.ok(field.enum === undefined || field.oneOf === undefined, where)
  for (const choice of (field.oneOf ?? []) as readonly Json[])
    assert.deepEqual(
      [Object.keys(choice).toSorted((a, b) => (a < b ? -1 : 1)), typeof choice.const, typeof choice.title],
      [['const', 'title'], type === 'string' ? 'string' : 'number', 'string'],
      where,
    )
  for (const choice of (field.enum ?? []) as readonly unknown[])
    assert.equal(typeof choice, type === 'string' ? 'string' : 'number', where)
  if (field.format !== undefined)
    assert.deepEqual([field.format, field.writeOnly, field.default], ['password', true, undefined], where)
}
