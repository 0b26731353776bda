import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { httpRunBackend, type RunBackend } from '../../src/automation/runtime/index.ts'
import type { RunStart } from '../../src/automation-server/index.ts'
import { runBackendSuite, type RunUnderTest } from '../automation/run-backend-suite.ts'
import { automated, definition, type Fixture, heldRun, uploadObjects } from './support.ts'

const ARTIFACT_BYTES_MAX = 200_000

suite('run backends', () => {
  runBackendSuite('embedded', (t) => opened(t, ({ backend }) => backend))
  runBackendSuite('http', (t) =>
    opened(t, ({ runFile }, { service }) =>
      httpRunBackend(runFile, {
        retry: false,
        fetch: (url, init) => service.fetch(new Request(url, { ...init, duplex: 'half' })),
      }),
    ),
  )
})

async function opened(
  t: TestContext,
  backendOf: (start: RunStart, fixture: Fixture) => RunBackend,
): Promise<RunUnderTest> {
  const { executor, starting } = heldRun()
  const fixture = automated(t, { functions: [definition(executor)], limits: { artifactBytesMax: ARTIFACT_BYTES_MAX } })
  const { service, extension } = fixture
  const [projectId, rootObjectId] = ['p', 'a'.repeat(32)]
  await uploadObjects(service, projectId, [
    { id: rootObjectId, child: { speckle_type: 'reference', referencedId: 'b' }, __closure: { b: 1 } },
    { id: 'b' },
  ])
  const { models, versions, automations, runs } = extension.project(projectId)
  const { id: modelId } = await models.create({ name: 'House' })
  await versions.create(modelId, { rootObjectId, message: 'first' })
  const automation = await automations.create({
    name: 'Check',
    functionId: 'checker',
    modelId,
    inputs: {},
    trigger: 'manual',
  })
  const { id: runId } = await runs.start(automation.id)
  const start = await starting
  return {
    backend: backendOf(start, fixture),
    projectId,
    modelId,
    rootObjectId,
    artifactBytesMax: ARTIFACT_BYTES_MAX,
    state: async () => {
      const { status, message, progress } = await runs.get(runId)
      return {
        status,
        message: message ?? '',
        fraction: progress?.fraction,
        annotations: (await runs.annotations(runId)).items,
        logs: (await runs.logs(runId)).items,
      }
    },
    version: (id) => versions.get(modelId, id),
    artifact: async (id) => {
      const { artifacts } = await runs.get(runId)
      const response = await service.fetch(
        new Request(`http://in.process/api/v1/projects/${projectId}/artifacts/${id}`),
      )
      return {
        name: artifacts.find((artifact) => artifact.id === id)?.name ?? '',
        bytes: new Uint8Array(await response.arrayBuffer()),
      }
    },
    versionCount: async () => (await versions.list(modelId)).items.length,
    artifactCount: async () => (await runs.get(runId)).artifacts.length,
    cancel: async () => void (await runs.cancel(runId)),
  }
}

test('the client of a run reads models, versions and runs of its project', async (t) => {
  const run = await opened(t, ({ runFile }, { service }) =>
    httpRunBackend(runFile, {
      retry: false,
      fetch: (url, init) => service.fetch(new Request(url, { ...init, duplex: 'half' })),
    }),
  )
  const { models, versions, runs } = run.backend.client.project(run.projectId)
  assert.deepEqual(
    (await models.list()).items.map(({ name }) => name),
    ['House'],
  )
  const { id } = await models.create({ name: 'Copy' })
  const made = await versions.create(id, { rootObjectId: run.rootObjectId, message: 'copied' })
  assert.equal((await models.get(id)).latestVersionId, made.id)
  assert.deepEqual((await versions.list(id, { limit: 1 })).items, [await versions.get(id, made.id)])
  const [own] = (await runs.list({ status: 'pending' })).items
  assert.equal((await runs.get(own.id)).functionId, 'checker')
  await assert.rejects(models.get('0'.repeat(32)), { code: 'not_found' })
  await assert.rejects(run.backend.client.project('other').models.list(), { code: 'forbidden' })
})
