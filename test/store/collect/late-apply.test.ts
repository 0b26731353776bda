import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { PackStore } from '../../../src/store/pack-store.ts'
import { gate, hooked, sharing, writesIds } from '../failures.ts'
import { assertSound, heldOf, never, openStore, put } from '../support.ts'
import { type Collecting, node, OLDER_THAN, openCollecting, PROJECT, UNDO } from './collecting.ts'

const LATE = ['late-1', 'late-2', 'late-3']
/** What others refer to is written first, and by itself. */
const OBJECTS = [node('late-1', ['late-2', 'late-3']), node('late-2'), node('late-3')]

interface Late {
  readonly collecting: Collecting
  /** The server that sleeps after the commit of its upload. */
  readonly sleeper: PackStore
  /** Wakes it; resolves when its upload has ended, either way. */
  readonly wake: () => Promise<unknown>
}

/**
 * A server commits an upload and sleeps before it writes the ids. Another server applies the pack, and condemns its
 * objects. `fails` makes the write of the first server fail though it was made.
 */
async function uploadThatSleeps({ fails }: { readonly fails: boolean }): Promise<Late> {
  const backend = sharing(memoryBackend())
  const [begun, go] = [gate(), gate()]
  let isAsleep = false
  let isFailing = fails
  const { store: sleeper } = await openStore(
    hooked(backend, async (call, key, work) => {
      if (!isAsleep || !writesIds(call, key)) return work()
      begun.open()
      await go.opened
      const done = await work()
      if (!isFailing) return done
      isFailing = false
      throw new Error('the connection was reset')
    }),
  )
  await put(sleeper, PROJECT, [node('keeper')])
  isAsleep = true
  const uploading = put(sleeper, PROJECT, OBJECTS).catch((error: unknown) => error)
  await begun.opened
  const collecting = await openCollecting(1, backend)
  collecting.roots.add('keeper')
  await collecting.pass(OLDER_THAN + 1)
  assert.equal((await collecting.collect()).condemned.objects, LATE.length)
  const wake = (): Promise<unknown> => {
    go.open()
    return uploading
  }
  return { collecting, sleeper, wake }
}

async function mergeAll({ store, readRoots }: Collecting): Promise<void> {
  const report = await store.compactor.compact(PROJECT, readRoots, { signal: never, all: true })
  assert.equal(report?.packsAfter, 1)
}

test('an upload that is applied late brings no condemned object back into a pack that was merged', async () => {
  const { collecting, sleeper, wake } = await uploadThatSleeps({ fails: false })
  const { store, backend } = collecting
  await mergeAll(collecting)
  await wake()
  await store.compactor.dropRetired(PROJECT, () => true, never)
  await assertSound(backend)
  assert.deepEqual(await heldOf(store, PROJECT, LATE), new Set())
  // They can be restored still.
  assert.equal((await store.collector.restore(PROJECT, { signal: never }))?.objects, LATE.length)
  assert.deepEqual(await heldOf(store, PROJECT, LATE), new Set(LATE))
  await assertSound(backend)
  await sleeper.close()
  await collecting.close()
})

for (const isMerged of [false, true])
  test(`ids that a late upload wrote before it failed go when it is tried again (${isMerged ? 'its pack was merged' : 'its objects were freed'})`, async () => {
    const { collecting, sleeper, wake } = await uploadThatSleeps({ fails: true })
    const { store, backend } = collecting
    await collecting.pass(UNDO + 1)
    assert.equal((await collecting.collect()).freed.objects, LATE.length)
    if (isMerged) await mergeAll(collecting)
    assert.ok((await wake()) instanceof Error)
    await put(sleeper, PROJECT, [node('another')])
    await sleeper.idle()
    await assertSound(backend)
    assert.deepEqual(await heldOf(store, PROJECT, LATE), new Set())
    await sleeper.close()
    await collecting.close()
  })
