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
  readonly tookMs: number
}

const PARTS: Omit<Bound, 'code'> = { grownMb: 32, tookMs: 2_000 }
const DEEP: Bound = { code: 'nesting_too_deep', grownMb: 8, tookMs: 100 }
/**
 * What is inflated is garbage as soon as it is scanned, and V8 lets 64 MB of external memory come together before it collects any: a third of
 * what the bombs inflate to shows that none is kept.
 */
const GZIP: Omit<Bound, 'code'> = { grownMb: BOMB_INFLATED_MB / 3, tookMs: 10_000 }

const BOUNDS: Record<string, Bound> = {
  'empty parts': { code: 'invalid_multipart', ...PARTS },
  'tiny files': { code: 'too_many_parts', ...PARTS },
  'large headers': { code: 'part_header_too_large', ...PARTS },
  'endless header': { code: 'part_header_too_large', ...PARTS },
  brackets: DEEP,
  nesting: DEEP,
  members: { code: 'invalid_gzip', ...GZIP },
  'nested gzip': { code: 'invalid_gzip', ...GZIP },
  'bomb of spaces': { code: 'inflated_too_large', ...GZIP },
  'bomb in a file': { code: 'inflated_too_large', ...GZIP },
  'bomb of one object': { code: 'object_too_large', ...GZIP },
}

/** Times have slack for a machine that does other things as well. */
const SLACK = 3
const HELD_MS_MAX = 20 * SLACK

test('hostile uploads end early, in little memory, and leave the event loop to others', async () => {
  const child = fileURLToPath(new URL('./hostile-uploads.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', child])
  const [control, ...outcomes] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Outcome)
  assert.equal(control.code, undefined)
  assert.deepEqual(
    outcomes.map(({ name }) => name),
    Object.keys(BOUNDS),
  )
  for (const { name, code, grownBytes, tookMs, heldMs } of outcomes) {
    const bound = BOUNDS[name]
    assert.equal(code, bound.code, name)
    assert.ok(grownBytes <= bound.grownMb * MB, `${name}: memory grew by ${grownBytes} bytes`)
    assert.ok(tookMs <= bound.tookMs * SLACK, `${name}: took ${tookMs} ms`)
    assert.ok(heldMs <= HELD_MS_MAX, `${name}: held the loop for ${heldMs} ms`)
  }
})
