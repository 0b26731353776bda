import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brokenPromises, stableNames } from '../support/stable-names.ts'

/* `npm run api` compares the promises with the committed ones; here is what it calls breaking. */

const names = await stableNames()

/** The same promises with one line in the place of another. */
function changed(from: string, ...to: readonly string[]): readonly string[] {
  assert.ok(names.includes(from), `there is no line ${from}`)
  return [...names.filter((line) => line !== from), ...to]
}

test('docs/versioning.md lists the stable names: codes, HTTP, archives, the command line, metrics', () => {
  for (const line of [
    'error invalid_json 400',
    'exit 2 usage',
    'http GET /objects/{projectId}/{objectId} query have ObjectId|string[]',
    'http POST /objects/{projectId} body application/json UploadBatch',
    'http GET /api/v1/projects/{projectId}/runs answers 200 application/json RunPage',
    'schema Run.status RunStatus',
    'must schema NewModel.name',
    'command stowage serve --data <value>',
    'environment STOWAGE_TOKEN',
    'metric stowage_requests_total{method,route,status}',
    'http GET /api/v1/projects/{projectId}/export/objects query after string',
    'archive entry manifest.json',
    'archive record version rootObjectId',
    'archive source.json cursor',
  ])
    assert.ok(names.includes(line), line)
  assert.deepEqual(brokenPromises(names, names), [])
})

test('a removed or changed name is a breaking change', () => {
  for (const [from, ...to] of [
    ['error invalid_json 400'],
    ['error invalid_json 400', 'error invalid_json 422'],
    ['schema Run.status RunStatus', 'schema Run.status string'],
    ['http GET /api/v1/projects/{projectId}/runs query status RunStatus'],
    ['command stowage serve --data <value>', 'command stowage serve --folder <value>'],
    ['metric stowage_requests_total{method,route,status}', 'metric stowage_requests_total{method,status}'],
  ])
    assert.deepEqual(brokenPromises(names, changed(from, ...to)), [`gone: ${from}`])
})

test('a new name is not a breaking change unless an old one requires it', () => {
  const path = 'http POST /api/v1/projects/{projectId}/models'
  for (const line of [
    'error something_new 400',
    'schema Run.cost number',
    'must schema NewThing.name',
    'http POST /api/v1/things',
    'must http POST /api/v1/things body content',
    `${path} query dry boolean`,
  ])
    assert.deepEqual(brokenPromises(names, [...names, line]), [], line)
  for (const duty of ['schema NewModel.owner', `${path} query dry`])
    assert.deepEqual(brokenPromises(names, [...names, `must ${duty}`]), [`asked of clients: ${duty}`])
})
