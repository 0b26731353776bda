import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { automation } from '../../src/automation-server/index.ts'
import {
  boolean,
  defineFunction,
  defineInputs,
  type FunctionBody,
  type Input,
  type InputsIssue,
  type InputsSource,
  integer,
  type JsonObject,
  number,
  Secret,
  secret,
  select,
  text,
} from '../../src/automation/index.ts'
import { fromFormValues, readInputsSchema } from '../../src/automation/runtime/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { PROJECT } from './automated.ts'
import { openServers } from '../support/several-servers.ts'

/* The contract, area B, row by row: inputs. What a server tells of them, what it refuses, and what the function gets. */

interface Served {
  /** As the server tells it. */
  readonly schema: {
    readonly required?: readonly string[]
    readonly properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  }
  /** What the server has against these inputs. */
  readonly issues: (inputs: JsonObject) => Promise<readonly InputsIssue[]>
  /** What the function gets of these inputs. */
  readonly given: (inputs: JsonObject) => Promise<Readonly<Record<string, unknown>>>
}

async function served(t: TestContext, Inputs: InputsSource): Promise<Served> {
  let given: object = {}
  const body = (_: unknown, inputs: object): void => {
    given = { ...inputs }
  }
  const registered = defineFunction(body as FunctionBody<unknown>, Inputs, { defaultStatus: 'success' })
  const { extension, service } = openServers((backend) => {
    const extension = automation({
      functions: [{ id: 'f', release: '1', function: registered }],
      secretKeys: [{ id: 'key', key: new Uint8Array(32) }],
    })
    return { extension, service: createObjectService({ backend, access: openAccess(), extensions: [extension] }) }
  })
  t.after(() => service.close({ graceMs: 100 }))
  const ask = async <T>(path: string, body?: object): Promise<T> => {
    const init =
      body === undefined
        ? {}
        : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
    return (
      await service.fetch(new Request(`http://x/api/v1/projects/${PROJECT}/functions/f${path}`, init))
    ).json() as Promise<T>
  }
  const { models, versions, automations, runs } = extension.project(PROJECT)
  return {
    schema: (await ask<{ inputs: Served['schema'] }>('')).inputs,
    issues: async (inputs) => (await ask<{ issues: readonly InputsIssue[] }>('/validate', { inputs })).issues,
    given: async (inputs) => {
      await service.project(PROJECT).upload(oneChunk('[{"id":"root"}]'), 'application/json')
      const { id: modelId } = await models.create({ name: 'House' })
      await versions.create(modelId, { rootObjectId: 'root', message: '' })
      const { id } = await runs.start(
        (await automations.create({ name: 'a', functionId: 'f', modelId, inputs, trigger: 'manual' })).id,
      )
      await extension.idle()
      const { status, message } = await runs.get(id)
      assert.equal(status, 'succeeded', message ?? '')
      return given as Readonly<Record<string, unknown>>
    },
  }
}

async function* oneChunk(json: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(json)
}

/** One field, called `x`. */
const one = (field: Input<unknown, unknown>): InputsSource => class extends defineInputs({ x: field }) {}

test('"Inputs are declared on an inputs class and generate a form in the web interface"', async (t) => {
  class Inputs extends defineInputs({ name: text(), tolerance: number({ default: 10 }), strict: boolean() }) {}
  const { schema, given } = await served(t, Inputs)
  const form = readInputsSchema(schema)
  assert.deepEqual(
    form.fields.map(({ name, kind }) => [name, kind]),
    [
      ['name', 'text'],
      ['tolerance', 'number'],
      ['strict', 'boolean'],
    ],
  )
  const { json } = fromFormValues(form, [
    ['name', 'a house'],
    ['tolerance', '2.5'],
    ['strict', 'on'],
  ])
  assert.deepEqual(await given(json as JsonObject), { name: 'a house', tolerance: 2.5, strict: true })
})

for (const [row, field, schema, good, wrong] of [
  ['Text: str, string; "names, descriptions, ids"', text(), { type: 'string' }, 'a name', [7, true, null]],
  ['Number: float, double; "measurements, thresholds"', number(), { type: 'number' }, 0.25, ['0.25', null, true]],
  ['Integer: int; "counts, indices"', integer(), { type: 'integer' }, 3, [3.5, '3', null]],
  ['Boolean: bool; "toggles"', boolean(), { type: 'boolean' }, true, ['true', 1, null]],
  [
    'Selection: Enum; "choose from options"',
    select(['mm', 'm']),
    { type: 'string', enum: ['mm', 'm'] },
    'm',
    ['km', 'M', 1],
  ],
] as const) {
  test(`Inputs, ${row}`, async (t) => {
    const { schema: told, issues, given } = await served(t, one(field))
    assert.deepEqual(told.properties.x, schema)
    assert.deepEqual(await given({ x: good }), { x: good })
    for (const x of wrong)
      assert.deepEqual(
        (await issues({ x })).map(({ path }) => path),
        ['x'],
        JSON.stringify(x),
      )
  })
}

test('Inputs, Secret: SecretStr, [Secret]; "API keys, passwords"', async (t) => {
  const { schema, issues, given } = await served(t, one(secret()))
  assert.deepEqual(schema.properties.x, { type: 'string', format: 'password', writeOnly: true })
  const { x } = await given({ x: 'swordfish' })
  assert.ok(x instanceof Secret)
  assert.deepEqual([x.reveal(), String(x)], ['swordfish', '******'])
  assert.deepEqual(
    (await issues({ x: 7 })).map(({ path }) => path),
    ['x'],
  )
})

test('"Input fields carry a title and a description ... and may carry a default"', async (t) => {
  const { schema, given } = await served(
    t,
    one(integer({ title: 'Count', description: 'How many there may be', default: 3 })),
  )
  assert.deepEqual(schema.properties.x, {
    type: 'integer',
    title: 'Count',
    description: 'How many there may be',
    default: 3,
  })
  assert.deepEqual(await given({}), { x: 3 })
})

test('Validation, Required: "Field(...), [Required]"', async (t) => {
  const { schema, issues } = await served(t, one(text()))
  assert.deepEqual(
    [schema.required, (await issues({})).map(({ path, message }) => [path, message])],
    [['x'], [['x', 'is required']]],
  )
  const optional = await served(t, one(text({ required: false })))
  assert.deepEqual([optional.schema.required ?? [], await optional.issues({})], [[], []])
})

for (const [row, field, schema, good, wrong] of [
  [
    'String length: "min_length, max_length"',
    text({ minLength: 2, maxLength: 4 }),
    { minLength: 2, maxLength: 4 },
    ['ab', 'abcd', 'ä👍'],
    ['a', 'abcde'],
  ],
  [
    'Number range: "gt, lt"',
    number({ gt: 0, lt: 100 }),
    { exclusiveMinimum: 0, exclusiveMaximum: 100 },
    [0.001, 99.999],
    [0, 100, -1],
  ],
  ['Number range: "[Range(min, max)]"', integer({ gte: 1, lte: 10 }), { minimum: 1, maximum: 10 }, [1, 10], [0, 11]],
  [
    'Pattern (regex): "pattern, [RegularExpression]"',
    text({ pattern: /^[A-Z]+$/ }),
    { pattern: '^[A-Z]+$' },
    ['AB'],
    ['ab', 'A1'],
  ],
] as const) {
  test(`Validation, ${row}`, async (t) => {
    const { schema: told, issues } = await served(t, one(field))
    assert.deepEqual({ ...told.properties.x, type: '' }, { ...schema, type: '' })
    for (const x of good) assert.deepEqual(await issues({ x }), [], JSON.stringify(x))
    for (const x of wrong)
      assert.deepEqual(
        (await issues({ x })).map(({ path }) => path),
        ['x'],
        JSON.stringify(x),
      )
  })
}

test('"Selection inputs are enumerations whose members carry string values (Python) or descriptive labels (C#)"', async (t) => {
  const { schema, issues, given } = await served(
    t,
    one(select({ 'Structural analysis': 'structural', Thermal: 'thermal' }, { default: 'thermal' })),
  )
  assert.deepEqual(schema.properties.x.oneOf, [
    { const: 'structural', title: 'Structural analysis' },
    { const: 'thermal', title: 'Thermal' },
  ])
  assert.deepEqual([await given({ x: 'structural' }), await given({})], [{ x: 'structural' }, { x: 'thermal' }])
  assert.deepEqual(
    (await issues({ x: 'Thermal' })).map(({ path }) => path),
    ['x'],
  )
})
