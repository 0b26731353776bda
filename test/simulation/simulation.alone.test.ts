import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulate } from '../../src/simulation/index.ts'

/** Ambient time and randomness, each with what a run must not do with it. */
const AMBIENT: readonly (readonly [holder: object, name: string])[] = [
  [globalThis, 'setTimeout'],
  [globalThis, 'setInterval'],
  [Math, 'random'],
  [Date, 'now'],
  [performance, 'now'],
]

/** Fails when one of them is used while `work` goes on. */
async function withoutAmbient<T>(work: () => Promise<T>): Promise<T> {
  const kept = AMBIENT.map(([holder, name]) => [holder, name, Reflect.get(holder, name) as unknown] as const)
  for (const [holder, name] of kept)
    Reflect.set(holder, name, () => {
      throw new Error(`a simulated run used ${name}`)
    })
  try {
    return await work()
  } finally {
    for (const [holder, name, value] of kept) Reflect.set(holder, name, value)
  }
}

test('acknowledged objects stay and responses are right under every fault', async () => {
  for (let seed = 0; seed < 10; seed++) {
    const { violation } = await simulate({ seed })
    assert.equal(violation, undefined, `npm run simulate -- --seed ${seed}`)
  }
})

test('a seed determines the whole run', async () => {
  for (const seed of [1, 7, 18, 40]) assert.deepEqual(await simulate({ seed }), await simulate({ seed }))
})

test('a run uses neither the time nor the randomness of the process', async () => {
  for (let seed = 100; seed < 110; seed++) {
    const { violation, steps } = await withoutAmbient(() => simulate({ seed }))
    assert.equal(violation, undefined)
    assert.ok(steps > 50)
  }
})
