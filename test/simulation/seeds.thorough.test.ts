import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulate } from '../../src/simulation/index.ts'

const FAULT_KINDS = 10

test('seeds differ: some cause faults of every kind, and some cause none', async () => {
  const fired = new Set<string>()
  let calm = 0
  for (let seed = 200; seed < 260 && (fired.size < FAULT_KINDS || calm === 0); seed++) {
    const simulation = await simulate({ seed })
    for (const kind of simulation.fired) fired.add(kind)
    if (simulation.fired.length === 0) calm++
  }
  assert.equal(fired.size, FAULT_KINDS)
  assert.ok(calm > 0)
})
