import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openService } from './served.ts'

/** What `requests` sends for specklepy, seen on the wire. */
const SPECKLEPY = { 'User-Agent': 'python-requests/2.32.5', Accept: 'text/plain' }

async function warningsOf(
  uploadStatus: 200 | 201,
  clients: readonly Readonly<Record<string, string>>[],
): Promise<readonly string[]> {
  const warnings: string[] = []
  const logger = { error: () => undefined, warn: (_fields: object, message: string) => void warnings.push(message) }
  const service = openService({ uploadStatus, logger })
  for (const client of clients) {
    const form = new FormData()
    form.set('batch-1', new Blob(['[{"id":"a"}]'], { type: 'application/json' }), 'batch-1')
    const request = new Request('http://in.process/objects/demo', { method: 'POST', headers: client, body: form })
    assert.equal((await service.fetch(request)).status, uploadStatus)
  }
  await service.close()
  return warnings
}

void test('an operator is told once that specklepy needs 201', async () => {
  const [warning, ...others] = await warningsOf(200, [SPECKLEPY, SPECKLEPY])
  assert.match(warning, /--upload-status 201/)
  assert.deepEqual(others, [])
})

void test('no notice appears with 201 or for other clients', async () => {
  const others: readonly Readonly<Record<string, string>>[] = [
    {},
    { 'User-Agent': 'python-requests/2.32.5', Accept: '*/*' },
    { 'User-Agent': 'curl/8.14.1', Accept: 'text/plain' },
  ]
  assert.deepEqual(await warningsOf(200, others), [])
  assert.deepEqual(await warningsOf(201, [SPECKLEPY]), [])
})
