import assert from 'node:assert/strict'
import { before, suite, test, type TestContext } from 'node:test'
import { levelRenamer } from '../../bench/functions/level-renamer.ts'
import { quantityTakeOff } from '../../bench/functions/quantity-take-off.ts'
import { ruleChecker } from '../../bench/functions/rule-checker.ts'
import type { AutomationFunction } from '../../src/automation/index.ts'
import { testFunction, type TestedRun, type TestFunctionOptions } from '../../src/automation/testing/index.ts'
import type { ServiceEvent } from '../../src/index.ts'
import { createClient } from '../../src/client/index.ts'
import { automated } from '../automation-server/support.ts'
import { buildModel, modelValue } from '../support/model.ts'

/** A second of this process is what an example may take on a demo building; ten times that, as machines differ. */
const CPU_MS_MAX = 10_000

type Upload = Extract<ServiceEvent, { type: 'upload' }>

interface Parameter {
  readonly value: unknown
}

interface Wall {
  readonly applicationId: string
  readonly rating: unknown
}

/* Of its twelve walls two have an empty rating, and one has none. */
const model = buildModel({ objects: 600, seed: 2 })
const value = modelValue(model)
const elements = model.objects
  .map(
    ({ json }) =>
      JSON.parse(json) as {
        category?: string
        applicationId?: string
        parameters?: Record<string, Parameter | undefined>
      },
  )
  .filter(({ applicationId, parameters }) => applicationId !== undefined && parameters !== undefined)
const walls: readonly Wall[] = elements
  .filter(({ category }) => category === 'Wall')
  .map(({ applicationId = '', parameters = {} }) => ({ applicationId, rating: parameters['Fire Rating']?.value }))

/* What is loaded on first use is not the example's time. */
before(async () => void (await testFunction(ruleChecker, { object: { name: 'nothing' } })))

/** The function on a value, in time. */
async function tried(
  t: TestContext,
  automationFunction: AutomationFunction,
  inputs: TestFunctionOptions['inputs'],
  object: object = value,
): Promise<TestedRun> {
  const [beganAtMs, usageBefore] = [performance.now(), process.cpuUsage()]
  const run = await testFunction(automationFunction, { ...(inputs === undefined ? {} : { inputs }), object })
  const { user, system } = process.cpuUsage(usageBefore)
  const cpuMs = Math.round((user + system) / 1_000)
  t.diagnostic(
    `${automationFunction.name}: ${Math.round(performance.now() - beganAtMs)} ms, ${cpuMs} ms of the processor`,
  )
  assert.ok(cpuMs < CPU_MS_MAX, `${cpuMs} ms`)
  return run
}

function marked({ annotations }: TestedRun, level: string): readonly string[] {
  return annotations
    .filter((annotation) => annotation.level === level)
    .flatMap(({ objectAppIds }) => Object.values(objectAppIds).map(String))
    .toSorted()
}

function idsOf(chosen: readonly Wall[]): readonly string[] {
  return chosen.map(({ applicationId }) => applicationId).toSorted()
}

suite('the rule checker', () => {
  test('walls without a fire rating are errors, exactly the expected ones', async (t) => {
    const unrated = walls.filter(({ rating }) => typeof rating !== 'string')
    assert.deepEqual([walls.length, unrated.map(({ rating }) => rating)], [12, [null, undefined, null]])
    const run = await tried(t, ruleChecker, {})
    assert.deepEqual(
      [run.status, run.message],
      [
        'failed',
        `${unrated.length} of ${walls.length} elements of the category Wall break the rule: they are marked as errors`,
      ],
    )
    assert.deepEqual(marked(run, 'ERROR'), idsOf(unrated))
    // One for each batch of objects that has such walls.
    assert.ok(run.annotations.length > 0)
    for (const { category, message, metadata } of run.annotations)
      assert.deepEqual([category, message, metadata], ['Fire Rating', 'There is no Fire Rating', null])
  })

  test('a lowest rating and a tolerated share give errors, warnings and valid walls', async (t) => {
    const below = walls.filter(({ rating }) => rating === 'EI 30' || rating === 'EI 60')
    const fine = walls.filter(({ rating }) => rating === 'EI 90' || rating === 'EI 120')
    const inputs = { minimumMinutes: 90, unrated: 'warning', markFine: true }
    const run = await tried(t, ruleChecker, inputs)
    assert.deepEqual(
      [run.status, run.result],
      ['failed', { checked: walls.length, broken: below.length, warned: walls.length - below.length - fine.length }],
    )
    assert.deepEqual([marked(run, 'ERROR'), marked(run, 'SUCCESS')], [idsOf(below), idsOf(fine)])
    assert.equal(marked(run, 'WARNING').length, walls.length - below.length - fine.length)
    assert.deepEqual(
      run.annotations
        .filter(({ level }) => level === 'ERROR')
        .map(({ message, metadata }) => [message, metadata])
        .slice(0, 1),
      [['Fire Rating is EI 30, below 90 minutes', { rating: 'EI 30', minimumMinutes: 90 }]],
    )
    assert.equal(
      (await testFunction(ruleChecker, { inputs: { ...inputs, tolerated: 80 }, object: value })).status,
      'succeeded',
    )
  })

  test('a rating without minutes is an error, and a model without walls is not a success', async () => {
    const wall = {
      speckle_type: 'Wall',
      category: 'Wall',
      applicationId: 'a',
      parameters: { 'Fire Rating': { value: 'yes' } },
    }
    const run = await testFunction(ruleChecker, { object: { '@walls': [wall] } })
    assert.deepEqual(
      [run.status, run.annotations[0].message, run.annotations[0].metadata],
      ['failed', 'Fire Rating is "yes", which names no minutes', { rating: 'yes', minimumMinutes: 0 }],
    )
    assert.equal(
      (await testFunction(ruleChecker, { object: { '@walls': [wall] }, inputs: { tolerated: 99.9 } })).status,
      'failed',
    )
    assert.equal(
      (
        await testFunction(ruleChecker, {
          object: { '@walls': [{ ...wall, parameters: {} }] },
          inputs: { unrated: 'ignored' },
        })
      ).status,
      'succeeded',
    )
    assert.equal((await testFunction(ruleChecker, { object: { name: 'nothing' } })).status, 'failed')
  })
})

suite('the quantity take-off', () => {
  test('quantities are summed by category and level, with level names', async (t) => {
    const run = await tried(t, quantityTakeOff, { decimals: 3 })
    assert.equal(run.status, 'succeeded', run.message)
    const [{ name, bytes }] = run.artifacts
    assert.equal(name, 'Take-off.csv')
    const rows = new TextDecoder('utf-8', { ignoreBOM: true })
      .decode(bytes)
      .split('\r\n')
      .map((line) => line.split(','))
    assert.deepEqual([rows[0][0], rows[0][5], rows.at(-1)], ['\uFEFFCategory', 'Volume (m³)', ['']])
    const wallsOfLevel = elements.filter(
      ({ category, parameters }) => category === 'Wall' && parameters?.['Base Constraint']?.value === 'level-1',
    )
    const area = wallsOfLevel.reduce((sum, { parameters }) => sum + Number(parameters?.Area?.value), 0)
    const row = rows.find(([category, level]) => category === 'Wall' && level === 'Level 1')
    assert.deepEqual([row?.[2], row?.[4]], [String(wallsOfLevel.length), area.toFixed(3)])
    assert.equal(
      rows.slice(1, -1).reduce((sum, [, , count]) => sum + Number(count), 0),
      elements.length,
    )
  })

  test('each selected category has a row', async () => {
    const run = await testFunction(quantityTakeOff, {
      inputs: { rows: 'category', categories: 'Wall, Door', byteOrderMark: false, decimals: 0, fileName: 'x.csv' },
      object: value,
    })
    assert.match(
      Buffer.from(run.artifacts[0].bytes).toString(),
      /^Category,Level,Elements,Length \(m\),Area \(m²\),Volume \(m³\)\r\nDoor,,\d+,\d+,\d+,\d+\r\nWall,,\d+,\d+,\d+,\d+\r\n$/,
    )
    assert.equal(
      (await testFunction(quantityTakeOff, { inputs: { categories: 'Roof' }, object: { name: 'nothing' } })).status,
      'failed',
    )
  })

  test('fields are quoted, and no text begins like a formula', async () => {
    const element = (category: string): object => ({
      category,
      applicationId: category,
      parameters: { 'Base Constraint': { value: 'ground, "0"' }, Length: { value: -1.5 } },
    })
    const run = await testFunction(quantityTakeOff, {
      inputs: { byteOrderMark: false, decimals: 1 },
      object: { '@elements': ['=HYPERLINK("x")', '+1', '-1', '@SUM(A1)', ' =1', '\t=1', 'Two\r\nlines'].map(element) },
    })
    const lines = Buffer.from(run.artifacts[0].bytes)
      .toString()
      .split(/\r\n(?!lines)/)
      .slice(1, -1)
      .map((line) => line.replace(',"ground, ""0""",1,-1.5,0.0,0.0', ''))
    assert.deepEqual(lines, ["'\t=1", "' =1", "'+1", "'-1", `"'=HYPERLINK(""x"")"`, "'@SUM(A1)", '"Two\r\nlines"'])
  })
})

suite('the level renamer', () => {
  for (const [what, inputs, names] of [
    ['a prefix', { rule: 'prefix', prefix: 'A ' }, ['A Level 0', 'A Level 1']],
    ['a pattern', { rule: 'pattern', pattern: '{number}/{count}: {name}' }, ['0/2: Level 0', '1/2: Level 1']],
    ['a list', { rule: 'mapping', mapping: 'Level 1 = Top = roof' }, ['Level 0', 'Top = roof']],
  ] as const) {
    test(`levels get new names by ${what}, in a new version`, async (t) => {
      const run = await tried(t, levelRenamer, { ...inputs, message: 'New names' })
      assert.deepEqual(
        [run.status, run.versions.map(({ message }) => message)],
        ['succeeded', ['New names']],
        run.message,
      )
      const building = await run.client
        .project(run.projectId)
        .receive<{ id: string; '@elements': readonly { name: string }[] }>(run.versions[0].rootObjectId)
      assert.deepEqual(
        building['@elements'].map(({ name }) => name),
        names,
      )
    })
  }

  test('no new version is created without changes, and an invalid list is refused', async () => {
    const object = {
      collectionType: 'building',
      name: 'Small',
      '@elements': [{ collectionType: 'level', name: 'Level 0' }],
    }
    const same = await testFunction(levelRenamer, { inputs: { prefix: 'Lev' }, object })
    assert.deepEqual([same.status, same.versions.length], ['succeeded', 0])
    for (const [inputs, words] of [
      [{ rule: 'mapping', mapping: 'Level 0' }, /must have "old name = new name"/],
      [{ rule: 'pattern', pattern: '' }, /name of 0 characters/],
    ] as const) {
      const run = await testFunction(levelRenamer, { inputs, object })
      assert.deepEqual([run.status, run.versions.length], ['failed', 0])
      assert.match(run.message, words)
    }
    assert.match((await testFunction(levelRenamer, { object: { name: 'nothing' } })).message, /no levels/)
  })

  test('on a server, only the levels and the building are uploaded, and the version does not restart the automation', async (t) => {
    const uploads: Upload[] = []
    const { service, extension } = automated(t, {
      functions: [{ id: 'level-renamer', release: '1', function: levelRenamer }],
      service: { onEvent: (event) => void (event.type === 'upload' && uploads.push(event)) },
    })
    const client = createClient({
      url: 'http://in.process',
      token: undefined,
      fetch: (url, init) => service.fetch(new Request(url, init)),
    })
    await client.project('p').upload(model.objects)
    const whole = uploads.splice(0)
    const { models, versions, automations, runs } = extension.project('p')
    const { id: modelId } = await models.create({ name: 'Building' })
    await automations.create({
      name: 'Rename',
      functionId: 'level-renamer',
      modelId,
      inputs: { prefix: 'A ' },
      trigger: 'version',
    })
    const first = await versions.create(modelId, { rootObjectId: model.rootId, message: 'first' })
    await extension.idle()
    const {
      items: [run, ...others],
    } = await runs.list()
    assert.deepEqual(
      [run.status, run.versionId, others.length, (await versions.list(modelId)).items.length],
      ['succeeded', first.id, 0, 2],
      run.message ?? '',
    )
    const sum = (events: readonly Upload[], of: 'objects' | 'created' | 'bytes'): number =>
      events.reduce((total, event) => total + event[of], 0)
    t.diagnostic(
      `${sum(uploads, 'created')} objects in ${sum(uploads, 'bytes')} bytes, of ${sum(whole, 'created')} in ${sum(whole, 'bytes')}`,
    )
    assert.deepEqual([sum(uploads, 'created'), sum(uploads, 'objects'), sum(whole, 'created')], [3, 3, 600])
    assert.ok(sum(uploads, 'bytes') < sum(whole, 'bytes') / 5)
  })
})
