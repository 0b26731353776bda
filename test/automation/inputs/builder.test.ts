import assert from 'node:assert/strict'
import { test } from 'node:test'
import { format, inspect } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import {
  boolean,
  defineInputs,
  type Input,
  InputsError,
  integer,
  number,
  Secret,
  secret,
  select,
  type StandardInputs,
  text,
} from '../../../src/automation/index.ts'
import { INPUTS_LIMITS, resolveInputs } from '../../../src/automation/runtime/index.ts'

class Inputs extends defineInputs({
  projectName: text({ title: 'Project name', minLength: 1, maxLength: 100, pattern: /^[A-Z]+$/ }),
  tolerance: number({ default: 10, gt: 0, lt: 100 }),
  count: integer({ gte: 1, lte: 10, required: false }),
  includeAll: boolean({ default: false }),
  analysis: select({ Structural: 'structural', Thermal: 'thermal' }, { default: 'structural' }),
  apiKey: secret({ title: 'API key' }),
}) {
  get isStrict(): boolean {
    return this.tolerance < 1
  }
}

/** What `enum Unit { Millimetres = 'mm', Metres = 'm' }` and `enum Level { Low, High = 5, Top }` are when they run. */
const Unit = { Millimetres: 'mm', Metres: 'm' } as const
const Level = { 0: 'Low', 5: 'High', 6: 'Top', Low: 0, High: 5, Top: 6 } as const

test('an enum offers its members: people see the names, and the function receives the values', () => {
  const Inputs = defineInputs({ unit: select(Unit), level: select(Level, { default: Level.High }) })
  const { properties } = Inputs.toJSONSchema()
  assert.deepEqual(properties.unit, {
    type: 'string',
    oneOf: [
      { const: 'mm', title: 'Millimetres' },
      { const: 'm', title: 'Metres' },
    ],
  })
  assert.deepEqual(properties.level, {
    type: 'integer',
    oneOf: [
      { const: 0, title: 'Low' },
      { const: 5, title: 'High' },
      { const: 6, title: 'Top' },
    ],
    default: 5,
  })
  assert.deepEqual({ ...Inputs.parse({ unit: 'm' }) }, { unit: Unit.Metres, level: Level.High })
  assert.deepEqual({ ...Inputs.parse({ unit: 'm', level: 0 }) }, { unit: Unit.Metres, level: Level.Low })
  for (const wrong of [
    { unit: 'Metres' },
    { unit: 'm', level: 'Low' },
    { unit: 'm', level: '0' },
    { unit: 'm', level: 1 },
  ])
    assert.throws(() => Inputs.parse(wrong), { code: 'invalid_inputs' }, JSON.stringify(wrong))
})

test('only the reverse mapping of an enum is left out', () => {
  const options = (field: Input<unknown, unknown>): unknown =>
    defineInputs({ x: field }).toJSONSchema().properties.x.oneOf
  assert.deepEqual(options(select({ '1': 'one', '2': 'two' })), [
    { const: 'one', title: '1' },
    { const: 'two', title: '2' },
  ])
  assert.deepEqual(options(select({ One: 1, 'Minus one': -1 })), [
    { const: 1, title: 'One' },
    { const: -1, title: 'Minus one' },
  ])
})

test('inputs are instances of their class, with defaults filled in', () => {
  const inputs = Inputs.parse({ projectName: 'HOUSE', tolerance: 0.5, apiKey: 'key' })
  assert.ok(inputs instanceof Inputs)
  assert.equal(inputs.isStrict, true)
  assert.deepEqual(
    Object.fromEntries(
      Object.entries(inputs).map(([name, value]) => [name, value instanceof Secret ? value.reveal() : value]),
    ),
    {
      projectName: 'HOUSE',
      tolerance: 0.5,
      count: undefined,
      includeAll: false,
      analysis: 'structural',
      apiKey: 'key',
    },
  )
  assert.equal(new Inputs({ projectName: 'A', count: 3, apiKey: 'key' }).count, 3)
})

test('every wrong field has an issue, and no issue shows a value', () => {
  const json = {
    projectName: 'secret-name',
    tolerance: 100,
    count: 1.5,
    includeAll: 'yes-yes',
    analysis: 'acoustic',
    apiKey: ['key-123'],
    extra: 'extra-value',
  }
  assert.throws(
    () => Inputs.parse(json),
    (error) => {
      assert.ok(error instanceof InputsError)
      assert.deepEqual([error.code, error.statusCode], ['invalid_inputs', 400])
      assert.deepEqual(error.issues, [
        { path: 'projectName', message: 'must match the pattern ^[A-Z]+$' },
        { path: 'tolerance', message: 'must be less than 100' },
        { path: 'count', message: 'must be a whole number' },
        { path: 'includeAll', message: 'must be true or false' },
        { path: 'analysis', message: 'must be one of the choices' },
        { path: 'apiKey', message: 'must be a text' },
        { path: 'extra', message: 'is not an input of this function' },
      ])
      const printed = `${error.message}${JSON.stringify(error)}${inspect(error)}`
      for (const value of ['secret-name', 'yes-yes', 'acoustic', 'key-123', 'extra-value'])
        assert.ok(!printed.includes(value), value)
      return true
    },
  )
  for (const json of [null, undefined, [], 'text', 5])
    assert.throws(() => Inputs.parse(json), /the inputs must be an object/)
  assert.throws(() => Inputs.parse({ apiKey: 'k' }), /"projectName" is required/)
  assert.throws(
    () => Inputs.parse(JSON.parse('{"projectName":"A","apiKey":"k","__proto__":{"count":1}}')),
    /"__proto__" is not an input/,
  )
})

test('a message stays short, regardless of the input', () => {
  const json = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`${index}${'x'.repeat(1_000)}`, index]))
  assert.throws(
    () => Inputs.parse(json),
    (error: InputsError) => error.message.length < 2_000 && error.issues.length <= 20,
  )
})

test('a long text is refused before it is parsed', () => {
  const Form = defineInputs({ name: text({ required: false }), code: text({ pattern: /x/, required: false }) })
  assert.throws(() => Form.parse({ name: 'x'.repeat(INPUTS_LIMITS.textCharactersMax + 1) }), /at most 65536 characters/)
  assert.throws(
    () => Form.parse({ code: 'x'.repeat(INPUTS_LIMITS.patternTextCharactersMax + 1) }),
    /at most 4096 characters/,
  )
  assert.equal(
    Form.parse({ name: 'x'.repeat(INPUTS_LIMITS.textCharactersMax) }).name?.length,
    INPUTS_LIMITS.textCharactersMax,
  )
})

test('a secret reveals itself only on request', () => {
  const { apiKey } = Inputs.parse({ projectName: 'A', apiKey: 'hunter2' })
  assert.ok(apiKey instanceof Secret)
  assert.equal(apiKey.reveal(), 'hunter2')
  const untyped = apiKey as unknown as string
  for (const shown of [
    String(apiKey),
    `key ${untyped}`.slice(4),
    apiKey.toString(),
    format('%s', apiKey),
    inspect(apiKey),
  ])
    assert.equal(shown, '******')
  assert.equal(JSON.stringify({ apiKey }), '{"apiKey":"******"}')
  const copies: unknown[] = [
    structuredClone(apiKey),
    deserialize(serialize(apiKey)),
    Object.assign({}, apiKey),
    Object.getOwnPropertyNames(apiKey),
    new Error('x', { cause: apiKey }),
  ]
  for (const copy of copies) assert.ok(!inspect(copy, { showHidden: true, depth: 9 }).includes('hunter2'))
})

test('secret texts are known for redaction, even if the inputs are invalid', () => {
  const { secretTexts } = resolveInputs(Inputs)
  assert.deepEqual(secretTexts({ apiKey: 'hunter2', projectName: 'other' }), ['hunter2'])
  for (const json of [null, [], {}, { apiKey: '' }, { apiKey: 5 }]) assert.deepEqual(secretTexts(json), [])
})

const WRONG: readonly [
  name: string,
  fields: () => Readonly<Record<string, Input<unknown, unknown>>>,
  message: RegExp,
][] = [
  [
    'a default outside its range',
    () => ({ n: number({ default: 100, lt: 100 }) }),
    /input "n": default must be less than 100/,
  ],
  [
    'a default that is too short',
    () => ({ t: text({ default: '', minLength: 1 }) }),
    /default must have at least 1 character$/,
  ],
  ['a default that breaks the pattern', () => ({ t: text({ default: 'a', pattern: /^b$/ }) }), /default must match/],
  ['a broken default of a whole number', () => ({ i: integer({ default: 1.5 }) }), /default must be a whole number/],
  [
    'a default that is no choice',
    () => ({ s: select(['a'], { default: 'b' as 'a' }) }),
    /default must be one of the choices/,
  ],
  [
    'a default of another kind',
    () => ({ b: boolean({ default: 'yes' as unknown as boolean }) }),
    /default must be true or false/,
  ],
  [
    'a default beside required',
    () => ({ n: number({ default: 1, required: true }) }),
    /required makes no sense with a default/,
  ],
  [
    'a field of another library',
    () => ({ z: { type: 'string' } as unknown as Input<string, string> }),
    /input "z" must be made by text, number/,
  ],
  ['no field', () => ({ z: undefined as unknown as Input<string, string> }), /input "z" must be made by text, number/],
  ['no choices', () => ({ s: select([]) }), /options must hold at least one choice/],
  ['an empty choice', () => ({ s: select(['']) }), /options must not be empty/],
  [
    'a choice that no form can send',
    () => ({ s: select(['one\r\ntwo', 'three']) }),
    /options must be without control characters/,
  ],
  ['choices of two types', () => ({ s: select(['a', 1]) }), /options must be either all texts or all finite numbers/],
  ['a choice that is no number', () => ({ s: select([1, Number.NaN]) }), /all finite numbers/],
  ['choices twice', () => ({ s: select(['a', 'a']) }), /options must differ/],
  [
    'too many choices',
    () => ({ s: select(Array.from({ length: 1_001 }, String)) }),
    /holds 1001 choices; the limit is 1000/,
  ],
  ['gt at lt', () => ({ n: number({ gt: 1, lt: 1 }) }), /lt leaves no number/],
  ['gt above lt', () => ({ n: number({ gt: 2, lt: 1 }) }), /lt leaves no number/],
  ['gte above lte', () => ({ n: number({ gte: 2, lte: 1 }) }), /lte leaves no number/],
  ['gt at lte', () => ({ n: number({ gt: 1, lte: 1 }) }), /lte leaves no number/],
  ['no whole number between', () => ({ i: integer({ gt: 1, lt: 2 }) }), /lt leaves no whole number/],
  ['a bound that is no number', () => ({ n: number({ gt: Number.NaN }) }), /gt must be a finite number/],
  [
    'lengths crossed',
    () => ({ t: text({ minLength: 2, maxLength: 1 }) }),
    /minLength must not be greater than maxLength/,
  ],
  ['a length below 0', () => ({ t: text({ minLength: -1 }) }), /minLength must be a whole number, 0 or more/],
  [
    'a length that no text may have',
    () => ({ t: text({ minLength: 5_000, pattern: /x/ }) }),
    /minLength must be 4096 or less/,
  ],
  ['a pattern with flags', () => ({ t: text({ pattern: /a/i }) }), /pattern has the flag i/],
  ['a broken pattern', () => ({ t: text({ pattern: '(' }) }), /pattern "\(" is not a regular expression/],
  ['a pattern that looks around', () => ({ t: text({ pattern: /a(?=b)/ }) }), /pattern "a\(\?=b\)" uses lookaround/],
  [
    'a pattern that grows too large',
    () => ({ t: text({ pattern: '(a?){900}a{900}' }) }),
    /has 2702 steps; the limit is 2500/,
  ],
  [
    'patterns that are too large together',
    () => ({
      a: text({ pattern: '.{0,1000}a' }),
      b: text({ pattern: '.{0,1000}b' }),
      c: text({ pattern: '.{0,1000}c' }),
    }),
    /patterns of \d+ steps together/,
  ],
  ['a default of a secret', () => ({ s: secret({ default: 'x' } as object) }), /a secret cannot have a default/],
  [
    'an unknown option',
    () => ({ n: number({ minLength: 1 } as object) }),
    /number has no option "minLength"; it has title, description, required, default, gt, gte, lt, lte/,
  ],
  ['a title that is no text', () => ({ t: text({ title: 5 as unknown as string }) }), /title must be a text/],
  ['a long title', () => ({ t: text({ title: 'x'.repeat(201) }) }), /title has 201 characters; the limit is 200/],
  [
    'a name that objects have',
    () => ({ constructor: text() }),
    /input "constructor": has a name that every object has/,
  ],
  ['an empty name', () => ({ '': text() }), /needs a name of 1 to 100 characters/],
  [
    'too many fields',
    () => Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`f${index}`, text()])),
    /has 101 fields; the limit is 100/,
  ],
]

for (const [name, fields, message] of WRONG) {
  test(`refused at definition: ${name}`, () => {
    assert.throws(
      () => defineInputs(fields()),
      (error) => (error instanceof TypeError && message.test(error.message)) || assert.fail(String(error)),
    )
  })
}

test('a value that does not declare inputs is refused', () => {
  for (const source of [undefined, null, {}, Secret, () => 5] as unknown[])
    assert.throws(() => resolveInputs(source as StandardInputs), TypeError)
})
