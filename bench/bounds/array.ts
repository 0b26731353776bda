import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { download, downloadToFile } from '../download.ts'
import { repeat } from '../measure.ts'
import { building } from '../model/building.ts'
import { issueToken, startServer } from '../server.ts'
import { uploadModel } from '../upload.ts'
import { type Bound, CORES, printFigure } from './bound.ts'
import { gzipSeconds, secondsDuring, shortestSeconds } from './processor-time.ts'

const OBJECTS = 20_000

/**
 * How fast a model can be downloaded as a gzipped JSON array at most, in terms of one core's `gzip -1` of the same
 * array.
 */
export const gzippedArray: Bound = async ({ profile, objects = OBJECTS, rounds, folder }) => {
  const data = join(folder, 'data')
  const server = await startServer(data, ['--port', '0'])
  try {
    const target = { url: server.url, token: await issueToken(data, '*'), projectId: 'array' }
    const { rootId, jsonBytes } = await uploadModel(target, building({ objects, closure: 'root-less', profile }))
    const url = `${target.url}/objects/${target.projectId}/${rootId}`
    const headers = { Authorization: `Bearer ${target.token}`, Accept: 'application/json', 'Accept-Encoding': 'gzip' }
    const gzipped = join(folder, 'array.json.gz')
    await downloadToFile(url, headers, gzipped)
    execFileSync('gzip', ['-dk', gzipped])
    const times = await repeat(rounds, async () => ({
      ...(await secondsDuring(server.pid, () => download(url, headers))),
      gzip: gzipSeconds('-1c', join(folder, 'array.json')),
    }))
    console.log(
      `JSON array, gzip: ${profile}, ${(jsonBytes / 1e6).toFixed(0)} MB of JSON, median (min to max) of ${rounds}`,
    )
    const figure = (what: string, unit: string, of: (round: (typeof times)[0]) => number): void =>
      printFigure(what, unit, times.map(of))
    figure('main thread of the server', 's', ({ main }) => main)
    figure('its other threads', 's', ({ others }) => others)
    figure('gzip -1', 's', ({ gzip }) => gzip)
    figure(`at most, on ${CORES} cores`, 'of gzip -1', (round) => round.gzip / shortestSeconds(round, CORES))
  } finally {
    await server.stop()
  }
}
