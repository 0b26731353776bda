import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { readHead } from '../../../src/store/records/projects.ts'
import { encodeHead } from '../../../src/store/records/records.ts'
import { hooked } from '../failures.ts'
import { heldOf, put } from '../support.ts'
import { node, OLDER_THAN, openCollecting, PROJECT, UNDO } from './collecting.ts'

const KEPT = [node('kept', ['leaf']), node('leaf')]
const GOING = [node('going', ['going-leaf']), node('going-leaf')]

test('a pin of condemned objects is added while a collection raises the layout again and again', async () => {
  const memory = memoryBackend()
  let raises = false
  let raised = 0
  const backend = hooked(memory, async (call, detail, work) => {
    const result = await work()
    if (!raises || call !== 'getMany' || !detail.startsWith('o')) return result
    const { key, head } = await readHead(memory.records, PROJECT)
    assert.ok(head !== undefined)
    await memory.records.commit({ put: [{ key, value: encodeHead(key, { ...head, layout: head.layout + 1 }) }] })
    raised++
    return result
  })
  const { store, roots, pass, collect, close } = await openCollecting(1, backend)
  await put(store, PROJECT, KEPT)
  await put(store, PROJECT, GOING)
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  assert.equal((await collect()).condemned.objects, GOING.length)
  raises = true
  const pin = await store.pins.add(PROJECT, { rootObjectId: 'going' })
  raises = false
  assert.ok(raised > 0)
  assert.equal(pin.rootObjectId, 'going')
  roots.add('going')
  await pass(UNDO + 1)
  assert.equal((await collect()).freed.objects, 0)
  assert.equal((await heldOf(store, PROJECT, ['going', 'going-leaf'])).size, GOING.length)
  await close()
})
