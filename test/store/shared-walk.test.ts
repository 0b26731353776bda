import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { MemoryLease } from '../../src/memory/memory-lease.ts'
import { divideMemory } from '../../src/memory/service-memory.ts'
import { PATIENCE_MS, turns } from '../support/patience.ts'
import { gate, hooked } from './failures.ts'
import { referTo } from './graphs.ts'
import { download, type Made, never, openStore, put, until, within } from './support.ts'

test('a download that waits for a walk of upkeep goes on by itself when upkeep gives its memory to another', async (t) => {
  const below: Made[] = Array.from({ length: 3_000 }, (_, at) => ({ id: `${at}`.padStart(32, 'e'), text: `${at}` }))
  const { store: first, backend } = await openStore(memoryBackend())
  await put(first, 'demo', below)
  await first.close()

  const memory = divideMemory(8_000_000, { waitMs: PATIENCE_MS, patienceMs: 5 })
  const pass = gate()
  let reads = 0
  const { store } = await openStore(
    hooked(backend, async (call, _name, work) => {
      // The tables of the root's pack, and then those of the other one.
      if (call === 'read' && ++reads === 2) await pass.opened
      return work()
    }),
    { memory },
  )
  await put(store, 'demo', [{ id: 'root', children: referTo(below.map(({ id }) => id)) }])
  await until(() => reads === 2)
  let isDownloaded = false
  const downloading = download(store, 'demo', 'root').then((got) => ((isDownloaded = true), got))
  await turns()
  const { requests } = memory
  const other = requests.open({ signal: never, party: { principal: 'other', projectId: 'demo' } })
  const revoke = t.mock.method(MemoryLease.prototype, 'revoke')
  const granted = other.hold(requests.limitBytes - 65_536)
  await until(() => revoke.mock.callCount() > 0)
  pass.open()
  await within('upkeep gives way', Promise.resolve(granted))
  await turns()
  assert.equal(isDownloaded, false, 'the walk of upkeep ended first')
  other.release()
  assert.equal((await within('the download', downloading))?.lines.length, below.length + 1)
  await store.close()
  assert.equal(requests.heldBytes, 0)
})
