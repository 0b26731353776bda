import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryBudget } from '../../src/memory/memory-budget.ts'
import { ANSWER_BYTES, type AnswerBuffers, AnswerMemory } from '../../src/memory/answer-memory.ts'

const MB = 1_048_576
const PIECE_BYTES = 40_960
/** What all answers may have counted: what is shared by all, and once more by those that read on. */
const LIMIT_BYTES = 12 * MB

/** As a client that takes so many bytes, each buffer as large as it may be. */
function take(answer: AnswerBuffers, bytes: number): void {
  for (let taken = 0; taken < bytes;) {
    const piece = answer.roomBytes
    answer.hold(piece)
    answer.passOn(piece)
    taken += piece
  }
}

test('few responses have large buffers, and each of 500 holds one small one', () => {
  const memory = new AnswerMemory(LIMIT_BYTES)
  assert.equal(memory.roomBytes(), 3 * MB)
  const answers = Array.from({ length: 500 }, () => memory.open())
  for (const answer of answers) {
    assert.deepEqual([answer.roomBytes, answer.aheadBytes], [PIECE_BYTES, 0])
    answer.hold(PIECE_BYTES)
    answer.passOn(PIECE_BYTES)
  }
  assert.equal(memory.heldBytes, 0, 'what each may hold is leased, and not counted once more')
  for (const answer of answers) answer.end()
  assert.equal(memory.roomBytes(), 3 * MB)
})

test('all stalled responses together hold bounded memory, even if they stall one by one', () => {
  const memory = new AnswerMemory(LIMIT_BYTES)
  const answers: AnswerBuffers[] = []
  for (let n = 0; n < 500; n++) {
    const answer = memory.open()
    answers.push(answer)
    for (let buffer = 0; buffer < 4; buffer++) {
      const bytes = buffer < 2 ? answer.roomBytes : Math.min(answer.roomBytes, answer.aheadBytes)
      answer.hold(bytes)
      if (buffer < 2) answer.passOn(bytes)
    }
  }
  assert.ok(memory.heldBytes <= LIMIT_BYTES + 500 * 2 * PIECE_BYTES, `${memory.heldBytes} bytes are held`)
  for (const answer of answers) answer.end()
  assert.equal(memory.heldBytes, 0)
})

test('a client that keeps reading has large buffers among 500 stalled ones, until it pauses', () => {
  let nowMs = 0
  const memory = new AnswerMemory(LIMIT_BYTES, undefined, { monotonicMs: () => nowMs })
  const stopped = Array.from({ length: 500 }, () => memory.open())
  const reading = memory.open()
  take(reading, 7 * MB)
  assert.equal(reading.roomBytes, PIECE_BYTES)
  take(reading, 2 * MB)
  assert.ok(reading.roomBytes >= MB / 2, `${reading.roomBytes} bytes`)
  assert.equal(stopped[0].roomBytes, PIECE_BYTES)
  nowMs += 401
  take(reading, 1)
  assert.equal(reading.roomBytes, PIECE_BYTES)
  for (const answer of [...stopped, reading]) answer.end()
  assert.equal(memory.heldBytes, 0)
})

test('the next response on a connection has large buffers from its start, if the client read on until the end of the last', async () => {
  let nowMs = 0
  const memory = new AnswerMemory(LIMIT_BYTES, undefined, { monotonicMs: () => nowMs })
  const budget = new MemoryBudget(64 * MB)
  const stopped = Array.from({ length: 500 }, () => memory.open())
  const on = async (connection: object | undefined): Promise<AnswerBuffers> => {
    const answer = memory.open()
    await answer.lease(budget.open({ signal: new AbortController().signal, connection }))
    return answer
  }
  const [connection, other] = [{}, {}]
  const first = await on(connection)
  assert.equal(first.roomBytes, PIECE_BYTES)
  take(first, 9 * MB)
  first.end()
  nowMs += 60_000
  const second = await on(connection)
  assert.ok(second.roomBytes >= MB / 2, `${second.roomBytes} bytes`)
  for (const another of [other, undefined]) {
    const answer = await on(another)
    assert.equal(answer.roomBytes, PIECE_BYTES)
    answer.end()
  }
  nowMs += 60_000
  take(second, MB)
  assert.ok(second.roomBytes >= MB / 2, 'the time before the first buffer is no pause of the client')
  nowMs += 401
  take(second, 1)
  assert.equal(second.roomBytes, PIECE_BYTES)
  second.end()
  const third = await on(connection)
  assert.equal(third.roomBytes, PIECE_BYTES)
  for (const answer of [...stopped, third]) answer.end()
  assert.equal(memory.heldBytes, 0)
})

test('a sent buffer counts until the next two have followed, and a finished response counts no more', () => {
  const changes: number[] = []
  const memory = new AnswerMemory(MB, (bytes) => changes.push(bytes))
  const answer = memory.open()
  answer.hold(ANSWER_BYTES)
  for (const bytes of [100, 20, 3]) {
    answer.hold(bytes)
    answer.passOn(bytes)
  }
  assert.equal(memory.heldBytes, 23)
  answer.hold(1_000)
  answer.free(400)
  assert.equal(memory.heldBytes, 623)
  answer.end()
  answer.end()
  answer.hold(50 * MB)
  assert.equal(memory.heldBytes, 0)
  assert.equal(
    changes.reduce((sum, bytes) => sum + bytes, 0),
    0,
  )
})
