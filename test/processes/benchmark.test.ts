import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { FAMILIES } from '../../bench/macro/families.ts'
import { measure, type MeasureOptions } from '../../bench/macro/measure.ts'
import type { Results } from '../../bench/macro/results.ts'
import { tableOf } from '../../bench/macro/table.ts'
import { readResults, writeComparison, writeResults } from '../../bench/report/files.ts'
import { build, issueToken, startServer } from '../../bench/server.ts'

const OBJECTS = 600

let folder: string

/** Somebody who runs a cluster has these in the environment. Nothing may be measured there. */
const SETTINGS = { STOWAGE_RECORDS: 'postgres://nobody@127.0.0.1:1/none', STOWAGE_BLOBS: 's3://none' }

before(async () => {
  Object.assign(process.env, SETTINGS)
  build()
  folder = await mkdtemp(join(tmpdir(), 'stowage-benchmark-'))
})
after(async () => {
  for (const name of Object.keys(SETTINGS)) delete process.env[name]
  await rm(folder, { recursive: true })
})

function options(changed: Partial<MeasureOptions> = {}): MeasureOptions {
  return {
    families: FAMILIES,
    full: false,
    extent: 'smoke',
    rows: 'all',
    scratch: folder,
    datasetsFolder: join(folder, 'datasets'),
    objects: OBJECTS,
    repetitions: 1,
    token: '',
    say: () => undefined,
    ...changed,
  }
}

function rowsOf(results: Results): readonly string[] {
  return [...new Set(results.rows.map(({ family }) => family))]
}

test('every row runs on a small model, and the results match their schema', async () => {
  const results = await measure(options())
  const path = join(folder, 'out', 'results')
  await writeResults(path, results)
  assert.deepEqual(readResults(`${path}.json`), results)
  assert.deepEqual(rowsOf(results), [...FAMILIES.map(({ name }) => name), 'memory'])
  assert.deepEqual(
    results.skipped.filter(({ row }) => !row.includes('nginx')),
    [],
  )
  for (const { id, headline, figures } of results.rows) {
    const value = figures[headline]
    assert.ok(value !== undefined && Number.isFinite(value.median), `${id}: ${headline}`)
    // Processor time has ticks of 10 ms, and memory may shrink.
    assert.ok(value.median > 0 || headline === 'serverCpuSeconds' || headline === 'addedResidentMb', id)
  }
  const upload = results.rows.find(({ family }) => family === 'upload')
  assert.ok(upload?.references[0].name === 'gunzip' && upload.references[0].ratio.median > 0)
  const page = await readFile(`${path}.html`, 'utf8')
  const table = tableOf(results)
  for (const { title } of results.rows) assert.ok(page.includes(title) && table.includes(title), title)
  assert.doesNotMatch(page, /<script|https?:\/\/(?!127\.0\.0\.1)|NaN|undefined/)

  await writeComparison(join(folder, 'out', 'comparison'), `${path}.json`, `${path}.json`)
  const comparison = await readFile(join(folder, 'out', 'comparison.html'), 'utf8')
  assert.match(comparison, /1\.00 x/)
  assert.doesNotMatch(comparison, /class="verdict (?:better|worse)"|NaN|undefined/)
})

test('a server that the benchmark did not start is measured in what the contract has; other rows say why not', async () => {
  const data = join(folder, 'remote')
  const server = await startServer(data, ['--port', '0', '--prefix', '/models'])
  try {
    const token = await issueToken(data, '*')
    const names = new Set(['upload', 'recursive', 'single', 'random-ids', 'diff', 'restart', 'slow-readers'])
    const families = FAMILIES.filter(({ name }) => names.has(name))
    const results = await measure(options({ server: server.url, token, families }))
    assert.deepEqual(rowsOf(results), ['upload', 'recursive', 'diff', 'single', 'random-ids'])
    assert.deepEqual(
      results.skipped.map(({ row }) => row.split(' ')[0]).filter((row) => row !== 'references'),
      ['slow-readers', 'restart'],
    )
    assert.ok(results.rows.every(({ figures }) => figures.serverCpuSeconds === undefined))
  } finally {
    await server.stop()
  }
})

test('results of another version or with a wrong figure are refused', async () => {
  const path = join(folder, 'wrong.json')
  await writeFile(path, JSON.stringify({ format: 'stowage-benchmark', version: 2 }))
  assert.throws(() => readResults(path), /no results of this version.*version/)
})
