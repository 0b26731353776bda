import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { AutomationProject } from '../../src/automation-server/index.ts'
import { eventually } from '../support/patience.ts'
import { automated, definition, inProcess, withVersion } from './support.ts'

/** Automations that each make a version of the model on each version of it. */
async function prolific(t: TestContext, automations: number, runsPerCauseMax?: number) {
  const executor = inProcess(async ({ backend, runFile: { automationRunData: run } }) => {
    const { modelId } = run.triggers[0].payload
    await backend.createVersion({
      projectId: run.projectId,
      modelId,
      rootObjectId: 'root',
      message: run.automationId,
      idempotencyKey: run.functionRunId,
    })
    await backend.report({ sequence: 1, status: 'succeeded', message: 'made' })
  })
  const fixture = automated(t, {
    functions: [definition(executor)],
    concurrency: 8,
    ...(runsPerCauseMax === undefined ? {} : { limits: { runsPerCauseMax } }),
  })
  const { modelId, versionId } = await withVersion(fixture)
  const project = fixture.extension.project('p')
  for (let at = 0; at < automations; at++)
    await project.automations.create({ name: `${at}`, functionId: 'checker', modelId, inputs: {}, trigger: 'version' })
  return { ...fixture, project, modelId, versionId }
}

/** A run makes others before it ends, perhaps on other servers. Waits for one end after the other. */
async function allEnded(project: AutomationProject): Promise<void> {
  const count = async (): Promise<{ readonly ended: number; readonly all: number }> => {
    const { items } = await project.runs.list({ limit: 1_000 })
    return { ended: items.filter(({ endedAt }) => endedAt !== null).length, all: items.length }
  }
  for (let now = await count(); now.ended < now.all; now = await count()) {
    const { ended } = now
    await eventually(async () => (await count()).ended > ended, 'one more run ends')
  }
}

test('one version may cause a bounded number of runs, and each run reports the bound', async (t) => {
  const { project, modelId } = await prolific(t, 6)
  const { id } = await project.versions.create(modelId, { rootObjectId: 'root', message: 'by a person' })
  await allEnded(project)
  const { items } = await project.runs.list({ limit: 1_000 })
  assert.equal(items.length, 50)
  assert.ok(items.every(({ status }) => status === 'succeeded'))
  for (const run of [items[0], items[49]]) {
    const { cause } = await project.runs.get(run.id)
    assert.deepEqual([cause.id, cause.runs, cause.runsMax], [id, 50, 50])
    assert.ok(cause.notStarted > 0)
  }
  await project.versions.create(modelId, { rootObjectId: 'root', message: 'another cause' })
  await allEnded(project)
  assert.equal((await project.runs.list({ limit: 1_000 })).items.length, 100)
})

test('a run that a person starts or restarts counts as a cause of its own', async (t) => {
  const { project } = await prolific(t, 3, 2)
  const [first] = (await project.automations.list()).items
  const { id } = await project.runs.start(first.id)
  await allEnded(project)
  const { cause } = await project.runs.get(id)
  assert.deepEqual([cause.id, cause.runs], [id, 2])
  assert.equal((await project.runs.list()).items.length, 3)
  const again = await project.runs.rerun(id)
  await allEnded(project)
  assert.equal((await project.runs.get(again.id)).cause.id, again.id)
})
