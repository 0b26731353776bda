import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Run } from '../../src/automation-server/index.ts'
import { TimeByHand } from '../store/time.ts'
import { eventually, turns } from '../support/patience.ts'
import { automated, definition, type Fixture, type FixtureOptions, waiting, withVersion } from './support.ts'

interface External extends Fixture {
  readonly path: string
  readonly run: Run
  readonly token: Readonly<Record<string, string>>
}

async function external(t: TestContext, options: FixtureOptions = {}): Promise<External> {
  const fixture = automated(t, { functions: [definition(waiting)], ...options })
  const { modelId } = await withVersion(fixture)
  const wanted = { name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' } as const
  const { id } = await fixture.extension.project('p').automations.create(wanted)
  const path = `p/automations/${id}/runs`
  const { status, json } = await fixture.ask('POST', path, { external: true })
  assert.equal(status, 201)
  const { token, ...run } = json as unknown as Run & { readonly token: string }
  return { ...fixture, path, run, token: { Authorization: `Bearer ${token}` } }
}

test('the caller that opens an external run reports it, and no server claims it', async (t) => {
  const { ask, extension, run, token } = await external(t, { sweepIntervalMs: 5, attemptsMax: 3 })
  assert.deepEqual(
    [run.status, run.triggeredBy, run.functionVersion],
    ['initializing', { kind: 'external', runId: null }, null],
  )
  const report = (body: object): ReturnType<typeof ask> => ask('POST', `p/runs/${run.id}/report`, body, token)
  assert.equal((await report({ sequence: 1, status: 'running' })).status, 200)
  await extension.idle()
  assert.equal((await extension.project('p').runs.get(run.id)).status, 'running')
  assert.equal((await report({ sequence: 2, status: 'succeeded', message: 'fine' })).status, 200)
  const { status, message } = await extension.project('p').runs.get(run.id)
  assert.deepEqual([status, message], ['succeeded', 'fine'])
  assert.equal((await ask('GET', `p/runs/${run.id}`, undefined, token)).status, 401, 'its token has ended with it')
})

test('an external run stays alive while it polls, and is lost when it stops', async (t) => {
  const time = new TimeByHand()
  const { ask, extension, run, token } = await external(t, {
    service: { environment: time.environment },
    sweepIntervalMs: 5,
    leaseMs: 60_000,
  })
  const { runs } = extension.project('p')
  for (let count = 0; count < 3; count++) {
    time.pass(50_000)
    await turns()
    const { json } = await ask('POST', `p/runs/${run.id}/lease`, {}, token)
    assert.deepEqual(json, { status: 'initializing', canceled: false })
  }
  await eventually(async () => {
    time.pass(61_000)
    return (await runs.get(run.id)).status === 'timeout'
  }, 'it is given up')
  assert.match((await runs.get(run.id)).message ?? '', /machine on which a person ran the function was silent/)
  const { json } = await ask('POST', `p/runs/${run.id}/lease`, {}, token)
  assert.deepEqual(json, { status: 'timeout', canceled: true })
})

test('an external run can be canceled, and the number of external runs is bounded', async (t) => {
  const { ask, path, run, token } = await external(t, { alone: 'each server may add one run at the same time' })
  const others = await Promise.all(Array.from({ length: 24 }, () => ask('POST', path, { external: true })))
  const statuses = others.map(({ status }) => status)
  assert.deepEqual(
    [statuses.filter((status) => status === 201).length, statuses.filter((status) => status === 409).length],
    [19, 5],
  )
  assert.equal((await ask('POST', `p/runs/${run.id}/cancel`)).status, 200)
  assert.equal((await ask('POST', `p/runs/${run.id}/lease`, {}, token)).json.canceled, true)
  assert.equal((await ask('POST', path, { external: true })).status, 201, 'one has ended')
})

test('a run cannot start an external run', async (t) => {
  const { ask, path, token } = await external(t)
  assert.equal((await ask('POST', path, { external: true }, token)).status, 403)
})
