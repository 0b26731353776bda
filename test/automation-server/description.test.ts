import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Asked, automated, definition, waiting, withVersion } from './support.ts'

function refused({ status, json }: Asked): readonly [number, string] {
  return [status, json.code]
}

test('functions are listed in pages, and invalid page parameters are refused', async (t) => {
  const functions = ['c', 'a', 'b'].map((id) => ({ ...definition(waiting), id }))
  const { ask } = automated(t, { functions })
  const idsOf = ({ json }: Asked): unknown => [(json.items as { id: string }[]).map(({ id }) => id), json.cursor]
  assert.deepEqual(idsOf(await ask('GET', 'p/functions')), [['a', 'b', 'c'], null])
  assert.deepEqual(idsOf(await ask('GET', 'p/functions?limit=2')), [['a', 'b'], '2'])
  assert.deepEqual(idsOf(await ask('GET', 'p/functions?limit=2&cursor=2')), [['c'], null])
  assert.deepEqual(idsOf(await ask('GET', 'p/functions?cursor=ffffffff')), [[], null])
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'limit=', 'cursor=x', 'cursor=', 'cursor=0&cursor=1', 'a=b'])
    assert.deepEqual(refused(await ask('GET', `p/functions?${query}`)), [400, 'invalid_request'], query)
})

test('a required body must be present, and an optional one may be absent', async (t) => {
  const { ask, ...fixture } = automated(t, { functions: [definition(waiting)] })
  const { modelId } = await withVersion(fixture)
  const automation = { name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' }
  const { id } = (await ask('POST', 'p/automations', automation)).json
  for (const [method, path] of [
    ['PATCH', `p/automations/${String(id)}`],
    ['POST', 'p/functions/checker/validate'],
    ['POST', 'p/models'],
  ]) {
    const answer = await ask(method, path)
    assert.deepEqual(
      [...refused(answer), answer.json.message],
      [400, 'invalid_json', 'the request has no body; it must be JSON'],
      path,
    )
  }
  assert.equal((await ask('PATCH', `p/automations/${String(id)}`, {})).status, 200)
  assert.equal((await ask('POST', `p/automations/${String(id)}/runs`)).status, 201)
})

test('an idempotency key that is too long is refused for every caller', async (t) => {
  const { ask, ...fixture } = automated(t)
  const { modelId } = await withVersion(fixture)
  const headers = { 'Idempotency-Key': 'k'.repeat(201) }
  const answer = await ask('POST', `p/models/${modelId}/versions`, { rootObjectId: 'a', message: '' }, headers)
  assert.deepEqual(refused(answer), [400, 'invalid_request'])
})
