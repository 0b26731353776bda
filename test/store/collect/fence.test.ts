import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { KeyedMutex } from '../../../src/async/keyed-mutex.ts'
import { REAL_ENVIRONMENT } from '../../../src/environment.ts'
import { Fence, type FenceParts, LayoutChangedError } from '../../../src/store/collect/fence.ts'
import { epochKey } from '../../../src/store/records/keys.ts'
import { viewProject } from '../../../src/store/records/projects.ts'
import { put } from '../support.ts'
import { node, openCollecting, PROJECT } from './collecting.ts'

const NOTHING = { put: [], expect: [] }

async function fences(): Promise<{ readonly begin: (isDryRun?: boolean) => Promise<Fence> }> {
  const backend = memoryBackend()
  const { store } = await openCollecting(1, backend)
  await put(store, PROJECT, [node('root')])
  const expectation = { key: epochKey(), value: (await backend.records.getMany([epochKey()]))[0] }
  const parts: FenceParts = {
    records: backend.records,
    environment: REAL_ENVIRONMENT,
    epochs: { epochMs: 1_000, current: () => Promise.resolve({ number: 0, expectation }) },
    turns: new KeyedMutex(),
  }
  const project = await viewProject(backend.records, PROJECT)
  assert.ok(project)
  return { begin: (isDryRun = false) => (isDryRun ? Fence.ofDryRun(parts, project) : Fence.of(parts, project)) }
}

test('of two collections of a project the one that began last goes on', async () => {
  const { begin } = await fences()
  const [first, last] = [await begin(), await begin()]
  await assert.rejects(first.raiseLayout(NOTHING), LayoutChangedError)
  await assert.rejects(first.renew(), LayoutChangedError)
  assert.equal(await last.raiseLayout(NOTHING), true)
})

test('a dry run ends no collection', async () => {
  const { begin } = await fences()
  const first = await begin()
  await begin(true)
  assert.equal(await first.raiseLayout(NOTHING), true)
})
