import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AutomationContext,
  type AutomationFunction,
  defineInputs,
  executeFunction,
  RunFailed,
  secret,
} from '../../src/automation/index.ts'
import type { DagObject } from '../../src/client/index.ts'
import { onBothBackends, PROJECT, type Ran } from './automated.ts'

/* The contract, area B, row by row: the context, its operations, how a run ends. Each on both ways in which a function reaches the service. */

class Nothing extends defineInputs({}) {}
class WithKey extends defineInputs({ apiKey: secret({ title: 'API key' }) }) {}

type Body = (context: AutomationContext) => void | Promise<void>

/** How a run ended. */
const ending = ({ run: { status, message } }: Ran): readonly unknown[] => [status, message]

interface Wall extends DagObject {
  readonly applicationId: string
  readonly parameters: { readonly height: number }
  readonly '@level': DagObject
}

const wallsOf = (model: DagObject): readonly Wall[] => model['@elements'] as readonly Wall[]

onBothBackends(
  '"The run context gives a function the triggering model, an authenticated client, its configured inputs, result reporting, per-object annotations, new model versions and file artifacts"',
  async (ran) => {
    const members = [
      'receiveVersion',
      'serviceClient',
      'functionInputs',
      'automationRunData',
      'markRunSuccess',
      'attachErrorToObjects',
      'createNewVersionInProject',
      'storeFileResult',
    ]
    const { run } = await ran(
      (context) => context.markRunSuccess('seen', { missing: members.filter((name) => !(name in context)) }),
      Nothing,
    )
    assert.deepEqual(run.result, { missing: [] })
  },
)

onBothBackends(
  'Context, automation_run_data: "metadata of the current run: run id, trigger information, execution context; a project_id attribute is used by callers"',
  async (ran) => {
    const { run, modelId, versionId } = await ran(
      (context) => context.markRunSuccess('seen', JSON.parse(JSON.stringify(context.automationRunData))),
      Nothing,
    )
    assert.deepEqual(
      { ...run.result, speckleServerUrl: '' },
      {
        projectId: PROJECT,
        speckleServerUrl: '',
        automationId: run.automationId,
        automationRunId: run.id,
        functionRunId: run.id,
        triggers: [{ triggerType: 'versionCreation', payload: { modelId, versionId } }],
      },
    )
  },
)

onBothBackends(
  'Context, service_client: "pre-configured, authenticated client with full SDK functionality"; Authentication 5: "no separate sign-in"',
  async (ran) => {
    const { run } = await ran(async (context) => {
      const {
        serviceClient,
        automationRunData: { projectId },
      } = context
      const project = serviceClient.project(projectId)
      const { root } = await project.send({ name: 'sent by the function' })
      const { missing } = await project.has([root, 'nobody'])
      await assert.rejects(serviceClient.project('another').has(['nobody']), { code: 'forbidden' })
      context.markRunSuccess('worked with it', { missing, name: String((await project.receive(root)).name) })
    }, Nothing)
    assert.deepEqual(run.result, { missing: ['nobody'], name: 'sent by the function' }, run.message ?? '')
  },
)

onBothBackends(
  'Context, function_inputs: "user-provided configuration given when the automation was triggered"',
  async (ran) => {
    const { run } = await ran(
      (context, inputs) => {
        assert.ok(inputs instanceof WithKey)
        assert.equal(context.functionInputs, inputs)
        context.markRunSuccess('seen', { length: inputs.apiKey.reveal().length })
      },
      WithKey,
      { apiKey: 'swordfish' },
    )
    assert.deepEqual(run.result, { length: 9 })
  },
)

onBothBackends(
  'receive_version() (awaited): "Base: the model that triggered the run, complete data structure"',
  async (ran) => {
    const { run, rootObjectId } = await ran(async (context) => {
      const model = await context.receiveVersion()
      const [first, second] = wallsOf(model)
      context.markRunSuccess('received', {
        id: model.id,
        name: String(model.name),
        walls: [first.applicationId, second.applicationId],
        shared: first['@level'] === second['@level'],
      })
    }, Nothing)
    assert.deepEqual(run.result, { id: rootObjectId, name: 'house', walls: ['wall-1', 'wall-2'], shared: true })
  },
)

onBothBackends(
  'Model data structure: "directed acyclic graphs. Properties are primitive values or object references. Common properties: elements, parameters, units, applicationId"',
  async (ran) => {
    const { run, client, rootObjectId } = await ran(async (context) => {
      const model = await context.receiveVersion()
      context.markRunSuccess('received', { units: String(model.units), height: wallsOf(model)[0].parameters.height })
    }, Nothing)
    assert.deepEqual(run.result, { units: 'm', height: 3 })
    const ids: string[] = []
    for await (const batch of client.project(PROJECT).graph(rootObjectId)) ids.push(...batch.map(({ id }) => id))
    assert.deepEqual([ids.length, new Set(ids).size], [4, 4], 'the shared level is one object')
  },
)

onBothBackends('mark_run_success(message): the status is success, for "normal successful completion"', async (ran) => {
  assert.deepEqual(ending(await ran((context) => context.markRunSuccess('all walls are rated'), Nothing)), [
    'succeeded',
    'all walls are rated',
  ])
})

onBothBackends(
  'mark_run_failed(message): the status is failed, for "business-logic failure (validation fails, rules violated)"',
  async (ran) => {
    assert.deepEqual(
      ending(await ran((context) => context.markRunFailed('2 walls lack a rating: set it in the schedule'), Nothing)),
      ['failed', '2 walls lack a rating: set it in the schedule'],
    )
  },
)

onBothBackends(
  'mark_run_exception(message): the status is exception, for an "unexpected error outside normal logic"',
  async (ran) => {
    assert.deepEqual(ending(await ran((context) => context.markRunException('the price list is not there'), Nothing)), [
      'exception',
      'the price list is not there',
    ])
  },
)

onBothBackends('the three marks: message is required, and is a text', async (ran) => {
  const { run } = await ran((context) => {
    for (const mark of ['markRunSuccess', 'markRunFailed', 'markRunException'] as const)
      assert.throws(() => context[mark](''), TypeError)
    context.markRunSuccess('the empty ones were refused')
  }, Nothing)
  assert.equal(run.status, 'succeeded', run.message ?? '')
})

onBothBackends(
  '"A function run must report its final status by calling exactly one of the status operations"',
  async (ran) => {
    const twice = await ran((context) => {
      context.markRunSuccess('done')
      context.markRunFailed('after all')
    }, Nothing)
    assert.equal(twice.run.status, 'exception')
    assert.match(twice.run.message ?? '', /a run has exactly one mark/)
    const never = await ran(() => undefined, Nothing)
    assert.equal(never.run.status, 'exception')
    assert.match(never.run.message ?? '', /without a mark/)
  },
)

onBothBackends(
  'Errors: "In area B, failures are reported by mark_run_failed (business-logic failure) and mark_run_exception (unexpected error)": what is thrown is such a report',
  async (ran) => {
    assert.deepEqual(
      ending(
        await ran(() => {
          throw new RunFailed('a rule is broken')
        }, Nothing),
      ),
      ['failed', 'a rule is broken'],
    )
    assert.deepEqual(
      ending(
        await ran(async () => {
          throw new RangeError('no such level')
        }, Nothing),
      ),
      ['exception', 'RangeError: no such level'],
    )
  },
)

for (const [operation, method, level] of [
  ['attach_error_to_objects(category, object_ids, message, metadata)', 'attachErrorToObjects', 'ERROR'],
  ['attach_warning_to_objects(...)', 'attachWarningToObjects', 'WARNING'],
  ['attach_success_to_objects(...)', 'attachSuccessToObjects', 'SUCCESS'],
] as const) {
  onBothBackends(
    `${operation}: category groups, object_ids and message are required, "metadata: optional dictionary, default none"`,
    async (ran) => {
      const { annotations, run } = await ran((context) => {
        context[method]('Fire', ['a', 'b'], 'no rating')
        context[method]('Fire', ['c'], 'a low rating', { minutes: 30 })
        assert.throws(() => context[method]('', ['a'], 'no category'), TypeError)
        assert.throws(() => context[method]('Fire', [], 'no objects'), TypeError)
        assert.throws(() => context[method]('Fire', ['a'], ''), TypeError)
        context.markRunSuccess('annotated')
      }, Nothing)
      assert.deepEqual(annotations, [
        { category: 'Fire', level, objectAppIds: { a: null, b: null }, message: 'no rating', metadata: null },
        { category: 'Fire', level, objectAppIds: { c: null }, message: 'a low rating', metadata: { minutes: 30 } },
      ])
      assert.deepEqual([run.status, run.annotations[level]], ['succeeded', 2], run.message ?? '')
    },
  )
}

onBothBackends(
  'create_new_version_in_project(project_id, data, message) (awaited): "str: id of the new version"',
  async (ran) => {
    const { run, versions, client, modelId } = await ran(async (context) => {
      const model = await context.receiveVersion()
      const id = await context.createNewVersionInProject(
        context.automationRunData.projectId,
        { ...model, name: 'renamed' },
        'a new name',
      )
      context.markRunSuccess('made', { id })
    }, Nothing)
    const [newest, first] = versions
    assert.deepEqual(
      [run.result?.id, newest.message, newest.runId, first.runId],
      [newest.id, 'a new name', run.id, null],
      run.message ?? '',
    )
    assert.deepEqual(run.createdVersions, [{ modelId, versionId: newest.id }])
    const made = await client.project(PROJECT).receive(newest.rootObjectId)
    assert.deepEqual([made.name, wallsOf(made).length], ['renamed', 2])
  },
)

onBothBackends(
  'store_file_result(file_path, file_name) (awaited): "local path", "display name in the interface"; "str: id of the stored artifact"',
  async (ran) => {
    const folder = await mkdtemp(join(tmpdir(), 'stowage-contract-'))
    try {
      const path = join(folder, 'made.tmp')
      await writeFile(path, 'level,area\nground,12\n')
      const { run, download } = await ran(async (context) => {
        const id = await context.storeFileResult(path, 'Räume & areas.csv')
        context.markRunSuccess('stored', { id })
      }, Nothing)
      const [artifact] = run.artifacts
      assert.deepEqual(
        [artifact.id, artifact.name, artifact.sizeBytes],
        [run.result?.id, 'Räume & areas.csv', 21],
        run.message ?? '',
      )
      const answer = await download(artifact.id)
      assert.equal(await answer.text(), 'level,area\nground,12\n')
      assert.match(
        answer.headers.get('content-disposition') ?? '',
        /^attachment; .*filename\*=UTF-8''R%C3%A4ume%20%26%20areas\.csv$/,
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)

onBothBackends(
  '"A function is started by passing the function and its inputs class to the SDK entry point, which supplies the context and the inputs"',
  async (ran) => {
    const started: AutomationFunction = executeFunction(
      (context, { apiKey }) => context.markRunSuccess(`started with ${String(apiKey)}`),
      WithKey,
      { main: false },
    )
    const { run } = await ran(started.body as Body, WithKey, { apiKey: 'swordfish' })
    assert.deepEqual([run.status, run.message], ['succeeded', 'started with ******'])
  },
)

onBothBackends(
  'Authentication 6: "Secret-kind function inputs hold values such as API keys and passwords": they reach the function and nobody else',
  async (ran) => {
    const told = await ran(
      (context, { apiKey }) => {
        context.log.info(`the key is ${apiKey.reveal()}`)
        context.attachErrorToObjects('Keys', ['a'], apiKey.reveal(), { key: apiKey.reveal() })
        context.markRunFailed(`no access with ${apiKey.reveal()}`)
      },
      WithKey,
      { apiKey: 'swordfish' },
    )
    assert.deepEqual(ending(told), ['failed', 'no access with ******'])
    assert.doesNotMatch(JSON.stringify([told.run, told.annotations, told.logs]), /swordfish/)
  },
)
