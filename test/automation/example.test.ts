import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY } from '../../bench/repository.ts'
import { testFunction } from '../../src/automation/testing/index.ts'
import { wallChecker as shortWallChecker } from './example/short-wall-checker.ts'
import { wallChecker } from './example/wall-checker.ts'

const HOUSE = {
  '@walls': [
    { speckle_type: 'Wall', name: 'north', fireRating: 'F90' },
    { speckle_type: 'Wall', name: 'south', applicationId: 'wall-2' },
  ],
}

test('the example of the page reports the expected objects', async () => {
  const run = await testFunction(wallChecker, { inputs: { listFine: true }, object: HOUSE })
  assert.deepEqual([run.status, run.message], ['failed', '1 walls have no fireRating: they are marked as errors'])
  assert.deepEqual(
    run.annotations
      .map(({ level, objectAppIds }) => [level, Object.values(objectAppIds)[0]])
      .toSorted(([a], [b]) => String(a).localeCompare(String(b))),
    [
      ['ERROR', 'wall-2'],
      ['SUCCESS', null],
    ],
  )
  assert.equal(run.artifacts[0].name, 'Walls.csv')
  assert.match(Buffer.from(run.artifacts[0].bytes).toString(), /"south",false/)
  const fine = await testFunction(wallChecker, { inputs: { property: 'name' }, object: HOUSE })
  assert.deepEqual([fine.status, fine.message, fine.annotations.length], ['succeeded', 'all 2 walls have a name', 0])
  assert.deepEqual([wallChecker.name, wallChecker.inputs.description.fields.length], ['Wall checker', 2])
})

test('the example of the README marks the walls without the property', async () => {
  const run = await testFunction(shortWallChecker, { inputs: {}, object: HOUSE })
  assert.deepEqual(
    [run.status, run.annotations.map(({ message }) => message)],
    ['succeeded', ['this wall has no fireRating']],
  )
})

test('the pages show the examples unchanged', async () => {
  const text = (path: string): Promise<string> => readFile(join(REPOSITORY, path), 'utf8')
  for (const [page, example] of [
    ['docs/automation.md', 'wall-checker'],
    ['README.md', 'short-wall-checker'],
  ]) {
    const code = (await text(`test/automation/example/${example}.ts`)).replace(
      '../../../src/automation/index.ts',
      'stowage/automation',
    )
    assert.ok((await text(page)).includes(`\`\`\`ts\n${code}\`\`\``), page)
  }
})
