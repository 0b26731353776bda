import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FAMILIES } from '../../bench/macro/families.ts'
import { PUBLISHED, readResults } from '../../bench/report/files.ts'
import { reportPage } from '../../bench/report/page.ts'
import { currentBlock, readmeBlock, withoutFormatting } from '../../bench/report/readme.ts'
import { REPOSITORY } from '../../bench/repository.ts'

test('the table of the README and the page of the report come from the committed results', () => {
  const results = readResults(`${PUBLISHED}.json`)
  const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8')
  assert.equal(withoutFormatting(currentBlock(readme)), withoutFormatting(readmeBlock(results)))
  assert.equal(readFileSync(`${PUBLISHED}.html`, 'utf8'), reportPage(results))
})

test('the page about the benchmark names every row', () => {
  const page = readFileSync(join(REPOSITORY, 'docs', 'benchmark.md'), 'utf8')
  for (const { name } of FAMILIES) assert.ok(page.includes(`\n| \`${name}\``), name)
})
