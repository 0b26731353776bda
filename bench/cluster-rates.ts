import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ending } from '../test/support/folder.ts'
import { makeModel } from './cluster-rates/model.ts'
import { downloads, gets, oneThenThree, type Setting, slowNetwork, uploads } from './cluster-rates/parts.ts'
import { NO_CACHE, RatesStorage, serverOverFiles } from './cluster-rates/place.ts'
import { printRows, type Row } from './measure.ts'
import { countOf, orUsage, readOptions } from './options.ts'
import { build, exitOnSignals } from './server.ts'

/*
 * `npm run bench:cluster`: servers over PostgreSQL and an S3 store, and one over files, each in a process of its own, all
 * on this machine and its disk. Rounds are interleaved, and the ratios are medians.
 */

const USAGE =
  'npm run bench:cluster -- [--objects N] [--gets-objects N] [--rounds N] [--parts downloads,network,gets,servers] [--folder PATH]'
const PARTS = ['downloads', 'network', 'gets', 'servers'] as const
const chosen = readOptions(USAGE, {
  objects: { type: 'string', default: '150000' },
  'gets-objects': { type: 'string', default: '1000000' },
  rounds: { type: 'string', default: '5' },
  parts: { type: 'string', default: PARTS.join(',') },
  folder: { type: 'string', default: tmpdir() },
})
const [objects, getsObjects, rounds] = orUsage(USAGE, () =>
  (['objects', 'gets-objects', 'rounds'] as const).map((option) => countOf(option, chosen[option])),
)
const parts = orUsage(USAGE, () => {
  const names = chosen.parts.split(',')
  const unknown = names.find((name) => !PARTS.some((part) => part === name))
  if (unknown !== undefined) throw new RangeError(`--parts has "${unknown}"; it must be some of ${PARTS.join(', ')}`)
  return new Set(names)
})

exitOnSignals()
const endings: (() => void | Promise<void>)[] = []
const ending: Ending = { after: (end) => void endings.unshift(end) }
process.once('exit', () => {
  for (const end of endings) void end()
})
const folder = mkdtempSync(join(chosen.folder, 'stowage-rates-'))
ending.after(() => rmSync(folder, { recursive: true, force: true }))

build()
const loadBefore = loadavg()[0]
const storage = await RatesStorage.start(ending, folder)
const files = await serverOverFiles(folder)
const plain = await storage.server(NO_CACHE)
const model = await makeModel(objects)
const setting: Setting = { ending, storage, files, plain, model, rounds }
const rows: Row[] = []
const measure = async (part: string, work: () => Promise<readonly Row[]>): Promise<void> => {
  if (!parts.has(part)) return
  console.log(`measuring ${part} ...`)
  rows.push(...(await work()))
}
console.log('measuring uploads ...')
rows.push(...(await uploads(setting)))
await measure('downloads', () => downloads(setting))
await measure('network', () => slowNetwork(setting))
await measure('servers', () => oneThenThree(setting))
await measure('gets', () => gets(setting, getsObjects))
const load = [loadBefore, loadavg()[0]].map((value) => value.toFixed(1)).join(', then ')
printRows(`${model.objects} objects, ${rounds} rounds, load of the machine before ${load}`, rows)
process.exit(rows.some(({ met }) => met === false) ? 1 : 0)
