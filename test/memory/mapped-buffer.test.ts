import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { MAPPED_BYTES_MIN, mappedBuffer, mappedBytes, mappedUint32s } from '../../src/memory/mapped-buffer.ts'

test('large buffers are mapped, small ones are not, and all are zero', () => {
  const before = process.memoryUsage().arrayBuffers
  const buffers = [mappedBuffer(5 * MAPPED_BYTES_MIN - 1), mappedBytes(MAPPED_BYTES_MIN).buffer]
  assert.deepEqual(
    buffers.map(({ byteLength }) => byteLength),
    [5 * MAPPED_BYTES_MIN, MAPPED_BYTES_MIN],
  )
  assert.ok(process.memoryUsage().arrayBuffers - before < MAPPED_BYTES_MIN, 'the allocator of Node is not asked')
  assert.equal(mappedBuffer(100).byteLength, 100)
  for (const values of [mappedBytes(10), mappedBytes(100_001), mappedUint32s(10), mappedUint32s(100_001)]) {
    assert.ok([10, 100_001].includes(values.length))
    assert.ok(values.every((value) => value === 0))
  }
})

test('where no memory can be mapped, the allocator is asked', async () => {
  const module = new URL('../../src/memory/mapped-buffer.ts', import.meta.url)
  const script = `import(${JSON.stringify(module)}).then(({ mappedBytes }) => console.log(typeof WebAssembly, mappedBytes(100_000).length))`
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, '--jitless', '--eval', script])
  assert.equal(stdout.trim(), 'undefined 100000')
})
