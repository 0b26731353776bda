import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { measureWay, type LookupRate, type WayFigures } from './id-index/measure-way.ts'
import { openWay, removeFolder, type Way, WAYS } from './id-index/ways.ts'
import { printRows, round, type Row } from './measure.ts'
import { countOf, orUsage, readOptions } from './options.ts'

/*
 * `npm run bench:id-index -- --objects N`: where an object lies, found by its id: today's way (a record for each object) against merged segments in
 * blobs. docs/scaling.md has figures of it. Each way runs in a process of its own, so that its memory can be seen.
 */

const USAGE = `npm run bench:id-index -- [--objects N] [--lookups N] [--segments N] [--ways ${WAYS.join(',')}] [--postgres URL] [--folder PATH]`
const chosen = readOptions(USAGE, {
  objects: { type: 'string', default: '1000000' },
  lookups: { type: 'string', default: '100000' },
  segments: { type: 'string', default: '6' },
  ways: { type: 'string', default: '' },
  postgres: { type: 'string' },
  folder: { type: 'string', default: tmpdir() },
  only: { type: 'string' },
})
const [objects, lookups, segments] = orUsage(USAGE, () =>
  (['objects', 'lookups', 'segments'] as const).map((option) => countOf(option, chosen[option])),
)

if (chosen.only === undefined) await measureAll()
else await measureOne(chosenWay(chosen.only), chosen.folder)

async function measureAll(): Promise<void> {
  const rows: Row[] = []
  for (const way of orUsage(USAGE, chosenWays)) {
    const folder = mkdtempSync(join(chosen.folder, 'stowage-id-index-'))
    try {
      const child = fork(import.meta.filename, [...process.argv.slice(2), '--only', way, '--folder', folder])
      const figures = once(child, 'message') as Promise<[WayFigures]>
      const [code] = (await once(child, 'exit')) as [number | null]
      if (code !== 0) throw new Error(`the way "${way}" failed`)
      rows.push({ what: way, value: described((await figures)[0]) })
    } finally {
      removeFolder(folder)
    }
  }
  printRows(`Look-ups of ${objects} objects by their ids: 32 hex digits; batches of 1,000 ids`, rows)
}

async function measureOne(way: Way, folder: string): Promise<void> {
  const index = await openWay(way, { folder, segments, postgres: chosen.postgres })
  const figures = await measureWay(index, objects, lookups)
  await index.close()
  process.send?.(figures)
}

/** All, unless some are named. PostgreSQL needs an address. */
function chosenWays(): readonly Way[] {
  if (chosen.ways !== '') return chosen.ways.split(',').map(chosenWay)
  return WAYS.filter((way) => way !== 'postgres' || chosen.postgres !== undefined)
}

function chosenWay(name: string): Way {
  const way = WAYS.find((known) => known === name)
  if (way === undefined) throw new Error(`the way is "${name}"; it must be one of ${WAYS.join(', ')}`)
  return way
}

function described(figures: WayFigures): string {
  const { batchPresent, batchAbsent, singlePresent, singleAbsent } = figures
  return [
    `${round(figures.bytesPerObject)} bytes an object`,
    `${round(figures.builtPerSecond)} objects/s built`,
    `batches ${rate(batchPresent)}, absent ${rate(batchAbsent)}`,
    `single ${rate(singlePresent)}, absent ${rate(singleAbsent)}`,
    `${round(figures.residentMB)} MB resident, peak ${round(figures.residentPeakMB)}`,
  ].join('; ')
}

function rate({ perSecond, cpuMicroseconds }: LookupRate): string {
  return `${round(perSecond)}/s (${round(cpuMicroseconds)} us of processor time each)`
}
