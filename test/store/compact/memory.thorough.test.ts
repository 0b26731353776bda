import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { StowageError } from '../../../src/errors.ts'
import { MemoryBudget } from '../../../src/memory/memory-budget.ts'
import { divideMemory } from '../../../src/memory/service-memory.ts'
import { hooked } from '../failures.ts'
import { assertSound, download, heldOf, type Made, never, openStore, put } from '../support.ts'
import { assertHolds, compact, history, PROJECT, uploaded } from './support.ts'

const MB = 1_048_576
const UPLOADS = 40

/** Ids are long, so that the tables of a merged pack take much memory. */
function upload(number: number): Made[] {
  const ids = Array.from({ length: 250 }, (_, i) => `${number}-${i}-`.padEnd(440, `${i}`))
  const elements = ids.map((referencedId) => ({ referencedId }))
  return [...ids.map((id) => ({ id })), { id: `root-${number}`, elements }]
}

/** Notes the most that was held. */
class WatchedBudget extends MemoryBudget {
  peakBytes = 0

  override reserve(...asked: Parameters<MemoryBudget['reserve']>): ReturnType<MemoryBudget['reserve']> {
    const waiting = super.reserve(...asked)
    this.peakBytes = Math.max(this.peakBytes, this.heldBytes)
    return waiting
  }
}

test('a merge of any number of packs stays within its share of the memory', async () => {
  const requests = new WatchedBudget(20 * MB)
  const { store, backend } = await openStore(memoryBackend(), { memory: { ...divideMemory(32 * MB), requests } })
  const uploads = Array.from({ length: UPLOADS }, (_, i) => upload(i))
  for (const objects of uploads) await put(store, PROJECT, objects)
  await store.idle()
  requests.peakBytes = 0
  const roots = [{ kind: 'version', id: 'v', groupId: 'm', rootObjectId: `root-${UPLOADS - 1}` }] as const
  const { packsBefore, packsAfter, merges } = await compact(store, { roots }, { all: true })
  assert.equal(packsBefore, UPLOADS)
  assert.ok(merges > 1 && packsAfter === merges, `${merges} merges left ${packsAfter} packs`)
  assert.ok(packsAfter <= UPLOADS / 4, `${packsAfter} packs`)
  assert.ok(requests.peakBytes <= 0.75 * requests.limitBytes, `${requests.peakBytes} bytes`)
  const ids = uploads.flat().map(({ id }) => id)
  assert.equal((await heldOf(store, PROJECT, ids)).size, ids.length)
  await assertSound(backend)
  await store.close()
})

test('a pack too large for the memory is skipped, and the others are merged', async () => {
  const backend = memoryBackend()
  const filling = await openStore(backend)
  await put(filling.store, PROJECT, Array.from({ length: 50 }, (_, i) => upload(i)).flat())
  for (let i = 0; i < 4; i++) await put(filling.store, PROJECT, [{ id: `small-${i}` }])
  await filling.store.close()
  const { store } = await openStore(backend, { memory: divideMemory(32 * MB) })
  const { packsAfter, stopped } = await compact(store, { roots: [] }, { all: true })
  assert.deepEqual([packsAfter, stopped], [2, null])
  await store.close()
})

test('a merge that requests leave no memory for is tried again when they have ended', async () => {
  const requests = new MemoryBudget(20 * MB, { waitMs: 50 })
  const { store } = await openStore(memoryBackend(), { memory: { ...divideMemory(32 * MB), requests } })
  for (let number = 0; number < 10; number++) await put(store, PROJECT, upload(number))
  await store.idle()
  const others = requests.open({ signal: never, party: { principal: 'others', projectId: PROJECT } })
  await others.hold(0.7 * requests.limitBytes)
  let refusals = 0
  const { open } = requests
  requests.open = (options) => {
    const lease = open.call(requests, options)
    const { hold } = lease
    lease.hold = (...asked) =>
      hold.apply(lease, asked)?.catch((error: unknown) => {
        refusals++
        others.release()
        throw error
      })
    return lease
  }
  const { packsAfter, stopped } = await compact(store, { roots: [] }, { all: true })
  assert.ok(packsAfter <= 2 && stopped === null, `${packsAfter} packs, ${stopped}`)
  assert.ok(refusals > 0, 'the others were in the way')
  await store.close()
})

for (const code of ['storage_full', 'overloaded', 'memory_limit_exceeded'] as const)
  test(`a plan that cannot be stored after a merge (${code}) is made by the next request`, async () => {
    const large = history({ versions: 3, objects: 1_200, changed: 12 })
    const backend = memoryBackend()
    const filling = await uploaded(large, backend)
    await download(filling.store, PROJECT, 'root-3')
    await filling.store.idle()
    await filling.store.close()
    const refusing = { isOn: true }
    const { store } = await openStore(
      hooked(backend, (call, name, work) =>
        refusing.isOn && call === 'put' && name.includes('/plan-')
          ? Promise.reject(new StowageError(code, 'there is no room for a plan'))
          : work(),
      ),
    )
    assert.equal(
      (await store.compactor.compact(PROJECT, () => Promise.resolve(large.roots), { signal: never }))?.merges,
      1,
    )
    refusing.isOn = false
    await assertHolds(store, large, { closures: 1 })
    await store.close()
  })
