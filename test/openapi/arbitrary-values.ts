import * as fc from 'fast-check'
import {
  ARTIFACT_ID,
  AUTOMATION_ID,
  FUNCTION_ID,
  MODEL_ID,
  RUN_ID,
  VERSION_ID,
} from '../../src/automation-server/schemas/openapi/examples.ts'
import type { Schema } from '../../src/openapi/description/types.ts'
import { type Conformance, isReference } from './conformance.ts'

/** Ids that are held, look like paths, markup or code, or are as long as can be. */
export const IDS: readonly string[] = [
  'root',
  'child0',
  'child1',
  'incomplete',
  'unknown',
  '.',
  '..',
  '../../etc/passwd',
  'a/b',
  '%2F',
  '%',
  '__proto__',
  'constructor',
  'single',
  ' ',
  '"\\',
  '{"id":1}',
  'ü€😀',
  '\ufffd',
  'x'.repeat(512),
  '€'.repeat(170),
  ':heartbeat',
  'a@0123456789abcdef0123456789abcdef',
  '[]',
  '<script>',
  'id,id',
  ';',
]

/** Ids of automation that stand for something. */
const KNOWN_IDS: readonly string[] = [MODEL_ID, VERSION_ID, AUTOMATION_ID, RUN_ID, ARTIFACT_ID, FUNCTION_ID]

const KEYS: readonly string[] = [
  'id',
  'referencedId',
  '__closure',
  'speckle_type',
  'children',
  '@x',
  '',
  '__proto__',
  'toString',
  'totalChildrenCount',
  'a b',
  'é',
]
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g // oxlint-disable-line no-control-regex

const text: fc.Arbitrary<string> = fc.oneof(fc.constantFrom(...IDS), fc.string({ unit: 'binary', maxLength: 20 }))
const members: fc.Arbitrary<Record<string, unknown>> = fc.dictionary(
  fc.oneof(fc.constantFrom(...KEYS.filter((key) => key !== 'id')), fc.string({ maxLength: 6 })),
  json(),
  { maxKeys: 4, noNullPrototype: true },
)

/** JSON values of any shape, with keys that mean something. */
function json(): fc.Arbitrary<unknown> {
  return fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.oneof(
        fc.constantFrom<unknown>(null, true, 0, -0, 1e308, 2 ** 53, ''),
        text,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
      ),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value
}

/** Values that a schema of the document allows. */
export function valuesOf(conformance: Conformance, given: Schema): fc.Arbitrary<unknown> {
  const schema = isReference(given) ? conformance.resolve<Schema>(given) : given
  const below = (one: Schema): fc.Arbitrary<unknown> => valuesOf(conformance, one)
  const choices = schema.oneOf ?? schema.anyOf
  if (choices !== undefined) return fc.oneof(...choices.map(below))
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.contentSchema !== undefined) return below(schema.contentSchema).map((value) => JSON.stringify(value))
  if (schema.type === 'array')
    return fc.array(below(schema.items ?? {}), {
      minLength: schema.minItems ?? 0,
      maxLength: Math.min(8, schema.maxItems ?? 8),
    })
  if (schema.type === 'object') return objectsOf(schema, below)
  if (schema.type === 'string') return stringsOf(schema)
  if (schema.type === 'integer') return fc.integer({ min: schema.minimum ?? -1_000, max: schema.maximum ?? 1_000 })
  if (schema.type === 'number')
    return fc.double({ min: schema.minimum ?? -1e9, max: schema.maximum ?? 1e9, noNaN: true })
  if (schema.type === 'boolean') return fc.boolean()
  if (schema.type === 'null') return fc.constant(null)
  return json()
}

/** Any JSON text, also such as no serializer writes. */
export const jsonTexts: fc.Arbitrary<string> = fc.oneof(
  json().map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '',
    '[',
    '{',
    '[]',
    '{}',
    'null',
    '1e999',
    '[1e400]',
    '-',
    '"\\ud800"',
    '[{"id":"\\ud800"}]',
    '[{"id":1}]',
    '[{"id":""}]',
    '{"objects":"["}',
    '{"objects":[1]}',
    '\ufeff[]',
    '[{"id":"a","id":"b"}]',
    '{"name":"a"}',
    '{"name":1}',
    '{"name":"a","name":"b"}',
    '{"inputs":null}',
    '{"inputs":[]}',
    '{"sequence":1e999}',
    '{"sequence":2,"annotations":[{}]}',
    '{"sequence":2,"status":"canceled"}',
    `{"inputs":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`,
    `{"sequence":2,"result":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`,
    '{"sequence":2,"logs":[{"atMs":0,"level":"info","message":"\\ud800\\u0000"}]}',
    '{"objectIds":[]}',
    '{"objectIds":["root"],"attributeMask":{}}',
    '{"objectIds":["root"],"more":1}',
    `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
    `[${'{"a":'.repeat(200)}1${'}'.repeat(200)}]`,
    `[{"id":"big","n":${'9'.repeat(1_000)}}]`,
    `{"objects":"${'x'.repeat(30_000)}"}`,
    `[${'{"n":1},'.repeat(1_100)}{"n":1}]`,
    `[{"id":"long","text":"${'x'.repeat(60_000)}"}]`,
  ),
)

function objectsOf(schema: Schema, below: (one: Schema) => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  if (schema.propertyNames !== undefined)
    return fc.dictionary(
      below(schema.propertyNames) as fc.Arbitrary<string>,
      below((schema.additionalProperties ?? {}) as Schema),
      { maxKeys: 3, noNullPrototype: true },
    )
  const known = Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, one]) => [name, below(one)]))
  const own = fc.record(known, { requiredKeys: [...(schema.required ?? [])] })
  return schema.additionalProperties === false
    ? own
    : fc.tuple(members, own).map(([more, needed]) => ({ ...more, ...needed }))
}

/** A pattern that begins with any text without some characters, and what follows that text. */
const TEXT_WITHOUT_SOME = /^\^\[\^[^\]]*\](?:[*+]|\{\d+,\d+\})(.*)\$$/

function stringsOf({ pattern, minLength = 0, maxLength = 512 }: Schema): fc.Arbitrary<string> {
  if (pattern === undefined) return text.filter((one) => one.length >= minLength && one.length <= maxLength)
  const known = KNOWN_IDS.filter((id) => new RegExp(pattern).test(id))
  const [, end] = TEXT_WITHOUT_SOME.exec(pattern) ?? []
  if (end === undefined)
    return fc.oneof(
      fc.stringMatching(new RegExp(pattern)),
      ...(known.length === 0 ? [] : [{ weight: 4, arbitrary: fc.constantFrom(...known) }]),
    )
  const beginnings = text.map((one) => Buffer.from(one.replaceAll(CONTROL, '')).toString())
  return fc
    .tuple(beginnings, end === '' ? fc.constant('') : fc.stringMatching(new RegExp(`^${end}$`)))
    .map((both) => both.join(''))
    .filter((one) => new RegExp(pattern).test(one) && one.length >= minLength && Buffer.byteLength(one) <= maxLength)
}
