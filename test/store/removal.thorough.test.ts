import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { faulty, noFault } from './failures.ts'
import { randomGraph, seeded } from './graphs.ts'
import { assertSound, heldCount, heldOf, type Made, measureStorage, openStore, put } from './support.ts'

const GRAPH: readonly Made[] = randomGraph(seeded(31), { objects: 12, paddingBytes: 150 })
const ROOT: string = GRAPH[0].id

test('a removal that fails or crashes at any call completes after reopening, and other projects lose nothing', async () => {
  for (const mode of ['once', 'crash'] as const) {
    for (const isDone of [false, true]) {
      for (let at = 0; ; at++) {
        const fault = noFault()
        const inner = memoryBackend()
        const opened = await openStore(inner, { backend: faulty(inner, fault) })
        for (const project of ['demo', 'other']) {
          await put(opened.store, project, GRAPH.slice(0, 8))
          await put(opened.store, project, GRAPH.slice(8, 12))
        }
        await opened.store.idle()
        Object.assign(fault, { calls: 0, at, isDone, mode })
        const isAnswered = await opened.store.remove('demo').then(
          () => true,
          () => false,
        )
        await opened.store.idle()
        const wasHit = fault.calls > at
        const reopened = await openStore(inner)
        await reopened.store.idle()
        assert.deepEqual(reopened.background, [])
        const isThere = (await heldOf(reopened.store, 'demo', [ROOT])).size > 0
        if (isAnswered) assert.equal(isThere, false)
        if (isThere) {
          assert.equal(await heldCount(reopened.store, 'demo', GRAPH), GRAPH.length)
          await reopened.store.remove('demo')
          await reopened.store.idle()
        }
        assert.equal(await heldCount(reopened.store, 'other', GRAPH), GRAPH.length)
        await assertSound(inner)
        await reopened.store.remove('other')
        await reopened.store.idle()
        const { blobs, records } = await measureStorage(inner)
        assert.deepEqual(records, { h: 2 }, `call ${at}`)
        assert.equal(blobs.length, 2)
        await reopened.store.close()
        if (!wasHit) break
      }
    }
  }
})
