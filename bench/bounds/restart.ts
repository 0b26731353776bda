import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { downloadToFile } from '../download.ts'
import { LoadClient } from '../load/client.ts'
import { repeat } from '../measure.ts'
import { startNginx } from '../nginx.ts'
import type { RunningServer } from '../server-process.ts'
import { type Bound, printFigure } from './bound.ts'
import { startPlainServer } from './plain-server.ts'
import { plannedModel, titleOf, urlOf } from './planned.ts'
import { secondsDuring, secondsSince } from './processor-time.ts'
import { whileServing } from './serving.ts'

/** A small model, and how often it is downloaded, so that V8 has compiled what a download runs. */
const OTHER_MODEL = { objects: 2_000, downloads: 20 }
/** Until a process that has just started is idle. The client is idle as long before each first download. */
const SETTLING_MS = 300

/**
 * The first planned download after a start of the server, the same one again, and the first one after downloads of another
 * model; what only a first one does, to compare the stored bytes with their checksums; and the same bytes from nginx, and
 * from a Node server that was just started and does nothing else. The client is that of the benchmark.
 */
export const restart: Bound = async (options) => {
  const planned = await plannedModel(options)
  const other = await plannedModel({ ...options, objects: OTHER_MODEL.objects }, 'other')
  const nginx = await startNginx(options.folder)
  if (nginx === undefined) throw new Error('nginx is not installed; it serves the same bytes, to compare with')
  const file = join(nginx.folder, 'answer.gz')
  await whileServing(planned.data, (server) => downloadToFile(urlOf(server, planned), planned.headers, file))
  const client = await LoadClient.start()
  const ask = (url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> =>
    askOnce(client, url, headers)
  const askServer = async (server: RunningServer): Promise<Times> => {
    let seconds = Number.NaN
    const { main, others } = await secondsDuring(server.pid, async () => {
      seconds = await ask(urlOf(server, planned), planned.headers)
    })
    return { seconds, processorSeconds: main + others }
  }
  await ask(`${nginx.url}/answer.gz`)
  const times = await repeat(options.rounds, async () => {
    const afterOthers = await whileServing(planned.data, async (server) => {
      for (let i = 0; i < OTHER_MODEL.downloads; i++) await ask(urlOf(server, other), other.headers)
      return await askServer(server)
    })
    await delay(SETTLING_MS)
    const nginxSeconds = await ask(`${nginx.url}/answer.gz`)
    const plainSeconds = await askPlainServer(file, ask)
    return await whileServing(planned.data, async (server) => {
      await delay(SETTLING_MS)
      const first = await askServer(server)
      const again = await askServer(server)
      return { first, again, afterOthers, nginxSeconds, plainSeconds, checksums: checksumSeconds(file) }
    })
  })
  await client.close()
  await nginx.stop()
  print(titleOf(options), times)
}

interface Times {
  readonly seconds: number
  readonly processorSeconds: number
}

interface Round {
  readonly first: Times
  readonly again: Times
  readonly afterOthers: Times
  readonly nginxSeconds: number
  readonly plainSeconds: number
  readonly checksums: number
}

function print(title: string, rounds: readonly Round[]): void {
  console.log(`first download after a restart, plan on disk: ${title}`)
  const figure = (what: string, unit: string, of: (round: Round) => number): void =>
    printFigure(what, unit, rounds.map(of))
  const both = (what: string, of: (round: Round) => Times): void => {
    figure(what, 's of processor time', (round) => of(round).processorSeconds)
    figure(what, 's', (round) => of(round).seconds)
  }
  both('the first download', ({ first }) => first)
  both('the first download, after those of another model', ({ afterOthers }) => afterOthers)
  both('the same again', ({ again }) => again)
  figure('checksums of its bytes', 's', ({ checksums }) => checksums)
  figure('the same bytes from a Node server that does nothing else, first download', 's', (round) => round.plainSeconds)
  figure('the same bytes from nginx', 's', ({ nginxSeconds }) => nginxSeconds)
  figure('the first download', 'of nginx', ({ first, nginxSeconds }) => nginxSeconds / first.seconds)
  figure('that of the Node server', 'of nginx', ({ plainSeconds, nginxSeconds }) => nginxSeconds / plainSeconds)
  figure('the first download', 'of that Node server', ({ first, plainSeconds }) => plainSeconds / first.seconds)
}

async function askOnce(client: LoadClient, url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const { origin, pathname } = new URL(url)
  const { seconds } = await client.run({
    origin,
    connections: 1,
    exchanges: [{ method: 'GET', path: pathname, headers }],
  })
  return seconds
}

async function askPlainServer(file: string, ask: (url: string) => Promise<number>): Promise<number> {
  const server = await startPlainServer(file)
  try {
    await delay(SETTLING_MS)
    return await ask(server.url)
  } finally {
    await server.stop()
  }
}

function checksumSeconds(file: string): number {
  const bytes = readFileSync(file)
  const started = process.cpuUsage()
  crc32(bytes)
  return secondsSince(started)
}
