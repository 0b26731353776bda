import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConformanceCase } from '../../src/storage/conformance/index.ts'

/** Runs every case. One that the suite left untested fails: an engine here can do whatever the suite needs. */
export function testEveryCase(cases: readonly ConformanceCase[]): void {
  for (const { name, run, untested } of cases)
    test(name, async () => {
      assert.equal(untested, undefined)
      await run()
    })
}
