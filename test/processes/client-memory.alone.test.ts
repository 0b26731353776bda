import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { served } from '../http/served.ts'

const HEAP_MB_MAX = 50
/** That are in use: half of the 60 MB that go through. */
const BUFFERS_MB_MAX = 32

test('50,000 objects, 60 MB, upload and download in a process with 50 MB to spare', async (t) => {
  const { url } = await served(t)
  const script = fileURLToPath(new URL('../client/fifty-thousand.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    `--max-old-space-size=${HEAP_MB_MAX}`,
    ...process.execArgv,
    script,
    url,
  ])
  const report = JSON.parse(stdout) as { sent: number; jsonBytes: number; received: number; buffersMb: number }
  assert.deepEqual([report.sent, report.received], [50_001, 50_001])
  assert.ok(report.jsonBytes > 60_000_000)
  assert.ok(report.buffersMb < BUFFERS_MB_MAX, `${report.buffersMb} MB outside the heap`)
})
