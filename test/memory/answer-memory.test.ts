import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnswerMemory } from '../../src/memory/answer-memory.ts'

const MB = 1_048_576

test('few answers have large buffers, and 500 that stopped hold little more than the limit', () => {
  const memory = new AnswerMemory(12 * MB)
  assert.equal(memory.roomBytes, 3 * MB)
  const answers = Array.from({ length: 500 }, () => memory.open())
  for (const answer of answers) {
    for (let buffer = 0; buffer < 4; buffer++) {
      const bytes = answer.roomBytes
      answer.hold(bytes)
      answer.passOn(bytes)
    }
  }
  assert.equal(memory.roomBytes, 32_768)
  assert.ok(memory.heldBytes <= 12 * MB + 500 * 2 * 32_768, `${memory.heldBytes} bytes are held`)
  for (const answer of answers) answer.end()
  assert.equal(memory.heldBytes, 0)
})

test('what was passed on counts until the next two have followed, and an answer that is over counts no more', () => {
  const memory = new AnswerMemory(MB)
  const answer = memory.open()
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
  answer.hold(50)
  assert.equal(memory.heldBytes, 0)
})
