import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chosenFamilies, GROWTH } from './macro/families.ts'
import { measure } from './macro/measure.ts'
import type { ProfileName } from './model/profiles.ts'
import { tableOf } from './macro/table.ts'
import { describeMachine, describeNoise } from './macro/summary.ts'
import { publish, readResults, writeComparison, writeResults } from './report/files.ts'
import { countOf, orUsage } from './options.ts'
import { build, exitOnSignals } from './server.ts'

/*
 * `npm run bench`: three minutes for the figures that matter, each beside its reference and its target. `-- --rows upload,single` chooses rows.
 */

const USAGE =
  'npm run bench -- [--full] [--rows A,B] [--objects N] [--model FILE] [--backend MODULE] [--server URL --token T] [--compare A.json B.json]; docs/benchmark.md describes all options'

const readOptions = () =>
  parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      rows: { type: 'string', default: '' },
      objects: { type: 'string' },
      profile: { type: 'string' },
      repetitions: { type: 'string' },
      attempts: { type: 'string' },
      model: { type: 'string' },
      root: { type: 'string' },
      backend: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string', default: process.env.STOWAGE_TOKEN ?? '' },
      project: { type: 'string' },
      folder: { type: 'string', default: tmpdir() },
      datasets: { type: 'string' },
      compare: { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false },
      out: { type: 'string', default: join('.bench', 'results') },
    },
  })
const { values: chosen, positionals } = orUsage(USAGE, readOptions)
if (chosen.help) {
  console.log(`usage: ${USAGE}`)
  process.exit()
}

exitOnSignals()
try {
  await (chosen.compare ? compare() : chosen.publish && positionals.length > 0 ? republish() : run())
} catch (error) {
  console.error(error instanceof Error ? error.stack : error)
  process.exitCode = 1
}

async function compare(): Promise<void> {
  if (positionals.length !== 2) throw new Error('usage: npm run bench -- --compare A.json B.json [--out PATH]')
  await writeComparison(chosen.out, positionals[0], positionals[1])
  console.log(`written: ${chosen.out}.html`)
}

async function republish(): Promise<void> {
  await publish(readResults(positionals[0]))
  console.log('published in docs/benchmark and README.md')
}

function checkGrowth(): void {
  if (chosen.model === undefined && chosen.objects === undefined && chosen.profile !== 'building') return
  throw new Error(`${GROWTH} measures models of its own: leave out --model, --objects and --profile building`)
}

function profileOf(name: string | undefined): ProfileName | undefined {
  if (name === undefined || name === 'building' || name === 'geometry') return name
  throw new Error(`no profile ${name}; there are building and geometry`)
}

function checkModel(): void {
  if (chosen.model === undefined || statSync(chosen.model, { throwIfNoEntry: false })?.isFile() === true) return
  throw new Error(`--model has "${chosen.model}", which is no file`)
}

async function run(): Promise<void> {
  const names = chosen.rows.split(',').filter((name) => name !== '')
  const families = orUsage(USAGE, () => chosenFamilies(names))
  const hasGrowth = names.includes(GROWTH)
  if (hasGrowth) orUsage(USAGE, checkGrowth)
  const profile = orUsage(USAGE, () => profileOf(chosen.profile))
  orUsage(USAGE, checkModel)
  const [objects, repetitions, attempts] = orUsage(USAGE, () =>
    (['objects', 'repetitions', 'attempts'] as const).map((option) => {
      const text = chosen[option]
      return text === undefined ? undefined : countOf(option, text)
    }),
  )
  const scratch = mkdtempSync(join(chosen.folder, 'stowage-bench-'))
  process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
  if (chosen.server === undefined) build()
  const results = await measure({
    ...chosen,
    families,
    profile,
    ...(hasGrowth ? { growth: true } : {}),
    extent: chosen.full || chosen.rows !== '' ? 'full' : 'short',
    scratch,
    datasetsFolder: chosen.datasets ?? join(scratch, 'datasets'),
    objects,
    repetitions,
    attempts,
    say: (line) => console.log(line),
  })
  await writeResults(chosen.out, results)
  if (chosen.publish) await publish(results)
  if (results.skipped.some(({ reason }) => reason.startsWith('failed'))) process.exitCode = 1
  console.log(`\n${describeMachine(results)}\n\n${tableOf(results)}\n\n${describeNoise(results)}`)
  console.log(`written: ${chosen.out}.json and ${chosen.out}.html`)
}
