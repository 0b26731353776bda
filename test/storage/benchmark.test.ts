import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storageBenchmark } from '../../src/storage/conformance/index.ts'
import { mapBackend } from './third-party-backend.ts'

test('the storage benchmark measures any backend and leaves no blob', async () => {
  const backend = mapBackend()
  const figures = await storageBenchmark(backend, { records: 2_000, blobBytes: 8 * 1_048_576 })
  for (const [name, figure] of Object.entries(figures))
    assert.ok(Number.isFinite(figure) && figure > 0, `${name} is ${figure}`)
  for await (const batch of backend.blobs.list('benchmark/')) assert.equal(batch.length, 0)
  await backend.close()
})
