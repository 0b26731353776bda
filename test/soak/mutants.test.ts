import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AUTOMATION_MUTANTS } from '../simulation/automation/mutants.ts'
import { MUTANTS } from '../simulation/mutants.ts'
import { searchFor } from '../simulation/planted.ts'

/** The simulation would notice if the core had one of these faults. */
const SEEDS = 1_000

// Below the repository, so that the packages that the core imports are found.
const folder = mkdtempSync(join(process.cwd(), '.compiled', 'mutants-'))
after(() => rmSync(folder, { recursive: true, force: true }))

for (const mutant of [...MUTANTS, ...AUTOMATION_MUTANTS]) {
  const { name, seeds = SEEDS } = mutant
  test(`a seed below ${seeds} finds: ${name}`, async () => {
    const { found, output } = await searchFor(mutant, seeds, folder)
    assert.ok(found, output)
  })
}
