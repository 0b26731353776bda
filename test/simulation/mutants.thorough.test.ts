import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { MUTANTS } from './mutants.ts'
import { searchFor } from './planted.ts'

/** Mutants that the first seeds find, of each kind some; `npm run soak` looks for all of them. */
const FOUND_SOON: readonly string[] = [
  'the sequence does not advance',
  'a sweep takes the objects of every generation',
  'a body that ends in the middle is accepted',
  'a bitmap is off by one',
  'young objects hold nothing below them',
  'a pack goes on owning what is condemned',
  'a merge moves no object',
  'chosen objects go though a young object leads to them',
  'an upload that fails keeps what it reserved',
  'the checksum of tables begins anew at an empty part',
]
const SEEDS = 300

const folder = mkdtempSync(join(process.cwd(), '.compiled', 'mutants-'))
after(() => rmSync(folder, { recursive: true, force: true }))

for (const name of FOUND_SOON)
  test(`the simulation finds a planted fault: ${name}`, async () => {
    const mutant = MUTANTS.find((one) => one.name === name)
    assert.ok(mutant)
    const { found, output } = await searchFor(mutant, SEEDS, folder)
    assert.ok(found, output)
  })
