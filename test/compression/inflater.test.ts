import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { constants, deflateRawSync } from 'node:zlib'
import { Inflater } from '../../src/compression/inflater.ts'

const JOBS = 200
const GUARD = 0xa5

interface Made {
  readonly raw: Uint8Array
  readonly stored: Uint8Array
}

function made(rawBytes: number): Made {
  const raw = Buffer.from(randomBytes(rawBytes).toString('hex').slice(0, rawBytes))
  return { raw, stored: deflateRawSync(raw, { finishFlush: constants.Z_FULL_FLUSH }) }
}

test('many jobs at once each fill their own memory and nothing else, whatever the others are', async () => {
  const inflater = new Inflater()
  const jobs = Array.from({ length: JOBS }, async (_, number) => {
    const { raw, stored } = made(1 + number * 700)
    const isDamaged = number % 5 === 3
    const memory = Buffer.alloc(raw.length + 3, GUARD)
    const given = isDamaged ? stored.subarray(0, -3) : stored
    const isWhole = await inflater.inflate(given, memory.subarray(1, raw.length + 2))
    assert.equal(isWhole, !isDamaged, `job ${number}`)
    if (isWhole) assert.ok(memory.subarray(1, -2).equals(raw), `output of job ${number}`)
    assert.deepEqual([memory[0], memory.at(-1)], [GUARD, GUARD], `memory around job ${number}`)
  })
  await Promise.all(jobs)
})

test('a fragment that inflates to far more than its memory is stopped at its end', async () => {
  const inflater = new Inflater()
  const stored = deflateRawSync(Buffer.alloc(50_000_000), { finishFlush: constants.Z_FULL_FLUSH })
  const memory = Buffer.alloc(1_001, GUARD)
  assert.equal(await inflater.inflate(stored, memory.subarray(0, 1_000)), false)
  assert.equal(memory[1_000], GUARD)
  const { raw, stored: good } = made(999)
  assert.equal(await inflater.inflate(good, memory.subarray(0, 1_000)), true)
  assert.ok(memory.subarray(0, 999).equals(raw))
})
