import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MUTANTS } from './mutants.ts'
import { plantedIn } from './planted.ts'

test('every text that a mutant replaces is in the core once: whoever changes it changes the mutant too', () => {
  for (const mutant of MUTANTS) assert.ok(plantedIn(mutant).size > 0)
})

test('no two mutants have the same name', () => {
  assert.equal(new Set(MUTANTS.map(({ name }) => name)).size, MUTANTS.length)
})
