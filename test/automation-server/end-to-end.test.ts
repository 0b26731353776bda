import assert from 'node:assert/strict'
import { test } from 'node:test'
import { automated, definition, inProcess, uploadObjects } from './support.ts'

test("over HTTP, a model's version starts an automation whose run reports and creates a version", async (t) => {
  const checker = inProcess(async ({ backend, projectId, runFile }) => {
    assert.deepEqual(runFile.functionInputs, { tolerance: 3, apiKey: 'hush' })
    const { rootObjectId, modelId } = await backend.triggeringVersion()
    const ids: string[] = []
    for await (const batch of backend.client.project(projectId).graph(rootObjectId))
      ids.push(...batch.map(({ id }) => id))
    assert.deepEqual(ids.sort(), ['leaf', 'root'])
    await backend.report({
      sequence: 1,
      status: 'running',
      progress: { fraction: 0.5, message: 'half' },
      logs: [{ atMs: 1, level: 'info', message: 'hello' }],
    })
    await backend.storeArtifact({
      name: 'take-off.csv',
      sizeBytes: 3,
      idempotencyKey: 'file',
      content: (async function* () {
        yield Buffer.from('a,b')
      })(),
    })
    await backend.createVersion({
      projectId,
      modelId,
      rootObjectId,
      message: 'made by the run',
      idempotencyKey: 'version',
    })
    const annotations = [
      { category: 'Fire', level: 'ERROR' as const, objectAppIds: { leaf: null }, message: 'no rating', metadata: null },
    ]
    await backend.report({ sequence: 2, status: 'failed', message: 'one wall has no rating', annotations })
  })
  const { service, extension, ask } = automated(t, { functions: [definition(checker)] })
  await uploadObjects(service, 'p', [
    { id: 'root', children: [{ referencedId: 'leaf' }], __closure: { leaf: 1 } },
    { id: 'leaf' },
  ])
  const model = await ask('POST', 'p/models', { name: 'House' })
  assert.equal(model.status, 201)
  const modelId: string = model.json.id
  const wanted = {
    name: 'Check',
    functionId: 'checker',
    modelId,
    inputs: { tolerance: 3, apiKey: 'hush' },
    trigger: 'version',
  }
  const made = await ask('POST', 'p/automations', wanted)
  assert.equal(made.status, 201)
  assert.deepEqual(made.json.inputs, { tolerance: 3, apiKey: '******' })
  const version = await ask('POST', `p/models/${modelId}/versions`, { rootObjectId: 'root', message: 'first' })
  assert.equal(version.status, 201)
  await extension.idle()
  const { json: runs } = await ask('GET', 'p/runs')
  assert.equal((runs.items as unknown[]).length, 1)
  const run = (runs.items as Record<string, unknown>[])[0]
  assert.equal(run.status, 'failed')
  assert.equal(run.message, 'one wall has no rating')
  assert.deepEqual(run.annotations, { SUCCESS: 0, INFO: 0, WARNING: 0, ERROR: 1 })
  assert.deepEqual(run.progress, { fraction: 0.5, message: 'half' })
  const annotations = await ask('GET', `p/runs/${String(run.id)}/annotations?level=ERROR&objectId=leaf`)
  assert.equal((annotations.json.items as { category: string }[])[0].category, 'Fire')
  const logs = await ask('GET', `p/runs/${String(run.id)}/logs`)
  assert.deepEqual(logs.json.items, [{ atMs: 1, level: 'info', message: 'hello' }])
  const [artifact] = run.artifacts as { id: string }[]
  const file = await service.fetch(new Request(`http://in.process/api/v1/projects/p/artifacts/${artifact.id}`))
  assert.equal(await file.text(), 'a,b')
  assert.equal(
    file.headers.get('content-disposition'),
    `attachment; filename="take-off.csv"; filename*=UTF-8''take-off.csv`,
  )
  const versions = await ask('GET', `p/models/${modelId}/versions`)
  assert.deepEqual(
    (versions.json.items as { runId: string | null }[]).map(({ runId }) => runId),
    [run.id, null],
  )
})
