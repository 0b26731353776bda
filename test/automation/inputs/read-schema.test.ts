import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { InputsError } from '../../../src/automation/index.ts'
import { readInputsSchema } from '../../../src/automation/runtime/index.ts'
import { propertyRuns } from '../../support/runs.ts'

function schemaOf(field: unknown, more: object = {}): object {
  return { type: 'object', properties: { x: field }, ...more }
}

const READ: readonly [name: string, schema: object, field: object][] = [
  [
    'an optional text of pydantic',
    schemaOf({ anyOf: [{ type: 'string', maxLength: 5 }, { type: 'null' }], default: null, title: 'X' }),
    { kind: 'text', required: false, maxLength: 5, title: 'X' },
  ],
  [
    'an optional text without null, as specklepy writes it',
    schemaOf({ type: 'string', default: null, title: 'X' }),
    { kind: 'text', required: false, title: 'X' },
  ],
  [
    'an optional number of Newtonsoft',
    schemaOf({ type: ['number', 'null'], minimum: 0 }),
    { kind: 'number', required: false, gte: 0 },
  ],
  [
    'a secret of pydantic',
    schemaOf({ type: 'string', format: 'password', writeOnly: true, title: 'Key' }, { required: ['x'] }),
    { kind: 'secret', required: true, title: 'Key' },
  ],
  ['a secret without writeOnly', schemaOf({ type: 'string', format: 'password' }), { kind: 'secret', required: false }],
  [
    'choices without a type',
    schemaOf({ enum: ['a', 'b'] }),
    { kind: 'select', required: false, options: [{ value: 'a' }, { value: 'b' }] },
  ],
  [
    'numbers of an enum, as zod writes them',
    schemaOf({ type: 'number', enum: [0, 1.5] }),
    { kind: 'select', required: false, options: [{ value: 0 }, { value: 1.5 }] },
  ],
  [
    'numbers with titles and no type',
    schemaOf({ oneOf: [{ const: 1, title: 'One', type: 'number' }, { const: 2 }] }),
    {
      kind: 'select',
      required: false,
      options: [
        { value: 1, label: 'One' },
        { value: 2, label: '2' },
      ],
    },
  ],
  ['one choice', schemaOf({ const: 'a' }), { kind: 'select', required: false, options: [{ value: 'a' }] }],
  [
    'alternatives that are choices',
    schemaOf({ anyOf: [{ const: 'a', title: 'A', type: 'string' }, { const: 'b' }, { type: 'null' }] }),
    {
      kind: 'select',
      required: false,
      options: [
        { value: 'a', label: 'A' },
        { value: 'b', label: 'b' },
      ],
    },
  ],
  [
    'an integer with both bounds',
    schemaOf({ type: 'integer', exclusiveMinimum: 0, maximum: 9, default: 3, examples: [4], deprecated: false }),
    { kind: 'integer', required: false, gt: 0, lte: 9, default: 3 },
  ],
  [
    'a required field with a default',
    schemaOf({ type: 'boolean', default: true }, { required: ['x'] }),
    { kind: 'boolean', required: false, default: true },
  ],
]

for (const [name, schema, field] of READ) {
  test(`read: ${name}`, () => assert.deepEqual(readInputsSchema(schema), { fields: [{ name: 'x', ...field }] }))
}

const REFUSED: readonly [schema: unknown, path: string, message: RegExp][] = [
  [null, '', /must be an object/],
  [{ type: 'array' }, '/type', /must be "object"/],
  [{ ...schemaOf({ type: 'string' }), $schema: 'http://json-schema.org/draft-07/schema#' }, '/$schema', /2020-12/],
  [{ ...schemaOf({ type: 'string' }), $defs: {} }, '/$defs', /inline/],
  [{ ...schemaOf({ type: 'string' }), allOf: [] }, '/allOf', /no form can show/],
  [
    { ...schemaOf({ type: 'string' }), additionalProperties: { type: 'string' } },
    '/additionalProperties',
    /true or false/,
  ],
  [schemaOf({ type: 'string' }, { required: ['y'] }), '/required', /names "y"/],
  [schemaOf({ type: 'string' }, { required: 'x' }), '/required', /list of names/],
  [schemaOf(true), '/properties/x', /must be an object/],
  [schemaOf({ $ref: '#/$defs/Color' }), '/properties/x/$ref', /inline; choices as "enum"/],
  [schemaOf({ allOf: [{ $ref: '#/$defs/Color' }], default: 'red' }), '/properties/x/allOf', /inline/],
  [schemaOf({ anyOf: [{ $ref: '#/$defs/Color' }, { type: 'null' }] }), '/properties/x/$ref', /inline/],
  [schemaOf({ anyOf: [{ type: 'string' }, { type: 'number' }] }), '/properties/x/anyOf/0/const', /must be a text/],
  [
    schemaOf({ anyOf: [{ type: 'string' }, { type: 'null' }] }, { required: ['x'] }),
    '/properties/x',
    /cannot send null/,
  ],
  [
    schemaOf({ oneOf: [{ const: 'a', pattern: 'x' }] }),
    '/properties/x/oneOf/0/pattern',
    /alternative that no form can show/,
  ],
  [
    schemaOf({ type: 'string', enum: ['a'], oneOf: [{ const: 'a' }] }),
    '/properties/x/oneOf',
    /cannot be combined with "enum"/,
  ],
  [schemaOf({ enum: [1, 'a'] }), '/properties/x/enum/1', /must be a number/],
  [schemaOf({ enum: ['a', 1] }), '/properties/x/enum/1', /must be a text/],
  [schemaOf({ type: 'integer', enum: [1.5] }), '/properties/x/enum/0', /must be a whole number/],
  [
    schemaOf({ type: 'array', items: { type: 'string' } }),
    '/properties/x/type',
    /must be "string", "number", "integer" or "boolean"/,
  ],
  [schemaOf({ type: 'object', properties: {} }), '/properties/x/type', /must be "string"/],
  [schemaOf({}), '/properties/x/type', /is missing/],
  [schemaOf({ type: 'constructor' }), '/properties/x/type', /must be "string"/],
  [schemaOf({ type: 'number', multipleOf: 2 }), '/properties/x/multipleOf', /cannot be shown/],
  [schemaOf({ type: 'number', constructor: 2 }), '/properties/x/constructor', /not among the keywords of a number/],
  [schemaOf({ type: 'number', minLength: 2 }), '/properties/x/minLength', /not among the keywords of a number/],
  [schemaOf({ type: 'number', minimum: '2' }), '/properties/x/minimum', /finite number/],
  [
    schemaOf({ type: 'number', exclusiveMinimum: 2, exclusiveMaximum: 2 }),
    '/properties/x/exclusiveMaximum',
    /leaves no number/,
  ],
  [schemaOf({ type: 'string', 'x-enumNames': [] }), '/properties/x/x-enumNames', /not among the keywords/],
  [schemaOf({ type: 'string', format: 'email' }), '/properties/x/format', /use a pattern/],
  [schemaOf({ type: 'string', writeOnly: true }), '/properties/x/writeOnly', /belongs to secrets/],
  [
    schemaOf({ type: 'string', format: 'password', default: '**********' }),
    '/properties/x/default',
    /must be left out/,
  ],
  [schemaOf({ type: 'string', pattern: '(?=a)' }), '/properties/x/pattern', /lookaround/],
  [schemaOf({ type: 'string', pattern: 5 }), '/properties/x/pattern', /must be a text/],
  [schemaOf({ type: 'string', default: 5 }), '/properties/x/default', /must be a text/],
  [schemaOf({ enum: [] }), '/properties/x/enum', /at least one choice/],
  [schemaOf({ type: 'string', title: {} }), '/properties/x/title', /must be a text/],
  [{ type: 'object', properties: { 'a/b~c': { type: 'null' } } }, '/properties/a~1b~0c/type', /must be "string"/],
  [
    JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'),
    '/properties/__proto__',
    /every object has already/,
  ],
  [{ type: 'object', properties: {}, title: 'x'.repeat(300_000) }, '', /bytes of JSON; the limit is 262144/],
  [
    {
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`f${index}`, { type: 'string' }])),
    },
    '/properties',
    /has 101 inputs/,
  ],
]

test('every refusal names the path, the keyword and the right form', () => {
  for (const [schema, path, message] of REFUSED) {
    assert.throws(
      () => readInputsSchema(schema),
      (error) => {
        assert.ok(error instanceof InputsError, String(error))
        assert.equal(error.code, 'invalid_inputs_schema')
        assert.deepEqual(
          error.issues.map((issue) => issue.path),
          [path],
        )
        assert.match(error.issues[0].message, message)
        return true
      },
    )
  }
})

test('all fields are checked before anything is refused', () => {
  const schema = { type: 'object', properties: { a: { $ref: '#' }, b: { type: 'string' }, c: { type: 'null' } } }
  assert.throws(
    () => readInputsSchema(schema),
    (error: InputsError) => error.issues.map(({ path }) => path).join() === '/properties/a/$ref,/properties/c/type',
  )
})

test('any input yields a description or an InputsError', () => {
  const keyword = fc.constantFrom(
    'type',
    'title',
    'default',
    'enum',
    'const',
    'oneOf',
    'anyOf',
    'format',
    'writeOnly',
    'pattern',
    'minLength',
    'minimum',
    '$ref',
    'constructor',
    '__proto__',
  )
  const value = fc.oneof(
    fc.constantFrom(
      'string',
      'number',
      'null',
      'password',
      true,
      null,
      0,
      -1,
      [],
      {},
      ['a'],
      [{ const: 'a' }],
      [{ type: 'null' }],
      [null],
      ['string', 'null'],
    ),
    fc.jsonValue({ maxDepth: 2 }),
  )
  const field = fc.oneof(fc.dictionary(keyword, value), value)
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), field, { maxKeys: 3 }),
      fc.oneof(value, fc.constant([])),
      (properties, required) => {
        try {
          readInputsSchema({ type: 'object', properties, required })
        } catch (error) {
          assert.ok(error instanceof InputsError, String(error))
        }
      },
    ),
    { numRuns: propertyRuns(1_000) },
  )
})

test('a value that is not JSON is refused', () => {
  const cycle: Record<string, unknown> = { type: 'object' }
  cycle.properties = { cycle }
  assert.throws(() => readInputsSchema(cycle), /is not JSON/)
})
