import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import * as fc from 'fast-check'
import {
  boolean,
  defineInputs,
  type Input,
  InputsError,
  integer,
  number,
  secret,
  select,
  text,
} from '../../../src/automation/index.ts'
import { inputsParser, inputsSchema, readInputsSchema } from '../../../src/automation/runtime/index.ts'
import { propertyRuns } from '../../support/runs.ts'

/** Ajv as a strict server runs it: unknown keywords and formats, and types that do not fit, are errors. */
const ajv = new Ajv2020({ strict: true, strictRequired: true, allErrors: true, formats: { password: true } })

function strictValidator(schema: object): ValidateFunction {
  return ajv.compile(schema)
}

const words = {
  title: fc.option(fc.string({ maxLength: 20 }), { nil: undefined }),
  description: fc.option(fc.string({ maxLength: 20 }), { nil: undefined }),
}
const required = fc.constantFrom(undefined, true, false)
const lengths = fc
  .tuple(fc.option(fc.nat(3), { nil: undefined }), fc.option(fc.integer({ min: 3, max: 6 }), { nil: undefined }))
  .map(([minLength, maxLength]) => ({ minLength, maxLength }))
const pattern = fc.constantFrom(undefined, undefined, /^[a-c]*$/, /\d/, '^.{0,4}$', /^\s/u)
const bounds = fc
  .record({
    low: fc.constantFrom('gt', 'gte', undefined),
    high: fc.constantFrom('lt', 'lte', undefined),
    from: fc.constantFrom(-2.5, -1, 0, 0.5),
    to: fc.constantFrom(2, 3.25, 1e3),
  })
  .map(({ low, high, from, to }) => ({ ...(low && { [low]: from }), ...(high && { [high]: to }) }))
const choice = fc.constantFrom('a', 'b', 'ä', 'constructor', 'x y', '1')
const labels = fc
  .uniqueArray(fc.tuple(fc.string({ minLength: 1, maxLength: 5 }), choice), {
    minLength: 1,
    selector: ([label]) => label,
  })
  .filter((entries) => new Set(entries.map(([, value]) => value)).size === entries.length)
  .map((entries) => Object.fromEntries(entries))
const numericChoice = fc.constantFrom(-2.5, 0, 1, 2, 1e3)
const numericChoices = fc.oneof(
  fc.uniqueArray(numericChoice, { minLength: 1 }),
  fc
    .uniqueArray(numericChoice, { minLength: 1 })
    .map((values) => Object.fromEntries(values.map((value) => [`label ${value}`, value]))),
)

const inputs: fc.Arbitrary<Input<unknown, unknown>> = fc.oneof(
  fc.record({ ...words, required, lengths, pattern }).map(({ lengths, ...rest }) => text({ ...rest, ...lengths })),
  fc.record({ ...words, required, lengths, pattern }).map(({ lengths, ...rest }) => secret({ ...rest, ...lengths })),
  fc.record({ ...words, required, bounds }).map(({ bounds, ...rest }) => number({ ...rest, ...bounds })),
  fc
    .record({ ...words, bounds, default: fc.constant(1) })
    .map(({ bounds, ...rest }) => integer({ ...rest, ...bounds })),
  fc.record({ ...words, required, bounds }).map(({ bounds, ...rest }) => integer({ ...rest, ...bounds })),
  fc.record({ ...words, default: fc.option(fc.boolean(), { nil: undefined }) }).map((options) => boolean(options)),
  fc
    .tuple(fc.uniqueArray(choice, { minLength: 1 }), fc.record({ ...words, required }))
    .map(([values, options]) => select(values, options)),
  labels.map((choices) => select(choices, { default: Object.values(choices)[0] })),
  numericChoices.map((choices) => select(choices)),
)
const names = fc.constantFrom('name', 'tolerance', 'größe', 'with space', 'a/b~c', '0')
const forms = fc.dictionary(names, inputs, { maxKeys: 5, noNullPrototype: true }).map((fields) => defineInputs(fields))

const texts = fc
  .array(fc.constantFrom('a', 'b', 'z', '1', ' ', '\u{1f600}', '\n'), { maxLength: 7 })
  .map((characters) => characters.join(''))
const values = fc.oneof(
  texts,
  choice,
  fc.constantFrom(-2.5, -1, 0, 0.5, 1, 2, 2.5, 3.25, 1e3, 1e300, -0),
  fc.integer(),
  fc.boolean(),
  fc.constantFrom(null, [], {}, ['a'], { a: 1 }),
)
const jsons = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.dictionary(
      fc.oneof({ weight: 20, arbitrary: names }, { weight: 1, arbitrary: fc.constant('other') }),
      values,
      { noNullPrototype: true },
    ),
  },
  { weight: 1, arbitrary: values },
)

test('every schema passes strict Ajv, and Ajv and parse agree on every value', () => {
  let accepted = 0
  fc.assert(
    fc.property(forms, fc.array(jsons, { minLength: 12, maxLength: 12 }), (Form, samples) => {
      const validate = strictValidator(Form.toJSONSchema())
      for (const json of samples) {
        const verdict = verdictOf(() => Form.parse(json))
        assert.equal(verdict, validate(json), JSON.stringify([Form.toJSONSchema(), json]))
        accepted += verdict ? 1 : 0
      }
    }),
    { numRuns: propertyRuns(60) },
  )
  assert.ok(accepted > 10)
})

test('Ajv and parse agree on values generated for the fields', () => {
  for (const [name, field, samples] of [
    [
      'text',
      text({ minLength: 2, maxLength: 3, pattern: /^[^x]+$/ }),
      ['a', 'ab', '\u{1f600}\u{1f600}', '\u{1f600}', 'abcd', '\u{1f600}\u{1f600}\u{1f600}', 'axb', 1, null],
    ],
    ['gt', number({ gt: 0, lt: 1 }), [0, 1, Number.MIN_VALUE, 0.5, '0.5', true]],
    ['gte', number({ gte: 0, lte: 1 }), [0, -0, 1, 1.0000000000000002, -Number.MIN_VALUE]],
    ['integer', integer({ gt: 0.5, lt: 3.5 }), [0, 1, 1.5, 3, 4, 1e300]],
    ['boolean', boolean(), [true, false, 'true', 0]],
    ['bare', select(['a', 'b']), ['a', 'A', '', 'constructor', null]],
    ['numbers', select([1, 2.5]), [1, 2.5, 2, '1', null]],
    ['whole numbers', select({ One: 1, Two: 2 }), [1, 2, 1.5, 'One', '2']],
    ['labelled', select({ A: 'a', B: 'b' }), ['a', 'A', 'b', ['a']]],
    ['secret', secret({ maxLength: 2 }), ['', 'ab', 'abc']],
  ] as const) {
    const Form = defineInputs({ [name]: field })
    const validate = strictValidator(Form.toJSONSchema())
    const verdicts = samples.map((value) => verdictOf(() => Form.parse({ [name]: value })))
    assert.deepEqual(
      verdicts,
      samples.map((value) => validate({ [name]: value })),
      name,
    )
    assert.equal(verdicts.includes(true) && verdicts.includes(false), true, name)
  }
})

test('a parsed schema describes the same inputs', () => {
  fc.assert(
    fc.property(forms, (Form) => {
      const schema: unknown = JSON.parse(JSON.stringify(Form.toJSONSchema()))
      const read = readInputsSchema(schema)
      assert.deepEqual(read, Form.description)
      assert.deepEqual(inputsSchema(read), schema)
    }),
    { numRuns: propertyRuns(100) },
  )
})

test('the schema describes each kind in keywords that form libraries know', () => {
  const { properties, ...root } = defineInputs(
    {
      name: text({ title: 'Name', description: 'Of the project', minLength: 1, maxLength: 100, pattern: /^[A-Z]+$/ }),
      tolerance: number({ default: 10, gt: 0, lt: 100 }),
      share: number({ gte: 0, lte: 1 }),
      count: integer({ gte: 1, required: false }),
      all: boolean({ default: false }),
      bare: select(['mm', 'm']),
      labelled: select({ Millimetres: 'mm', Metres: 'm' }, { default: 'm' }),
      key: secret({ title: 'Key' }),
    },
    { title: 'Check' },
  ).toJSONSchema()
  assert.deepEqual(root, {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    title: 'Check',
    required: ['name', 'share', 'bare', 'key'],
    additionalProperties: false,
  })
  assert.deepEqual(properties, {
    name: {
      type: 'string',
      title: 'Name',
      description: 'Of the project',
      minLength: 1,
      maxLength: 100,
      pattern: '^[A-Z]+$',
    },
    tolerance: { type: 'number', default: 10, exclusiveMinimum: 0, exclusiveMaximum: 100 },
    share: { type: 'number', minimum: 0, maximum: 1 },
    count: { type: 'integer', minimum: 1 },
    all: { type: 'boolean', default: false },
    bare: { type: 'string', enum: ['mm', 'm'] },
    labelled: {
      type: 'string',
      default: 'm',
      oneOf: [
        { const: 'mm', title: 'Millimetres' },
        { const: 'm', title: 'Metres' },
      ],
    },
    key: { type: 'string', format: 'password', writeOnly: true, title: 'Key' },
  })
})

test('validation with a parsed schema fills in defaults, and secrets stay texts', () => {
  const { description } = defineInputs({
    tolerance: number({ default: 10 }),
    note: text({ required: false }),
    key: secret(),
  })
  const parse = inputsParser(description)
  assert.deepEqual(parse({ key: 'k' }), { tolerance: 10, key: 'k' })
  assert.throws(() => parse({ key: 'k', note: null }), InputsError)
})

function verdictOf(parse: () => unknown): boolean {
  try {
    parse()
    return true
  } catch (error) {
    assert.ok(error instanceof InputsError)
    return false
  }
}
