import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { ANSWER_BYTES } from '../../src/memory/answer-memory.ts'
import { MemoryBudget } from '../../src/memory/memory-budget.ts'
import { divideMemory } from '../../src/memory/service-memory.ts'
import { SharedMemory } from '../../src/memory/shared-memory.ts'
import { PATIENCE_MS, turns } from '../support/patience.ts'

const MB = 1_048_576
const never = new AbortController().signal
const PIECE_BYTES = 40_960

test('what several requests share is leased once, from the first to the last of them', async () => {
  const budget = new MemoryBudget(1_000)
  const shared = new SharedMemory(400)
  const [first, second] = [budget.open({ signal: never }), budget.open({ signal: never })]
  await Promise.all([shared.use(first), shared.use(second)])
  assert.equal(budget.heldBytes, 400)
  first.release()
  shared.release()
  assert.equal(budget.heldBytes, 400)
  second.release()
  shared.release()
  assert.equal(budget.heldBytes, 0)
  const third = budget.open({ signal: never })
  await shared.use(third)
  assert.equal(budget.heldBytes, 400)
  shared.release()
  third.release()
  assert.equal(budget.heldBytes, 0)
})

test('a user that gets no memory for it does not keep the others from it', async () => {
  const budget = new MemoryBudget(1_000, { waitMs: PATIENCE_MS })
  const shared = new SharedMemory(400)
  const other = budget.open({ signal: never })
  await other.hold(700)
  const gone = new AbortController()
  const first = shared.use(budget.open({ signal: gone.signal }))
  const second = shared.use(budget.open({ signal: never }))
  const refused = assert.rejects(first, /left/)
  gone.abort(new Error('the client left'))
  await refused
  await turns()
  other.release()
  await second
  assert.equal(budget.heldBytes, 400)
  shared.release()
  assert.equal(budget.heldBytes, 0)
  await assert.rejects(new SharedMemory(2_000).use(budget.open({ signal: never })), { code: 'memory_limit_exceeded' })
  assert.equal(budget.heldBytes, 0)
})

test('answers whose clients pause give way to a request that waits, and what is on its way to them counts', async () => {
  let nowMs = 0
  const environment = { ...REAL_ENVIRONMENT, monotonicMs: () => nowMs }
  const { requests, answers } = divideMemory(96 * MB, { waitMs: PATIENCE_MS, environment })
  const begun = async (): Promise<{ readonly release: () => void; readonly take: () => void }> => {
    const lease = requests.open({ signal: never })
    const buffers = answers.open()
    await buffers.lease(lease)
    const take = (): void => {
      buffers.hold(PIECE_BYTES)
      buffers.passOn(PIECE_BYTES)
    }
    take()
    return { take, release: () => [buffers.end(), lease.release()] }
  }
  const paused = await Promise.all(Array.from({ length: 600 }, begun))
  assert.equal(requests.heldBytes, 600 * ANSWER_BYTES)
  nowMs += 401
  const reading = await begun()
  const large = requests.open({ signal: never })
  await large.hold(15 * MB)
  assert.equal(requests.heldBytes, 600 * PIECE_BYTES + ANSWER_BYTES + 15 * MB, 'the one that reads keeps its lease')
  large.release()
  for (const { take } of paused.slice(0, 100)) {
    take()
    take()
  }
  const leased = 100 * ANSWER_BYTES + ANSWER_BYTES
  assert.equal(requests.heldBytes, 500 * PIECE_BYTES + leased, 'a client that reads on has its lease again')
  for (const { release } of [...paused, reading]) release()
  assert.equal(requests.heldBytes, 0)
  assert.equal(answers.heldBytes, 0)
})
