import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REAL_ENVIRONMENT, WorkTurns } from '../../src/environment.ts'

/** A clock by which only work takes time. */
class WorkClock {
  /** The milliseconds of work in each turn. */
  readonly turns: number[] = [0]
  #nowMs = 0

  monotonicMs(): number {
    return this.#nowMs
  }

  async nextTurn(): Promise<void> {
    await REAL_ENVIRONMENT.nextTurn()
    this.turns.push(0)
  }

  work(ms: number): void {
    this.#nowMs += ms
    this.turns[this.turns.length - 1] += ms
  }
}

async function workers(clock: WorkClock, count: number, stepMs: number, steps: number): Promise<number[]> {
  const order: number[] = []
  const workTurns = new WorkTurns(clock)
  const work = async (worker: number): Promise<void> => {
    for (let step = 0; step < steps; step++) {
      await workTurns.next()
      order.push(worker)
      clock.work(stepMs)
    }
  }
  await Promise.all(Array.from({ length: count }, (_, worker) => work(worker)))
  return order
}

test('long steps of many keep one turn of the event loop no longer than the step of one', async () => {
  const clock = new WorkClock()
  const order = await workers(clock, 22, 8, 5)
  assert.equal(Math.max(...clock.turns), 8)
  assert.deepEqual(order, Array.from({ length: 5 }, () => Array.from({ length: 22 }, (_, worker) => worker)).flat())
})

test('short steps share a turn', async () => {
  const clock = new WorkClock()
  await workers(clock, 40, 1, 1)
  assert.deepEqual(clock.turns.slice(1), Array(10).fill(4))
})
