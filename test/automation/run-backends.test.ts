import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpRunBackend } from '../../src/automation/runtime/index.ts'
import { memoryRun } from './memory-run.ts'
import { answer, runServer, TOKEN } from './run-server.ts'
import { runBackendSuite } from './run-backend-suite.ts'

runBackendSuite('memory', () => memoryRun())

runBackendSuite('http', async (t) => {
  const { run, runFile } = await runServer(t)
  return { ...run, backend: httpRunBackend(runFile(), { retry: false }) }
})

test('over http: no error shows the token, even if the server repeats it', async (t) => {
  const server = await runServer(t)
  server.fault = (req, res) => {
    answer(res, 403, {
      message: `${req.headers.authorization} and ${encodeURIComponent(TOKEN)} may not`,
      statusCode: 403,
      code: 'forbidden',
    })
    return true
  }
  const backend = httpRunBackend(server.runFile())
  const file = { name: 'file', sizeBytes: 0, idempotencyKey: 'key', content: { async *[Symbol.asyncIterator]() {} } }
  const version = { projectId: 'demo', modelId: 'model', rootObjectId: 'root', message: '', idempotencyKey: 'key' }
  const calls: readonly (() => Promise<unknown> | undefined)[] = [
    () => backend.report({ sequence: 1 }),
    () => backend.triggeringVersion(),
    () => backend.storeArtifact(file),
    () => backend.createVersion(version),
    () => backend.renewLease?.(),
  ]
  for (const call of calls) {
    await assert.rejects(call() as Promise<unknown>, (error: Error & { code: string; isRetryable: boolean }) => {
      assert.deepEqual([error.code, error.isRetryable], ['forbidden', false])
      assert.doesNotMatch(`${error.message}${error.stack}`, /47110815/)
      return true
    })
  }
})

test('over http: a response that does not come from Stowage is reported as such', async (t) => {
  const server = await runServer(t)
  const backend = httpRunBackend(server.runFile())
  const answers: readonly (readonly [number, object, string, boolean])[] = [
    [502, {}, 'http_error', true],
    [429, {}, 'http_error', true],
    [413, {}, 'http_error', false],
    [200, {}, 'invalid_answer', false],
    [200, { rootObjectId: 7 }, 'invalid_answer', false],
  ]
  for (const [status, body, code, isRetryable] of answers) {
    server.fault = (_, res) => {
      answer(res, status, body)
      return true
    }
    await assert.rejects(backend.triggeringVersion(), { code, isRetryable })
  }
  server.fault = (req) => {
    req.destroy()
    return true
  }
  await assert.rejects(backend.report({ sequence: 1 }), { code: 'network_failed', isRetryable: true })
})

test('over http: a run file needs a trigger and ids that fit in a path', async (t) => {
  const { runFile } = await runServer(t)
  const file = runFile()
  const without = httpRunBackend({ ...file, automationRunData: { ...file.automationRunData, triggers: [] } })
  await assert.rejects(without.triggeringVersion(), { code: 'not_found' })
  assert.throws(
    () => httpRunBackend({ ...file, automationRunData: { ...file.automationRunData, functionRunId: '..' } }),
    { code: 'invalid_id' },
  )
  assert.throws(
    () => httpRunBackend({ ...file, automationRunData: { ...file.automationRunData, speckleServerUrl: 'nowhere' } }),
    TypeError,
  )
})
