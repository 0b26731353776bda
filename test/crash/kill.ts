import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseArgs } from 'node:util'
import { createRandom } from '../../bench/model/random.ts'
import { build } from '../../bench/server.ts'
import { compileShim } from './power-loss.ts'
import { crashRounds, type RoundsReport } from './rounds.ts'
import type { Storage } from './server.ts'

/*
 * `npm run test:crash`: nothing that was acknowledged is lost, and nothing is there in part, whatever the moment at which the server dies.
 * `--rounds` are divided among both storages, each with the process killed and with the power lost. Needs gcc.
 */

const { values: chosen } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    folder: { type: 'string', default: tmpdir() },
  },
})
const rounds = Number(chosen.rounds)
const seed = Number(chosen.seed)
/**
 * The control ends with the first round that loses something, mostly the second or third; this many are never all
 * lucky.
 */
const CONTROL_ROUNDS = 12
const STORAGES: readonly Storage[] = ['filesystem', 'level']

const scratch = mkdtempSync(join(chosen.folder, 'stowage-crash-'))
after(() => rmSync(scratch, { recursive: true, force: true }))
build()
const shim = await compileShim(scratch)
console.log(`seed ${seed}`)

for (const [at, storage] of STORAGES.entries()) {
  test(`${storage}: killed`, async (context) => {
    const report = await crashRounds({ rounds: share(at), storage, scratch, random: createRandom(seed, at) })
    context.diagnostic(describe(report))
    assert.equal(report.findings.join('\n'), '')
  })

  test(`${storage}: the power lost`, async (context) => {
    const report = await crashRounds({
      rounds: share(at + 2),
      storage,
      scratch,
      shim,
      random: createRandom(seed, at, 1),
    })
    context.diagnostic(describe(report))
    assert.equal(report.findings.join('\n'), '')
  })

  test(`${storage}: the power lost, and nothing synced before`, async (context) => {
    const report = await crashRounds({
      rounds: CONTROL_ROUNDS,
      storage,
      scratch,
      shim,
      unsynced: true,
      random: createRandom(seed, at, 2),
    })
    context.diagnostic(`${describe(report)}; first finding: ${report.findings[0]}`)
    assert.notEqual(report.findings.length, 0, 'without syncs something must be lost, or this test proves nothing')
  })
}

/** Rounds of one of the four tests. */
function share(part: number): number {
  return Math.floor(rounds / 4) + (part < rounds % 4 ? 1 : 0)
}

function describe({ rounds, acknowledgedUploads, acknowledgedObjects, findings }: RoundsReport): string {
  return `${rounds} rounds, ${acknowledgedUploads} acknowledged uploads of ${acknowledgedObjects} objects, ${findings.length} findings`
}
