import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { StowageErrorCode } from '../../src/errors.ts'
import { MB } from '../../src/limits.ts'
import type { Outcome } from './hostile-uploads.ts'
import { BOMB_INFLATED_MB } from './support.ts'

interface Bound {
  readonly code: StowageErrorCode
  readonly grownMb: number
  /**
   * Processor time: hundreds of times what is measured, and a fraction of what work that grows with the square of the
   * body would take.
   */
  readonly tookMs: number
}

/** Of bodies of 50 MB, of 2 MB of empty gzip members, or of bombs of 1 MB that inflate to 1 GB. */
const READ_BYTES_MAX = 500_000

const EARLY: Omit<Bound, 'code'> = { grownMb: 32, tookMs: 10_000 }
/**
 * What is inflated is garbage as soon as it is scanned, and V8 lets 64 MB of external memory come together before it
 * collects any: half of what the bombs inflate to shows that none is kept.
 */
const GZIP: Omit<Bound, 'code'> = { grownMb: BOMB_INFLATED_MB / 2, tookMs: 60_000 }

const BOUNDS: Record<string, Bound> = {
  'empty parts': { code: 'invalid_multipart', ...EARLY },
  'tiny files': { code: 'too_many_parts', ...EARLY },
  'large headers': { code: 'part_header_too_large', ...EARLY },
  'endless header': { code: 'part_header_too_large', ...EARLY },
  brackets: { code: 'nesting_too_deep', ...EARLY },
  nesting: { code: 'nesting_too_deep', ...EARLY },
  members: { code: 'invalid_gzip', ...GZIP },
  'nested gzip': { code: 'invalid_gzip', ...GZIP },
  'bomb of spaces': { code: 'inflated_too_large', ...GZIP },
  'bomb in a file': { code: 'inflated_too_large', ...GZIP },
  'bomb of one object': { code: 'object_too_large', ...GZIP },
}

/**
 * Of the time of an upload that takes long. Whatever the machine is, one that let nobody else go on would hold the loop
 * for all of it.
 */
const HELD_SHARE_MAX = 1 / 4

test('hostile uploads end early, use little memory, and do not block the event loop', async () => {
  const child = fileURLToPath(new URL('./hostile-uploads.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, child])
  const [control, ...outcomes] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Outcome)
  assert.equal(control.code, undefined)
  assert.deepEqual(
    outcomes.map(({ name }) => name),
    Object.keys(BOUNDS),
  )
  for (const { name, code, readBytes, grownBytes, tookMs, heldMs } of outcomes) {
    const bound = BOUNDS[name]
    assert.equal(code, bound.code, name)
    assert.ok(readBytes <= READ_BYTES_MAX, `${name}: read ${readBytes} bytes`)
    assert.ok(grownBytes <= bound.grownMb * MB, `${name}: memory grew by ${grownBytes} bytes`)
    assert.ok(tookMs <= bound.tookMs, `${name}: took ${tookMs} ms`)
    if (code === 'inflated_too_large')
      assert.ok(heldMs <= tookMs * HELD_SHARE_MAX, `${name}: held the loop for ${heldMs} of ${tookMs} ms`)
  }
})
