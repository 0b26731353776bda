import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AUTOMATION_MUTANTS } from './automation/mutants.ts'
import { MUTANTS } from './mutants.ts'
import { plantedIn } from './planted.ts'

const ALL = [...MUTANTS, ...AUTOMATION_MUTANTS]

test('every text that a mutant replaces is in the core once: whoever changes it changes the mutant too', () => {
  for (const mutant of ALL) assert.ok(plantedIn(mutant).size > 0)
})

test('no two mutants have the same name', () => {
  assert.equal(new Set(ALL.map(({ name }) => name)).size, ALL.length)
})
