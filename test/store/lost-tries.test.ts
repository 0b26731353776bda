import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { KeyedMutex } from '../../src/async/keyed-mutex.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { changeObjects } from '../../src/store/records/change-objects.ts'
import { LoweredTotals } from '../../src/store/records/lowered-totals.ts'
import { readObjects } from '../../src/store/records/locator.ts'
import { readStoredTotals } from '../../src/store/records/totals.ts'
import { hooked, writesIds } from './failures.ts'
import { assertSound, openStore, put } from './support.ts'

/* A commit that another server got ahead of is tried again with the values that its conflicts named. */

const PROJECT = { projectId: 'demo', generation: 1 }
const ID = Buffer.from('a')

/** Calls of a store, in their order; before each commit `meanwhile` may do something. */
function watched(inner: ReturnType<typeof memoryBackend>, calls: string[], meanwhile: () => Promise<unknown>) {
  return hooked(inner, async (call, detail, work) => {
    if (call === 'commit') await meanwhile()
    calls.push(writesIds(call, detail) ? 'apply' : call)
    return work()
  })
}

test('an upload that loses its commit to another server commits at once, without a read', async () => {
  const inner = memoryBackend()
  const other = await openStore(inner)
  const calls: string[] = []
  let rivals = 2
  const store = await openStore(
    watched(inner, calls, async () => {
      if (rivals-- > 0) await put(other.store, 'demo', [{ id: `rival ${rivals}`, text: 'x' }])
    }),
  )
  calls.length = 0
  await put(store.store, 'demo', [{ id: 'mine', text: 'y' }])
  const tries = calls.slice(calls.indexOf('commit'), calls.lastIndexOf('apply'))
  assert.deepEqual(tries, ['commit', 'commit', 'commit'])
  await Promise.all([store.store.close(), other.store.close()])
  await assertSound(inner)
})

test('a refused commit is decided again from the values that it found, and totals that appear meanwhile count', async () => {
  const inner = memoryBackend()
  const { store } = await openStore(inner)
  await put(store, 'demo', [{ id: 'a', text: 'x' }])
  const { expectation, totals } = await readStoredTotals(inner.records, PROJECT)
  await inner.records.commit({ remove: [expectation.key] })
  const [record] = await readObjects(inner.records, PROJECT, [ID])
  assert.ok(record !== undefined && totals !== undefined && expectation.value !== undefined)
  const calls: string[] = []
  let rivals = 1
  const { records } = watched(inner, calls, async () => {
    if (rivals-- <= 0) return
    // Another server counts the totals and condemns the object.
    await inner.records.commit({ put: [{ key: expectation.key, value: expectation.value as Uint8Array }] })
    const parts = { records: inner.records, environment: REAL_ENVIRONMENT }
    await changeObjects(parts, PROJECT, [ID], (held) => ({ ...(held ?? record), state: 'condemned', epoch: 7 }))
  })
  const lowered = new LoweredTotals({ records, turns: new KeyedMutex() }, PROJECT)
  calls.length = 0
  const seen: (number | undefined)[] = []
  const parts = { records, environment: REAL_ENVIRONMENT }
  await changeObjects(
    parts,
    PROJECT,
    [ID],
    (held) => {
      seen.push(held?.epoch)
      return undefined
    },
    undefined,
    lowered,
  )
  assert.deepEqual(seen, [record.epoch, 7])
  // The object is read once, the totals in each turn.
  assert.deepEqual(calls, ['getMany', 'getMany', 'commit', 'getMany', 'commit'])
  assert.deepEqual(await readObjects(inner.records, PROJECT, [ID]), [undefined])
  assert.equal((await readStoredTotals(inner.records, PROJECT)).totals?.objects, totals.objects - 1)
  await store.close()
})
