import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { levelRenamer } from '../../../bench/functions/level-renamer.ts'
import { quantityTakeOff } from '../../../bench/functions/quantity-take-off.ts'
import { ruleChecker } from '../../../bench/functions/rule-checker.ts'
import {
  boolean,
  defineFunction,
  defineInputs,
  integer,
  number,
  secret,
  select,
  text,
} from '../../../src/automation/index.ts'
import { resolveInputs } from '../../../src/automation/runtime/index.ts'
import { automated, definition, waiting } from '../../automation-server/support.ts'
import { assertPlainForm } from './plain-form.ts'

const COMMON = [{}, { title: 'Title', description: 'Words "of" <people>' }, { required: false }] as const

/** Every kind with every one of its options, alone and together with all others. */
const FIELDS = COMMON.flatMap((common) => [
  ...[
    {},
    { minLength: 1 },
    { maxLength: 9 },
    { pattern: /^[A-Z]+$/ },
    { minLength: 1, maxLength: 9, pattern: '^[A-Z]*$' },
  ].flatMap((rules) => [text({ ...common, ...rules }), secret({ ...common, ...rules })]),
  ...[{}, { gt: 0 }, { gte: 0 }, { lt: 9 }, { lte: 9 }, { gt: 0, lt: 9 }, { gte: 0, lte: 9 }].flatMap((rules) => [
    number({ ...common, ...rules }),
    integer({ ...common, ...rules }),
  ]),
  boolean(common),
  select(['mm', 'm'], common),
  select({ Millimetres: 'mm', Metres: 'm' }, common),
])
const DEFAULTED = [
  text({ default: 'a', maxLength: 2 }),
  number({ default: 1.5, gt: 0 }),
  integer({ default: 1, lte: 3 }),
  boolean({ default: true }),
  select(['mm', 'm'], { default: 'm' }),
  select({ Millimetres: 'mm' }, { default: 'mm' }),
  select([1, 2.5]),
  select({ One: 1, Two: 2 }, { default: 2 }),
]

class AllKinds extends defineInputs(
  Object.fromEntries([...FIELDS, ...DEFAULTED].map((field, at) => [`field ${at}`, field])),
  { title: 'All', description: 'Of everything one' },
) {}

const FOREIGN = {
  zod: z.object({
    name: z
      .string()
      .min(1)
      .regex(/^[A-Z]/)
      .meta({ title: 'Name' }),
    tolerance: z.number().gt(0).default(3),
    count: z.int().optional(),
    all: z.boolean().default(false),
    unit: z.enum(['mm', 'm']),
    mode: z.union([z.literal('fast').meta({ title: 'Fast' }), z.literal('exact').meta({ title: 'Exact' })]),
    key: z.string().meta({ format: 'password', writeOnly: true }),
  }),
  valibot: toStandardJsonSchema(
    v.object({
      name: v.pipe(v.string(), v.minLength(1), v.title('Name')),
      tolerance: v.optional(v.pipe(v.number(), v.gtValue(0)), 3),
      unit: v.picklist(['mm', 'm']),
      whole: v.pipe(v.number(), v.integer()),
    }),
  ),
  arktype: type({ name: '1 <= string <= 5', 'tolerance?': 'number > 0', unit: "'mm' | 'm'", all: 'boolean' }),
}

test('a plain form can show the schema of every kind with every option', () => {
  for (const field of [...FIELDS, ...DEFAULTED]) assertPlainForm(defineInputs({ field }).toJSONSchema())
  assertPlainForm(AllKinds.toJSONSchema())
  assertPlainForm(defineInputs({}).toJSONSchema())
})

test('a plain form can show converted schemas of other libraries, and unconvertible ones are refused', () => {
  for (const source of Object.values(FOREIGN)) assertPlainForm(resolveInputs(source).toJSONSchema())
  for (const source of [
    z.object({ at: z.object({ x: z.number() }) }),
    z.object({ sizes: z.array(z.number()) }),
    z.object({ name: z.string().nullable() }),
    z.object({ either: z.union([z.string(), z.number()]) }),
  ]) {
    assert.throws(() => resolveInputs(source), { code: 'invalid_inputs_schema' })
  }
})

test('a plain form can show the schemas of the example functions', () => {
  for (const { inputs } of [levelRenamer, quantityTakeOff, ruleChecker]) assertPlainForm(inputs.toJSONSchema())
})

test('a plain form can show every schema that a server returns', async (t) => {
  const inProcess = Object.entries(FOREIGN).map(([id, source]) => ({
    id,
    release: '1',
    function: defineFunction(() => undefined, source, { name: id }),
  }))
  const { ask } = automated(t, {
    functions: [
      definition(waiting),
      { id: 'all', release: '1', function: defineFunction(() => undefined, AllKinds, { name: 'All' }) },
      ...inProcess,
    ],
  })
  const { items } = (await ask('GET', 'p/functions')).json as unknown as {
    readonly items: readonly { readonly id: string; readonly inputs: unknown }[]
  }
  assert.equal(items.length, 5)
  for (const { id, inputs } of items) {
    assertPlainForm(inputs)
    assert.deepEqual(
      ((await ask('GET', `p/functions/${id}`)).json as unknown as { readonly inputs: unknown }).inputs,
      inputs,
    )
  }
})

test('the check detects schemas that no plain form can show', () => {
  const { properties, ...root } = defineInputs({ name: text() }).toJSONSchema()
  const wrong: readonly object[] = [
    { $ref: '#/$defs/name' },
    { type: ['string', 'null'] },
    { anyOf: [{ type: 'string' }, { type: 'null' }] },
    { type: 'object', properties: {} },
    { type: 'array', items: { type: 'string' } },
    { type: 'string', format: 'uri' },
    { type: 'string', oneOf: [{ const: 'a' }] },
    { type: 'string', enum: ['a'], oneOf: [{ const: 'a', title: 'A' }] },
    { type: 'string', $comment: 'x' },
    { type: 'string', 'x-secret': true },
    { type: 'number', minLength: 1 },
    { type: 'string', format: 'password', writeOnly: true, default: 'x' },
  ]
  assertPlainForm({ ...root, properties })
  for (const name of wrong)
    assert.throws(() => assertPlainForm({ ...root, properties: { name } }), JSON.stringify(name))
  assert.throws(() => assertPlainForm({ ...root, properties, $defs: {} }))
})
