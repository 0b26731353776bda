import assert from 'node:assert/strict'
import { test } from 'node:test'
import { growthRows } from '../../bench/macro/derived.ts'
import { chosenFamilies, FAMILIES, GROWTH, GROWTH_FAMILIES } from '../../bench/macro/families.ts'
import { type Row, spread } from '../../bench/macro/results.ts'

function row(dataset: string, family: string, microseconds: number): Row {
  return {
    id: `${family}/${dataset}`,
    family,
    title: family,
    dataset,
    headline: 'idsPerSecond',
    figures: { serverCpuMicrosecondsPerObject: spread([microseconds]) },
    references: [],
    targets: [],
    noise: { stealShare: 0, othersShare: 0, attempts: 1 },
  }
}

test('growth compares the large model with the small one, family by family, with the bound of each', () => {
  const sizes = (family: string, small: number, large: number): Row[] => [
    row('geometry-10k', family, small),
    row('geometry-100k', family, 1_000),
    row('geometry-1m', family, large),
  ]
  const rows = growthRows([...sizes('upload', 10, 14), ...sizes('diff', 10, 19), ...sizes('forms', 10, 90)])
  assert.deepEqual(
    rows.map(({ id, targets: [{ figure, verdict }] }) => [id, figure, verdict]),
    [
      ['growth/upload/geometry-1m', 1.4, 'not met'],
      ['growth/diff/geometry-1m', 1.9, 'met'],
    ],
  )
})

test('growth is a name of rows like any other, and objects are looked up after the packs were merged', () => {
  assert.deepEqual(chosenFamilies([GROWTH]), [])
  assert.deepEqual(chosenFamilies([]), FAMILIES)
  assert.throws(() => chosenFamilies(['grow']), /no rows grow; there are .*upload.*growth/)
  const names = GROWTH_FAMILIES.map(({ name }) => name)
  for (const name of ['recursive', 'diff', 'single', 'random-ids'])
    assert.ok(names.indexOf(name) > names.indexOf('compaction'), name)
  for (const name of ['upload', 'unplanned']) assert.ok(names.indexOf(name) < names.indexOf('compaction'), name)
})
