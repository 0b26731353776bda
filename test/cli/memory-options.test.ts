import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsed } from './serve-options.ts'

test('the memory wait and the lowest body rate are options, and 0 accepts any rate', () => {
  const { memoryWaitMs, bodyBytesPerSecondMin } = parsed('--memory-wait-ms', '1500', '--body-bytes-per-second-min', '0')
  assert.deepEqual([memoryWaitMs, bodyBytesPerSecondMin], [1_500, 0])
  const absent = parsed()
  assert.deepEqual([absent.memoryWaitMs, absent.bodyBytesPerSecondMin], [undefined, undefined])
})

test('a wait of 0 ms, negative numbers and fractions are refused', () => {
  for (const args of [
    ['--memory-wait-ms', '0'],
    ['--memory-wait-ms', '1.5'],
    ['--body-bytes-per-second-min', '-1'],
    ['--body-bytes-per-second-min', 'slow'],
  ])
    assert.throws(() => parsed(...args), /It must be a whole number/, args.join(' '))
})
