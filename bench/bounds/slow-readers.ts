import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { downloadToFile } from '../download.ts'
import { LoadClient } from '../load/client.ts'
import type { Exchange } from '../load/job.ts'
import { repeat } from '../measure.ts'
import { startNginx } from '../nginx.ts'
import type { RunningServer } from '../server-process.ts'
import { type Bound, printFigure } from './bound.ts'
import { plannedModel, titleOf, urlOf } from './planned.ts'
import { whileServing } from './serving.ts'

const READERS = 500
const SLOW_BYTES_PER_SECOND = 20_000
const DOWNLOADS = 20
/** All of them have one address. */
const SERVER_OPTIONS = ['--waiting-per-address-max', '1000', '--requests-per-address-max', '1000']
/** Until the buffers of the operating system are full for each reader: before, each server sends at full speed. */
const SETTLE_MS = 40_000
/** A round takes a minute and a half. */
const ROUNDS_MAX = 3

/**
 * What 500 slow readers cost another client: of this server, and of nginx with the same bytes as a file. They and the
 * other client share the cores with either server.
 */
export const slowReaders: Bound = async (given) => {
  const options = { ...given, rounds: Math.min(given.rounds, ROUNDS_MAX) }
  const planned = await plannedModel(options)
  const nginx = await startNginx(options.folder)
  if (nginx === undefined) throw new Error('nginx is not installed; it serves the same bytes, to compare with')
  const [another, slow] = [await LoadClient.start(), await LoadClient.start()]
  const besideReaders = async (url: string, headers: Exchange['headers']): Promise<Besides> => {
    const { origin, pathname } = new URL(url)
    const exchanges = [{ method: 'GET', path: pathname, headers }] as const
    const job = { origin, connections: 1, exchanges, total: DOWNLOADS }
    await another.run(job)
    const alone = await another.run(job)
    const reading = await slow.begin({
      origin,
      connections: READERS,
      exchanges,
      total: READERS,
      readBytesPerSecondMax: SLOW_BYTES_PER_SECOND,
    })
    try {
      await delay(SETTLE_MS)
      const beside = await another.run(job)
      return { alone: alone.seconds, beside: beside.seconds }
    } finally {
      await reading.stop()
    }
  }
  try {
    const measure = async (server: RunningServer): Promise<Round[]> => {
      await downloadToFile(urlOf(server, planned), planned.headers, join(nginx.folder, 'answer.gz'))
      return await repeat(options.rounds, async () => ({
        server: await besideReaders(urlOf(server, planned), planned.headers),
        nginx: await besideReaders(`${nginx.url}/answer.gz`, {}),
      }))
    }
    const times = await whileServing(planned.data, measure, SERVER_OPTIONS)
    console.log(`${DOWNLOADS} planned downloads beside ${READERS} slow readers: ${titleOf(options)}`)
    for (const which of ['server', 'nginx'] as const) {
      const of = (figure: (besides: Besides) => number): number[] => times.map((round) => figure(round[which]))
      printFigure(
        `${which}, nobody else`,
        's',
        of(({ alone }) => alone),
      )
      printFigure(
        `${which}, beside them`,
        's',
        of(({ beside }) => beside),
      )
      printFigure(
        `${which}, beside them`,
        'times alone',
        of(({ alone, beside }) => beside / alone),
      )
    }
    printFigure(
      'nginx, beside them',
      'times the server alone',
      times.map(({ server, nginx: ofNginx }) => ofNginx.beside / server.alone),
    )
  } finally {
    await Promise.all([another.close(), slow.close(), nginx.stop()])
  }
}

type Round = Readonly<Record<'server' | 'nginx', Besides>>

/** Seconds of the downloads. */
interface Besides {
  readonly alone: number
  readonly beside: number
}
