import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WalkPrecedence } from '../../src/store/closure/walk-precedence.ts'
import { turns } from '../support/patience.ts'
import { gate } from './failures.ts'
import { never } from './support.ts'

/** A walk that ends when told to, and counts how often it begins. */
function countedWalk(): { begun: number; end: () => void; walk: (signal: AbortSignal) => Promise<string> } {
  const { opened, open } = gate()
  const counted = {
    begun: 0,
    end: open,
    walk: async (signal: AbortSignal) => {
      counted.begun++
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
        void opened.then(resolve)
      })
      return 'a closure'
    },
  }
  return counted
}

test('a walk of upkeep waits for those of requests, and begins anew twice at most when more of them come', async () => {
  const precedence = new WalkPrecedence()
  const before = gate()
  void precedence.ofRequest(before.opened)
  const upkeep = countedWalk()
  const { walking } = precedence.ofUpkeep(upkeep.walk, never)
  await turns()
  assert.equal(upkeep.begun, 0)
  before.open()
  await turns()
  assert.equal(upkeep.begun, 1)
  for (const times of [2, 3, 3]) {
    const request = gate()
    void precedence.ofRequest(request.opened)
    await turns()
    request.open()
    await turns()
    assert.equal(upkeep.begun, times)
  }
  upkeep.end()
  assert.equal(await walking, 'a closure')
})

test('a walk of upkeep that a request joins neither waits nor begins anew', async () => {
  const precedence = new WalkPrecedence()
  void precedence.ofRequest(gate().opened)
  const upkeep = countedWalk()
  const { walking, join } = precedence.ofUpkeep(upkeep.walk, never)
  join()
  await turns()
  void precedence.ofRequest(gate().opened)
  await turns()
  assert.equal(upkeep.begun, 1)
  upkeep.end()
  assert.equal(await walking, 'a closure')
})

test('a walk of upkeep ends as told, while it waits and while it walks', async () => {
  for (const isWaiting of [true, false]) {
    const precedence = new WalkPrecedence()
    if (isWaiting) void precedence.ofRequest(gate().opened)
    const ending = new AbortController()
    const upkeep = countedWalk()
    const { walking } = precedence.ofUpkeep(upkeep.walk, ending.signal)
    await turns()
    ending.abort(new Error('the store closes'))
    await assert.rejects(walking, /the store closes/)
    assert.equal(upkeep.begun, isWaiting ? 0 : 1)
  }
})

test('a failed walk of upkeep is not begun anew', async () => {
  const precedence = new WalkPrecedence()
  let begun = 0
  const fail = (): Promise<never> => {
    begun++
    return Promise.reject(new Error('a damaged pack'))
  }
  await assert.rejects(precedence.ofUpkeep(fail, never).walking, /a damaged pack/)
  assert.equal(begun, 1)
})
