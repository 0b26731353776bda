import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { chosenFamilies } from './macro/families.ts'
import { measure } from './macro/measure.ts'
import { tableOf } from './macro/table.ts'
import { describeMachine, describeNoise } from './macro/summary.ts'
import { build, exitOnSignals } from './server.ts'

/*
 * `npm run bench`: three minutes for the figures that matter, each beside its reference and its target. `-- --rows upload,single` chooses rows.
 */

const { values: chosen } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    rows: { type: 'string', default: '' },
    objects: { type: 'string' },
    profile: { type: 'string' },
    repetitions: { type: 'string' },
    model: { type: 'string' },
    root: { type: 'string' },
    backend: { type: 'string' },
    server: { type: 'string' },
    token: { type: 'string', default: process.env.STOWAGE_TOKEN ?? '' },
    project: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    datasets: { type: 'string' },
    out: { type: 'string', default: join('.bench', 'results') },
  },
})

exitOnSignals()
const scratch = mkdtempSync(join(chosen.folder, 'stowage-bench-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
try {
  const families = chosenFamilies(chosen.rows.split(',').filter((name) => name !== ''))
  if (chosen.server === undefined) build()
  const results = await measure({
    ...chosen,
    families,
    scratch,
    datasetsFolder: chosen.datasets ?? join(scratch, 'datasets'),
    objects: chosen.objects === undefined ? undefined : Number(chosen.objects),
    repetitions: chosen.repetitions === undefined ? undefined : Number(chosen.repetitions),
    say: (line) => console.log(line),
  })
  await mkdir(dirname(chosen.out), { recursive: true })
  await writeFile(`${chosen.out}.json`, `${JSON.stringify(results, undefined, 1)}\n`)
  console.log(`\n${describeMachine(results)}\n\n${tableOf(results)}\n\n${describeNoise(results)}`)
  console.log(`written: ${chosen.out}.json`)
} catch (error) {
  console.error(error instanceof Error ? error.stack : error)
  process.exitCode = 1
}
