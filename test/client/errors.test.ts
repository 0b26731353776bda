import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientError, createClient, type Fetch, isStowageError, StowageError } from '../../src/client/index.ts'
import * as service from '../../src/index.ts'
import { serviceAndClient } from './support.ts'

function rejection(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => assert.fail('it resolves'),
    (error: unknown) => error,
  )
}

function failing(fetch: Fetch): Promise<unknown> {
  const project = createClient({ url: 'http://in.process', token: undefined, fetch, retry: false }).project('demo')
  return rejection(project.get('a'))
}

test('client and service errors share a base class with statusCode, code and isRetryable', async (t) => {
  const { project, service: objects } = await serviceAndClient(t)
  for (const call of [project.get('..'), objects.project('demo').get('')]) {
    const error = await rejection(call)
    assert.ok(error instanceof StowageError)
    assert.deepEqual([error.code, error.statusCode, error.isRetryable], ['invalid_id', 400, false])
    assert.deepEqual(error.toJSON(), { message: error.message, statusCode: 400, code: 'invalid_id' })
  }
  assert.equal(StowageError, service.StowageError)
})

test('an error has the status of the response, or that of its code without one', async () => {
  const forbidden = await failing(async () => Response.json({ message: 'no', code: 'forbidden' }, { status: 403 }))
  assert.ok(forbidden instanceof ClientError)
  assert.deepEqual([forbidden.code, forbidden.statusCode, forbidden.isAnswered], ['forbidden', 403, true])
  const broken = await failing(() => Promise.reject(new TypeError('fetch failed')))
  assert.ok(broken instanceof ClientError)
  assert.deepEqual([broken.code, broken.statusCode, broken.isAnswered], ['network_failed', 502, false])
  assert.ok(broken.isRetryable)
})

test('errors of another copy of the package are recognized, and foreign ones are not', () => {
  const members = { code: 'not_found', statusCode: 404, isRetryable: false, toJSON: () => ({}) }
  const copied = Object.assign(new Error('no'), members)
  assert.ok(!(copied instanceof StowageError) && isStowageError(copied))
  for (const other of [
    Object.assign(new Error('no'), { ...members, code: 'ENOENT' }),
    Object.assign(new Error('no'), { code: 'not_found' }),
    members,
    undefined,
  ])
    assert.ok(!isStowageError(other))
})
