import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { emit } from '../../src/emit/emit.ts'
import type { Selection } from '../../src/object/selection.ts'
import { countLent } from '../support/lent.ts'
import { idSet, idsOf, lineOf, type Made, never, openStore, put, undying } from './support.ts'

/** More than an answer waits for its plan for. */
const OBJECTS = 20_500
const objects: readonly Made[] = [
  ...Array.from({ length: OBJECTS }, (_, i): Made => ({ id: `object-${i}`, text: `${i}`.repeat(20) })),
  {
    id: 'root',
    parts: Array.from({ length: OBJECTS }, (_, i) => ({ speckle_type: 'reference', referencedId: `object-${i}` })),
  },
]

/** The text of an answer each of whose buffers is given back when it was taken, and the memory that did not come back. */
async function answered(
  t: TestContext,
  coding: 'gzip' | 'identity',
  select: () => Promise<Selection | undefined>,
): Promise<{ lines: string[]; lentBytes: number; outBytes: number }> {
  const counted = countLent(t)
  const selection = await select()
  assert.ok(selection !== undefined && selection.plan === undefined)
  const sent: Buffer[] = []
  for await (const bytes of emit(selection, { format: 'text', coding }, { signal: never })) {
    sent.push(Buffer.from(bytes))
    selection.memory?.giveBack(bytes)
  }
  selection.release()
  const all = Buffer.concat(sent)
  const text = (coding === 'gzip' ? gunzipSync(all) : all).toString('utf8')
  return { lines: text.split('\n').slice(0, -1).sort(), lentBytes: counted.bytes, outBytes: counted.outBytes }
}

for (const coding of ['gzip', 'identity'] as const)
  for (const { name, step } of [
    { name: 'every object', step: 1 },
    { name: 'every third object', step: 3 },
  ])
    test(`a list of ${name} of a pack as ${coding} is read into memory that comes back`, async (t) => {
      const { store } = await openStore(undying(memoryBackend()))
      await put(store, 'demo', objects, 500)
      const some = objects.filter((_, i) => i % step === 0)
      const { lines, lentBytes, outBytes } = await answered(t, coding, () =>
        store.select('demo', idSet(idsOf(some)), { signal: never }),
      )
      assert.deepEqual(lines, some.map(lineOf).sort())
      assert.ok(lentBytes > 100_000, `${lentBytes} bytes were lent`)
      assert.equal(outBytes, 0)
      await store.close()
    })

for (const coding of ['gzip', 'identity'] as const)
  test(`a first download as ${coding} is read into memory that comes back`, async (t) => {
    const { store } = await openStore(undying(memoryBackend()))
    await put(store, 'demo', objects, 500)
    const { lines, lentBytes, outBytes } = await answered(t, coding, () =>
      store.closure('demo', 'root', { signal: never }),
    )
    assert.deepEqual(lines, objects.map(lineOf).sort())
    assert.ok(lentBytes > 100_000, `${lentBytes} bytes were lent`)
    assert.equal(outBytes, 0)
    await store.close()
  })
