import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { defineInputs, InputsError, number, type StandardInputs, text } from '../../../src/automation/index.ts'
import { resolveInputs } from '../../../src/automation/runtime/index.ts'

const zodInputs = z.object({
  name: z
    .string()
    .min(1)
    .max(5)
    .regex(/^[A-Z]/)
    .meta({ title: 'Name', description: 'Of the project' }),
  tolerance: z.number().gt(0).default(3),
  count: z.int().optional(),
  all: z.boolean().default(false),
  unit: z.enum(['mm', 'm']),
  mode: z.union([z.literal('fast').meta({ title: 'Fast' }), z.literal('exact').meta({ title: 'Exact' })]),
  key: z.string().meta({ format: 'password', writeOnly: true }),
})

const valibotInputs = toStandardJsonSchema(
  v.object({
    name: v.pipe(v.string(), v.minLength(1), v.maxLength(5), v.title('Name')),
    tolerance: v.optional(v.pipe(v.number(), v.gtValue(0)), 3),
    unit: v.picklist(['mm', 'm']),
  }),
)

test('a zod schema yields the same description, schema and values', async () => {
  const inputs = resolveInputs(zodInputs)
  assert.deepEqual(
    inputs.description.fields.map(({ name, kind, required }) => `${name} ${kind} ${required}`),
    [
      'name text true',
      'tolerance number false',
      'count integer false',
      'all boolean false',
      'unit select true',
      'mode select true',
      'key secret true',
    ],
  )
  assert.deepEqual(inputs.description.fields[5], {
    name: 'mode',
    kind: 'select',
    required: true,
    options: [
      { value: 'fast', label: 'Fast' },
      { value: 'exact', label: 'Exact' },
    ],
  })
  const json = { name: 'A', unit: 'mm', mode: 'fast', key: 'hunter2' }
  assert.deepEqual(await inputs.parse(json), { ...json, tolerance: 3, all: false })
  assert.deepEqual(inputs.secretTexts(json), ['hunter2'])
  assert.deepEqual(inputs.toJSONSchema().required, ['name', 'unit', 'mode', 'key'])
  await assert.rejects(
    inputs.parse({ ...json, tolerance: 0 }),
    (error: InputsError) => error.issues[0].message === 'must be greater than 0',
  )
})

test('schemas of arktype and valibot are accepted', async () => {
  const ark = resolveInputs(type({ name: '1 <= string <= 5', 'tolerance?': 'number > 0', unit: "'mm' | 'm'" }))
  assert.deepEqual(await ark.parse({ name: 'A', unit: 'm' }), { name: 'A', unit: 'm' })
  await assert.rejects(ark.parse({ name: 'ABCDEF', unit: 'm' }), /"name" must have at most 5 characters/)
  const valibot = resolveInputs(valibotInputs)
  assert.deepEqual(await valibot.parse({ name: 'A', unit: 'm' }), { name: 'A', unit: 'm', tolerance: 3 })
  await assert.rejects(valibot.parse({ name: 'A', unit: 'km' }), /"unit" must be one of the choices/)
})

test('rules that only the schema knows are kept, unless they quote a value', async () => {
  const inputs = resolveInputs(
    z
      .object({ low: z.number(), high: z.number(), key: z.string().meta({ format: 'password', writeOnly: true }) })
      .refine(({ low, high }) => low < high, { path: ['high'], message: 'must be above the lower bound' })
      .refine(({ key }) => key !== 'hunter2', {
        path: ['key'],
        error: ({ input }) => `do not use ${(input as { key: string }).key}`,
      }),
  )
  await assert.rejects(inputs.parse({ low: 2, high: 1, key: 'a key' }), (error) => {
    assert.deepEqual((error as InputsError).issues, [{ path: 'high', message: 'must be above the lower bound' }])
    return true
  })
  await assert.rejects(inputs.parse({ low: 1, high: 2, key: 'hunter2' }), (error) => {
    assert.deepEqual((error as InputsError).issues, [
      { path: 'key', message: 'is refused by the rules of the function' },
    ])
    return true
  })
})

test('the function receives the values that the schema returns', async () => {
  const inputs = resolveInputs(z.object({ names: z.string().transform((names) => names.split(',')) }))
  assert.deepEqual(await inputs.parse({ names: 'a,b' }), { names: ['a', 'b'] })
})

test('a schema that no form can show is refused, regardless of its library', () => {
  const schemas: readonly [StandardInputs, RegExp][] = [
    [z.object({ tags: z.array(z.string()) }), /"\/properties\/tags\/type" is .*array/],
    [z.object({ address: z.object({ street: z.string() }) }), /"\/properties\/address\/type" is .*object/],
    [z.object({ mail: z.email() }), /"\/properties\/mail\/format" must be "password"/],
    [z.object({ even: z.number().multipleOf(2) }), /"\/properties\/even\/multipleOf"/],
    [type({ size: "1 | 'a'" }), /"\/properties\/size\/enum\/0" must be a|"\/properties\/size\/enum\/1" must be a/],
    [z.string() as unknown as StandardInputs, /"\/type" must be "object"/],
  ]
  for (const [schema, message] of schemas)
    assert.throws(
      () => resolveInputs(schema),
      (error) => (error instanceof InputsError && message.test(error.message)) || assert.fail(String(error)),
    )
})

test('a schema without a JSON Schema is refused with a remedy', () => {
  assert.throws(
    () => resolveInputs(v.object({ name: v.string() }) as unknown as StandardInputs),
    /"valibot" offers no JSON Schema .* toStandardJsonSchema/,
  )
  assert.throws(() => resolveInputs(z.object({ when: z.date() })), /"zod" cannot be written as JSON Schema/)
})

test('a class resolves to itself', async () => {
  class Inputs extends defineInputs({ name: text(), tolerance: number({ default: 1 }) }) {}
  const inputs = resolveInputs(Inputs)
  assert.equal(inputs.description, Inputs.description)
  assert.deepEqual(inputs.toJSONSchema(), Inputs.toJSONSchema())
  assert.ok((await inputs.parse({ name: 'x' })) instanceof Inputs)
  await assert.rejects(inputs.parse({}), InputsError)
})
