import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MUTANTS } from './mutants.ts'
import { NOT_FOUND_YET } from './not-found.ts'
import { plantedIn } from './planted.ts'

test('every text that a mutant replaces is in the core once: whoever changes it changes the mutant too', () => {
  for (const mutant of MUTANTS) assert.ok(plantedIn(mutant).size > 0)
})

test('no two mutants have the same name, and those that are not found yet are mutants', () => {
  const names = new Set(MUTANTS.map(({ name }) => name))
  assert.equal(names.size, MUTANTS.length)
  for (const name of NOT_FOUND_YET) assert.ok(names.has(name), name)
})
