import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { node, OLDER_THAN, openCollecting, PROJECT, UNDO } from './collect/collecting.ts'
import { smallest } from './compact/support.ts'
import { hooked } from './failures.ts'
import { assertSound, download, listed, never, openStore, put } from './support.ts'

const OLD = 'old'

/** Old in all of its objects, which are condemned when `kept` is the only root. */
function oldObjects(children: number): { readonly ids: string[]; readonly objects: ReturnType<typeof node>[] } {
  const ids = Array.from({ length: children }, (_, i) => `child-${i}`)
  return { ids, objects: [...ids.map((id) => node(id)), node(OLD, ids)] }
}

/** The storage, as one that refuses everything from some commit on: as a server does that dies there. */
function dying(inner: StorageBackend): {
  readonly backend: StorageBackend
  readonly death: { afterCommits: number; hasCome: boolean }
} {
  const death = { afterCommits: Infinity, hasCome: false }
  const backend = hooked(inner, (call, _detail, work) => {
    if (call === 'commit' && death.afterCommits-- <= 0) death.hasCome = true
    return death.hasCome ? Promise.reject(new Error('dead')) : work()
  })
  return { backend, death }
}

/** That the answer holds of these objects those that are there, with the text that counts. */
async function assertSendsWhatIsThere(
  store: Parameters<typeof download>[0],
  ids: readonly string[],
  message: string,
): Promise<void> {
  const there = await listed(store, PROJECT, ids)
  const got = (await download(store, PROJECT, OLD))?.lines.filter((line) => !line.startsWith(`${OLD}\t`))
  assert.ok(got !== undefined)
  const [sent, held] = [new Set(got), new Set(there)]
  const wrong = { sent: got.filter((line) => !held.has(line)), lacking: there.filter((line) => !sent.has(line)) }
  assert.ok(wrong.sent.length + wrong.lacking.length === 0, `${message}: ${JSON.stringify(wrong).slice(0, 300)}`)
}

/** Plans of more than 1,000 objects are stored, smaller ones stay in memory. */
for (const { children, cuts } of [
  { children: 60, cuts: [1, 2, 3, 4] },
  { children: 1_200, cuts: [1, 20] },
])
  test(`a plan of ${children} objects that a server keeps sends nothing that another server has freed, wherever it died`, async () => {
    const { ids, objects } = oldObjects(children)
    let partlyFreed = 0
    for (const cut of cuts) {
      const backend = smallest(memoryBackend())
      const victim = dying(backend)
      const collecting = await openCollecting(1, victim.backend)
      const { store } = await openStore(backend)
      await put(collecting.store, PROJECT, [node('kept')])
      await put(collecting.store, PROJECT, objects)
      collecting.roots.add('kept')
      await collecting.pass(OLDER_THAN + 1)
      assert.equal((await collecting.collect()).condemned.objects, objects.length)
      for (const isPlanned of [false, true]) {
        const got = await download(store, PROJECT, OLD)
        assert.equal(got?.ids.size, objects.length)
        if (isPlanned) assert.ok(got.isPlanned)
        await store.idle()
      }
      await collecting.pass(UNDO + 1)
      victim.death.afterCommits = cut
      await assert.rejects(collecting.collect())
      assert.ok(victim.death.hasCome)
      const left = await listed(store, PROJECT, ids)
      if (left.length > 0 && left.length < ids.length) partlyFreed++
      for (let again = 0; again < 2; again++) {
        if ((await listed(store, PROJECT, [OLD])).length === 0) continue
        await assertSendsWhatIsThere(store, ids, `died at commit ${cut}`)
        await store.idle()
      }
      await store.close()
      await collecting.close()
    }
    assert.ok(partlyFreed > 0, 'some were freed, and others not')
  })

for (const merges of [1, 2])
  test(`a plan that a server did not make anew after ${merges} merges, because it died, sends what counts`, async () => {
    const { ids, objects } = oldObjects(1_200)
    const backend = memoryBackend()
    const collecting = await openCollecting(1, backend)
    const { store, roots } = collecting
    await put(store, PROJECT, [node('kept')])
    await put(store, PROJECT, objects)
    await download(store, PROJECT, OLD)
    await store.idle()
    roots.add('kept')
    for (let merge = 0; merge < merges; merge++) {
      // The server dies after the merge, at the commit that drops the plan.
      const { store: merging } = await openStore(
        hooked(backend, (call, detail, work) =>
          call === 'commit' && detail.includes('plan-') ? Promise.reject(new Error('dead')) : work(),
        ),
      )
      await put(merging, PROJECT, [node(`beside-${merge}`)])
      await collecting.pass(3)
      const compacting = merging.compactor.compact(PROJECT, collecting.readRoots, { signal: never, all: true })
      await assert.rejects(compacting, /cannot be used/)
      await merging.close()
    }
    await collecting.pass(OLDER_THAN + 1)
    assert.equal((await collecting.collect()).condemned.objects, objects.length + merges)
    const { store: reader } = await openStore(backend)
    const got = await download(reader, PROJECT, OLD)
    assert.ok(got?.isPlanned === true && got.ids.size === objects.length, 'the plan that names merged packs is used')
    await put(store, PROJECT, [node('child-1', [], 'another text')])
    await assertSendsWhatIsThere(reader, ids, 'an object came again with another text')
    await reader.close()
    await collecting.pass(UNDO + 1)
    await collecting.collect()
    await put(store, PROJECT, objects.slice(-1))
    const { store: later } = await openStore(backend)
    await assertSendsWhatIsThere(later, ids, 'objects were freed')
    await later.close()
    await assertSound(backend)
    await collecting.close()
  })
