import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureArray } from './macro/array.ts'
import { type Dataset, prepareDataset, type Version } from './macro/dataset.ts'
import { measureDownloads } from './macro/downloads.ts'
import { measureUploads } from './macro/uploads.ts'
import { MB, printRows, round } from './measure.ts'
import { startNginx } from './nginx.ts'
import { sendFolder } from './sender.ts'
import { build, exitOnSignals, issueToken, peakResidentBytes, startServer } from './server.ts'

/*
 * `npm run bench`: the figures by which a change is judged, each beside its reference, measured in the same run on the same cores.
 * The server is the built command on its default storage; clients and references are processes of their own.
 */

const { values: chosen } = parseArgs({
  options: {
    objects: { type: 'string', default: '100000' },
    repetitions: { type: 'string', default: '7' },
    folder: { type: 'string', default: tmpdir() },
  },
})

/** Beyond this, something else competes for the cores. */
const LOAD_MAX = 0.7

exitOnSignals()
const scratch = mkdtempSync(join(chosen.folder, 'stowage-bench-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
await measure(Number(chosen.objects), Number(chosen.repetitions))

async function measure(objects: number, repetitions: number): Promise<void> {
  console.log(
    `${cpus()[0]?.model ?? 'unknown processor'}, ${availableParallelism()} cores, node ${process.version}; ${repetitions} repetitions: median (min to max)`,
  )
  const [load] = loadavg()
  if (load > LOAD_MAX) console.log(`The machine is busy (load ${round(load)}): the ratios suffer from it.`)
  build()
  const dataset = await prepareDataset(objects, scratch)
  printDataset(dataset)
  const data = join(scratch, 'data')
  const server = await startServer(data, ['--port', '0'])
  const nginx = await startNginx(scratch)
  try {
    const target = { url: server.url, token: await issueToken(data, '*'), projectId: 'bench' }
    printRows('In', await measureUploads(target, dataset, repetitions))
    const held = { ...target, projectId: 'bench-0' }
    const downloads = await measureDownloads(server, held, dataset.first, nginx, repetitions)
    await sendFolder(held, dataset.second.uploads, 4)
    printRows('Out', [
      ...downloads,
      ...(await measureDownloads(server, held, dataset.second, nginx, repetitions)),
      ...(await measureArray(held, dataset, repetitions)),
      { what: 'server memory, peak', value: `${round(peakResidentBytes(server.pid) / MB)} MB resident` },
    ])
  } finally {
    await Promise.all([server.stop(), nginx?.stop()])
  }
}

function printDataset({ first, second }: Dataset): void {
  console.log(`\nGenerated building, seed 1 (JSON in MB of 1,048,576 bytes; compressed as uploads of 1 MB, gzip -6)`)
  for (const version of [first, second]) console.log(`  ${describeVersion(version)}`)
}

function describeVersion({ name, objects, jsonBytes, uploadedJsonBytes, uploadedGzipBytes }: Version): string {
  const ratio = round(uploadedJsonBytes / uploadedGzipBytes)
  return `${name}: ${objects} objects, ${round(jsonBytes / MB)} MB of JSON; its upload ${round(uploadedJsonBytes / MB)} MB in ${round(uploadedGzipBytes / MB)} MB, ${ratio} : 1`
}
