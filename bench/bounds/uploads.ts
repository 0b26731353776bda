import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { BLOCKS_MEDIA_TYPE } from '../../src/blocks/ready-blocks.ts'
import { BATCH_BYTES } from '../../src/client/upload/upload-batches.ts'
import { checked } from '../load/client.ts'
import type { Exchange } from '../load/job.ts'
import { JobRunner } from '../load/job-runner.ts'
import { MB, repeat } from '../measure.ts'
import { building } from '../model/building.ts'
import { issueToken, peakResidentBytes, startServer } from '../server.ts'
import { inBatches, jsonArray, readyBlocks } from '../upload.ts'
import { startBareBlockServer } from './bare-block-server.ts'
import { type Bound, type BoundOptions, CORES, printFigure } from './bound.ts'
import { gzipSeconds, secondsDuring, secondsSince, shortestSeconds } from './processor-time.ts'

const OBJECTS = 20_000
const CLIENTS = 4
/** Of the bare server, beside its main thread. */
const BARE_SERVER_THREADS = [0, 1, 2]
/** Until the server has made the plan of what was uploaded before: that is no part of the next upload. */
const SETTLING_MS = 2_500

/** How fast uploads of gzipped arrays can be at most, in terms of one core's gunzip of the same bytes. */
export const gzippedUploads: Bound = (options) => uploads(options, 'as gzipped arrays', MB)

/**
 * The same for ready blocks, which are made before: in requests as our client sends them, in smaller ones, and to a
 * server that does only what none can do without, with and without the help of other threads.
 */
export const blockUploads: Bound = async (options) => {
  for (const requestBytes of [BATCH_BYTES, MB]) await uploads(options, 'as ready blocks', requestBytes)
  for (const threads of BARE_SERVER_THREADS) await uploads(options, 'as ready blocks', BATCH_BYTES, threads)
}

async function uploads(
  { profile, objects = OBJECTS, rounds, folder }: BoundOptions,
  form: 'as gzipped arrays' | 'as ready blocks',
  requestBytes: number,
  bareServerThreads?: number,
): Promise<void> {
  const batches = [...inBatches(building({ objects, closure: 'root-less', profile }), requestBytes)]
  const texts = batches.map(jsonArray)
  const gzipped = texts.map((text) => new Uint8Array(gzipSync(text)))
  const file = join(folder, 'all.gz')
  writeFileSync(file, Buffer.concat(gzipped))
  const isGzip = form === 'as gzipped arrays'
  const bodies = isGzip ? gzipped : await Promise.all(batches.map(readyBlocks))
  const bodyFiles = bodies.map((body, index) => {
    const bodyFile = join(folder, `body-${index}`)
    writeFileSync(bodyFile, body)
    return bodyFile
  })
  const data = mkdtempSync(join(folder, 'data-'))
  const isBare = bareServerThreads !== undefined
  const server = await (isBare ? startBareBlockServer(data, bareServerThreads) : startServer(data, ['--port', '0']))
  try {
    const authorization = { Authorization: `Bearer ${isBare ? 'any' : await issueToken(data, '*')}` }
    const send = (projectId: string): Promise<void> =>
      sendAll(
        server.url,
        bodyFiles.map((file) => ({
          method: 'POST',
          path: `/objects/${projectId}`,
          ...(isGzip
            ? { headers: authorization, uploadFile: file }
            : { headers: { ...authorization, 'Content-Type': BLOCKS_MEDIA_TYPE }, bodyFile: file }),
        })),
      )
    await send('warm')
    const times = await repeat(rounds, async (number) => {
      await delay(SETTLING_MS)
      const before = process.cpuUsage()
      const startedMs = performance.now()
      const uploading = await secondsDuring(server.pid, () => send(`round-${number}`))
      const wall = (performance.now() - startedMs) / 1_000
      return { ...uploading, wall, clients: secondsSince(before), gunzip: gzipSeconds('-dc', file) }
    })
    const to = isBare ? ` to a bare server with ${bareServerThreads} threads beside the main one` : ''
    const jsonBytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    console.log(
      `uploads ${form}${to}, in ${bodies.length} requests: ${profile}, ${(jsonBytes / MB).toFixed(0)} MB of JSON, median (min to max) of ${rounds}`,
    )
    const figure = (what: string, unit: string, of: (round: (typeof times)[0]) => number): void =>
      printFigure(what, unit, times.map(of))
    figure('main thread of the server', 's', ({ main }) => main)
    figure('its other threads', 's', ({ others }) => others)
    figure('its clients', 's', ({ clients }) => clients)
    figure('gunzip', 's', ({ gunzip }) => gunzip)
    figure('what it reached', 'of gunzip', ({ wall, gunzip }) => gunzip / wall)
    figure(`at most, on ${CORES} cores`, 'of gunzip', (round) => round.gunzip / shortestSeconds(round, CORES))
    figure(
      'at most, if all of this could be divided evenly over these cores',
      'of gunzip',
      ({ main, others, clients, gunzip }) => gunzip / ((main + others + clients) / CORES),
    )
    console.log(`  memory of the server: ${Math.round(peakResidentBytes(server.pid) / MB)} MB resident at most`)
  } finally {
    await server.stop()
  }
}

/** As the clients of the benchmark send them, in this process. */
async function sendAll(origin: string, exchanges: readonly Exchange[]): Promise<void> {
  checked(await new JobRunner({ origin, connections: CLIENTS, exchanges }, () => undefined).run())
}
