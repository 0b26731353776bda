import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AUTOMATION_MUTANTS } from './automation/mutants.ts'
import { simulateAutomation } from './automation/simulate.ts'
import { commandOf } from './command.ts'
import { searchFor } from './planted.ts'

const SEEDS = 40
/** Mutants that the first seeds find; `npm run soak` looks for all of them. */
const FOUND_SOON: readonly string[] = ['a lease is over at once', 'a purge does not look at the restore']

const folder = mkdtempSync(join(process.cwd(), '.compiled', 'automation-mutants-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('versions and runs keep their guarantees under faults', async () => {
  let runs = 0
  for (let seed = 0; seed < SEEDS; seed++) {
    const simulation = await simulateAutomation({ seed })
    assert.equal(simulation.violation, undefined, commandOf(simulation, 'automation'))
    runs += simulation.runs
  }
  assert.ok(runs > SEEDS, `${runs} runs`)
})

test('a seed determines a run with automation', async () => {
  for (const seed of [2, 9]) assert.deepEqual(await simulateAutomation({ seed }), await simulateAutomation({ seed }))
})

for (const name of FOUND_SOON)
  test(`the simulation finds a planted fault: ${name}`, async () => {
    const mutant = AUTOMATION_MUTANTS.find((one) => one.name === name)
    assert.ok(mutant)
    const { found, output } = await searchFor(mutant, SEEDS, folder)
    assert.ok(found, output)
  })
