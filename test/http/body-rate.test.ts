import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyRate } from '../../src/http/body-rate.ts'

const WINDOW_MS = 20_000

/** A body that arrives in equal pieces, after equal waits. */
function receive(rate: BodyRate, pieces: number, { bytes, waitMs }: { bytes: number; waitMs: number }): void {
  for (let piece = 0; piece < pieces; piece++) {
    rate.waited(waitMs)
    rate.came(bytes)
  }
}

test('a body at the lowest rate is accepted in window after window', () => {
  assert.doesNotThrow(() => receive(new BodyRate(500), 100, { bytes: 1_000, waitMs: 2_000 }))
})

test('a body below the lowest rate is refused at the end of the first window, with both figures', () => {
  const rate = new BodyRate(500)
  receive(rate, 9, { bytes: 999, waitMs: 2_000 })
  assert.throws(() => receive(rate, 1, { bytes: 999, waitMs: 2_000 }), {
    code: 'request_aborted',
    message: /only 9990 bytes of the body arrived in 20000 ms; the minimum is 500 bytes a second/,
  })
})

test('the bytes of one window do not count in the next', () => {
  const rate = new BodyRate(500)
  receive(rate, 1, { bytes: 50_000_000, waitMs: WINDOW_MS })
  assert.throws(() => receive(rate, 1, { bytes: 9_999, waitMs: WINDOW_MS }), { code: 'request_aborted' })
})

test('time in which the server did not wait for the client does not count', () => {
  assert.doesNotThrow(() => receive(new BodyRate(500), 1_000, { bytes: 1, waitMs: 0 }))
})

test('a longer wait needs more bytes, and a rate of 0 accepts any body', () => {
  assert.throws(() => receive(new BodyRate(500), 1, { bytes: 10_000, waitMs: 2 * WINDOW_MS }), /only 10000 bytes/)
  assert.doesNotThrow(() => receive(new BodyRate(0), 10, { bytes: 0, waitMs: WINDOW_MS }))
})
