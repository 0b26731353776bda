import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definition, inProcess, waiting } from '../automation-server/support.ts'
import { paged, signedIn, textOf, tokenFor, withVersion } from './support.ts'

/* What the page of a run tells about its cause. */

test('the page reports that a cause has reached its limit, and the number of runs that did not start', async (t) => {
  const executor = inProcess(async ({ backend, runFile: { automationRunData: run } }) => {
    const { modelId } = run.triggers[0].payload
    const version = { projectId: run.projectId, modelId, rootObjectId: 'root', message: 'made by a run' }
    await backend.createVersion({ ...version, idempotencyKey: run.functionRunId })
    await backend.report({ sequence: 1, status: 'succeeded', message: 'made' })
  })
  const fixture = paged(t, { functions: [definition(executor)], limits: { runsPerCauseMax: 3 } })
  const { modelId } = await withVersion(fixture)
  const project = fixture.extension.project('p')
  for (const name of ['one', 'two', 'three'])
    await project.automations.create({ name, functionId: 'checker', modelId, inputs: {}, trigger: 'version' })
  await project.versions.create(modelId, { rootObjectId: 'root', message: 'by a person' })
  await fixture.extension.idle()
  const { items } = await project.runs.list()
  assert.equal(items.length, 3)
  const { cause } = await project.runs.get(items[0].id)
  const visitor = await signedIn(fixture.service)
  const { html } = await visitor.get(`/web/projects/p/runs/${items[0].id}`)
  assert.ok(cause.notStarted > 1)
  assert.ok(
    textOf(html).includes(
      `The cause of this run reached the limit of 3 runs: ${cause.notStarted} more runs were not started.`,
    ),
    textOf(html),
  )
})

test('the page of an external run says that a person runs it elsewhere, and can cancel it', async (t) => {
  const fixture = paged(t, { functions: [definition(waiting)] })
  const { modelId } = await withVersion(fixture)
  const project = fixture.extension.project('p')
  const wanted = { name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' } as const
  const { id } = await project.automations.create(wanted)
  const visitor = await signedIn(fixture.service)
  const { token, ...run } = await started(fixture.service, id)
  assert.equal(typeof token, 'string')
  const path = `/web/projects/p/runs/${run.id}`
  const { html } = await visitor.get(path)
  assert.match(textOf(html), /by hand, on the person’s own machine/)
  assert.equal((await visitor.post(`${path}/cancel`)).status, 303)
  assert.equal((await project.runs.get(run.id)).status, 'canceled')
})

async function started(
  service: { fetch(request: Request): Promise<Response> },
  automationId: string,
): Promise<{ readonly id: string; readonly token: string }> {
  const response = await service.fetch(
    new Request(`http://in.process/api/v1/projects/p/automations/${automationId}/runs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await tokenFor({ p: 'write' })}`, 'content-type': 'application/json' },
      body: JSON.stringify({ external: true }),
    }),
  )
  return (await response.json()) as { readonly id: string; readonly token: string }
}
