import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REAL_ENVIRONMENT, type Environment } from '../../src/environment.ts'
import { referTo } from './graphs.ts'
import { type Made, never, type Opened, openStore, put, within } from './support.ts'

async function countBelow(
  opened: Opened,
  project: string,
  root: string,
): Promise<{ objects: number; missing: number }> {
  const selection = await opened.store.closure(project, root, { signal: never })
  assert.ok(selection !== undefined)
  selection.release()
  return { objects: selection.objects, missing: selection.missing }
}

test('a chain of 100,000 objects is walked in one pack and in two alternating ones', async () => {
  const opened = await openStore()
  const chain = Array.from({ length: 100_000 }, (_, i): Made => ({
    id: `c${i}`,
    children: referTo(i < 99_999 ? [`c${i + 1}`] : []),
  }))
  await put(opened.store, 'one', chain, 10_000)
  assert.deepEqual(await within('a chain', countBelow(opened, 'one', 'c0')), { objects: 100_000, missing: 0 })
  for (const parity of [0, 1])
    await put(
      opened.store,
      'two',
      chain.slice(0, 30_000).filter((_, i) => i % 2 === parity),
      10_000,
    )
  assert.deepEqual(await within('an alternating chain', countBelow(opened, 'two', 'c0')), {
    objects: 30_000,
    missing: 1,
  })
  await opened.store.close()
})

test('100,000 children of one parent are walked, missing and then present', async () => {
  const opened = await openStore()
  const children = Array.from({ length: 100_000 }, (_, i): Made => ({ id: `k${i}` }))
  await put(opened.store, 'demo', [{ id: 'parent', children: referTo(children.map(({ id }) => id)) }])
  assert.deepEqual(await within('missing children', countBelow(opened, 'demo', 'parent')), {
    objects: 1,
    missing: 100_000,
  })
  await put(opened.store, 'demo', children.slice(0, 60_000), 10_000)
  assert.deepEqual(await within('some children', countBelow(opened, 'demo', 'parent')), {
    objects: 60_001,
    missing: 40_000,
  })
  await put(opened.store, 'demo', children.slice(60_000), 10_000)
  assert.deepEqual(await within('all children', countBelow(opened, 'demo', 'parent')), { objects: 100_001, missing: 0 })
  await opened.store.close()
})

test('the first answer of a large closure waits for its plan only if a length or a range is asked for', async () => {
  // Waiting would never end by itself.
  const environment: Environment = {
    ...REAL_ENVIRONMENT,
    setTimer: (delayMs, act) => REAL_ENVIRONMENT.setTimer(delayMs <= 500 ? 2 ** 30 : delayMs, act).unref(),
  }
  const opened = await openStore(undefined, { environment })
  const children = Array.from({ length: 20_000 }, (_, i): Made => ({ id: `k${i}` }))
  const roots = ['one', 'two'].map((id) => ({ id, children: referTo(children.map((child) => child.id)) }))
  await put(opened.store, 'demo', [...children, ...roots], 10_000)
  const isPlanned = async (root: string, needsPlan: boolean): Promise<boolean> => {
    const selection = await opened.store.closure('demo', root, { signal: never, needsPlan })
    selection?.release()
    return selection?.plan !== undefined
  }
  assert.equal(await isPlanned('one', false), false)
  assert.equal(await isPlanned('two', true), true)
  await opened.store.close()
})
