import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FaultInjector, Random } from '../../src/simulation/index.ts'

test('a call is held back once: the one that was counted to, of that name and that machine', () => {
  const faults = new FaultInjector([])
  faults.hold({ machine: 's1', call: 'getMany k', nth: 2, durationMs: 700 })
  assert.equal(faults.heldMs('s1.4', 'getMany k'), 0)
  assert.equal(faults.heldMs('s1.4', 'getMany o'), 0)
  assert.equal(faults.heldMs('s10.1', 'getMany k'), 0)
  assert.equal(faults.fired.size, 0)
  assert.equal(faults.heldMs('s1.5', 'getMany k'), 700)
  assert.deepEqual([...faults.fired], ['hang'])
  assert.equal(faults.heldMs('s1.5', 'getMany k'), 0)
})

test('a fault that is planned on the way meets the call that comes so many calls later', () => {
  const [faults, random] = [new FaultInjector([]), new Random(1)]
  faults.next(random, true)
  faults.plan('full', 2)
  assert.deepEqual(
    Array.from({ length: 4 }, () => faults.next(random, true)),
    [undefined, undefined, 'full', undefined],
  )
})
