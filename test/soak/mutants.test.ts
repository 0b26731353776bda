import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { MUTANTS } from '../simulation/mutants.ts'
import { NOT_FOUND_YET } from '../simulation/not-found.ts'
import { searchFor } from '../simulation/planted.ts'

/** The simulation would notice if the core had one of these faults. */
const SEEDS = 1_000

// Below the repository, so that the packages that the core imports are found.
const folder = mkdtempSync(join(process.cwd(), '.compiled', 'mutants-'))
after(() => rmSync(folder, { recursive: true, force: true }))

for (const mutant of MUTANTS.filter(({ name }) => !NOT_FOUND_YET.has(name)))
  test(`a seed below ${SEEDS} finds: ${mutant.name}`, async () => {
    const { found, output } = await searchFor(mutant, SEEDS, folder)
    assert.ok(found, output)
  })
