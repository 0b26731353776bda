import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  boolean,
  defineInputs,
  type InputsError,
  integer,
  number,
  secret,
  select,
  text,
} from '../../../src/automation/index.ts'
import { fromFormValues, inputsParser, isThreeState } from '../../../src/automation/runtime/index.ts'
import { propertyRuns } from '../../support/runs.ts'

const { description } = defineInputs({
  name: text({ maxLength: 5 }),
  share: number({ default: 0.5 }),
  count: integer({ required: false }),
  all: boolean(),
  open: boolean({ required: false }),
  unit: select(['mm', 'm'], { required: false }),
  key: secret(),
})

function jsonOf(query: string): object {
  return fromFormValues(description, new URLSearchParams(query)).json
}

test('a form converts each value to its type', () => {
  const sent = 'name=Wall&share=0.25&count=3&all=on&open=false&unit=mm&key=k&other=1&__proto__=1'
  assert.deepEqual(fromFormValues(description, new URLSearchParams(sent)), {
    json: { name: 'Wall', share: 0.25, count: 3, all: true, open: false, unit: 'mm', key: 'k' },
    emptySecrets: [],
  })
})

test('an empty text is no value, and an empty checkbox is false where that is the only meaning', () => {
  assert.deepEqual(fromFormValues(description, new URLSearchParams('name=&share=+&count=&unit=&open=')), {
    json: { all: false },
    emptySecrets: ['key'],
  })
  assert.deepEqual(fromFormValues(description, []), { json: { all: false }, emptySecrets: ['key'] })
  assert.deepEqual(
    description.fields.filter(isThreeState).map(({ name }) => name),
    ['open'],
  )
})

test('numbers accept only the syntax that people write', () => {
  const numbers: Readonly<Record<string, number>> = {
    '1': 1,
    ' 1 ': 1,
    '-1.5': -1.5,
    '+2': 2,
    '007': 7,
    '.5': 0.5,
    '5.': 5,
    '1e3': 1_000,
    '1E-2': 0.01,
  }
  for (const [sent, value] of Object.entries(numbers))
    assert.deepEqual(fromFormValues(description, [['share', sent]]).json.share, value, sent)
  for (const sent of ['1,5', '0x10', '1e999', 'NaN', 'Infinity', '1 000', '--1', '.', '1_000', '１']) {
    const { json } = fromFormValues(description, [['share', sent]])
    assert.equal(json.share, sent)
    assert.throws(
      () => inputsParser(description)({ name: 'x', all: true, key: 'k', ...json }),
      (error: InputsError) => error.issues.map(({ message }) => message).join() === 'must be a number',
    )
  }
})

test('the last of several values with one name counts, but all files do', () => {
  assert.deepEqual(jsonOf('all=false&all=true'), { all: true })
  assert.deepEqual(
    fromFormValues(description, [
      ['name', 'a'],
      ['name', new Uint8Array(1)],
    ]).json,
    { name: 'a', all: false },
  )
})

test('line ends become line feeds', () => {
  assert.deepEqual(fromFormValues(description, [['name', 'a\r\nb']]).json.name, 'a\nb')
})

test('valid inputs survive a form unchanged', () => {
  const Form = defineInputs({
    name: text({ required: false }),
    share: number(),
    count: integer({ gte: -5 }),
    all: boolean(),
    unit: select({ A: 'a', B: 'b' }),
    level: select([0, 1, 2.5]),
  })
  const inputs = fc.record(
    {
      name: fc.string({ minLength: 1, unit: 'grapheme' }).filter((name) => !name.includes('\r')),
      share: fc.double({ noNaN: true, noDefaultInfinity: true }).map((share) => share + 0),
      count: fc.integer({ min: -5 }),
      all: fc.boolean(),
      unit: fc.constantFrom('a' as const, 'b' as const),
      level: fc.constantFrom(0 as const, 1 as const, 2.5 as const),
    },
    { noNullPrototype: true },
  )
  fc.assert(
    fc.property(inputs, (given) => {
      const sent = new URLSearchParams(
        Object.entries(given).map(([name, value]): [string, string] => [name, String(value)]),
      )
      assert.deepEqual({ ...Form.parse(fromFormValues(Form.description, sent).json) }, given)
    }),
    { numRuns: propertyRuns(200) },
  )
})
