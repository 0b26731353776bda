import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { download, downloadToFile } from '../download.ts'
import { repeat } from '../measure.ts'
import { startNginx } from '../nginx.ts'
import type { RunningServer } from '../server-process.ts'
import { type Bound, printFigure } from './bound.ts'
import { plannedModel, titleOf, urlOf } from './planned.ts'
import { secondsDuring } from './processor-time.ts'
import { whileServing } from './serving.ts'

const CLIENTS = 32
/** The unit of `/proc/self/stat`, on every Linux that Node runs on. */
const CLOCK_TICKS_PER_SECOND = 100

/** A small model, and how often it is downloaded, so that V8 has compiled what a download runs. */
const OTHER_MODEL = { objects: 2_000, downloads: 20 }

/**
 * The first planned download after a start of the server, the same one again, and the first one after downloads of another
 * model; what only a first one does, to compare the stored bytes with their checksums; and a download of the same bytes
 * from nginx. No first download can be faster than the same one again with these checksums.
 */
export const restart: Bound = async (options) => {
  const planned = await plannedModel(options)
  const other = await plannedModel({ ...options, objects: OTHER_MODEL.objects }, 'other')
  const nginx = await startNginx(options.folder)
  if (nginx === undefined) throw new Error('nginx is not installed; it serves the same bytes, to compare with')
  const file = join(nginx.folder, 'answer.gz')
  await whileServing(planned.data, (server) => downloadToFile(urlOf(server, planned), planned.headers, file))
  const ask = async (server: RunningServer): Promise<Times> => {
    let seconds = Number.NaN
    const { main, others } = await secondsDuring(server.pid, async () => {
      ;[{ seconds }] = await download(urlOf(server, planned), planned.headers)
    })
    return { seconds, processorSeconds: main + others }
  }
  const times = await repeat(options.rounds, async () => {
    const afterOthers = await whileServing(planned.data, async (server) => {
      for (let i = 0; i < OTHER_MODEL.downloads; i++) await download(urlOf(server, other), other.headers)
      return await ask(server)
    })
    const [{ seconds: nginxSeconds }] = await download(`${nginx.url}/answer.gz`, {})
    return await whileServing(planned.data, async (server) => ({
      first: await ask(server),
      again: await ask(server),
      afterOthers,
      nginxSeconds,
      checksums: checksumSeconds(file),
    }))
  })
  await nginx.stop()
  console.log(`first download after a restart, plan on disk: ${titleOf(options)}`)
  const figure = (what: string, unit: string, of: (round: (typeof times)[0]) => number): void =>
    printFigure(what, unit, times.map(of))
  const both = (what: string, of: (round: (typeof times)[0]) => Times): void => {
    figure(what, 's of processor time', (round) => of(round).processorSeconds)
    figure(what, 's', (round) => of(round).seconds)
  }
  both('the first download', ({ first }) => first)
  both('the first download, after those of another model', ({ afterOthers }) => afterOthers)
  both('the same again', ({ again }) => again)
  figure('checksums of its bytes', 's', ({ checksums }) => checksums)
  figure('the same bytes from nginx', 's', ({ nginxSeconds }) => nginxSeconds)
  figure('the first download', 'of nginx', ({ first, nginxSeconds }) => nginxSeconds / first.seconds)
  figure('at most', 'of nginx', ({ again, checksums, nginxSeconds }) => nginxSeconds / (again.seconds + checksums))
}

interface Times {
  readonly seconds: number
  readonly processorSeconds: number
}

/** The processor time of as many planned downloads by one client and by many, and of the clients themselves. */
export const clients: Bound = async (options) => {
  const planned = await plannedModel(options)
  const times = await whileServing(planned.data, async (server) => {
    const [url, { headers }] = [urlOf(server, planned), planned]
    await download(url, headers)
    return await repeat(options.rounds, async () => ({
      one: await withClients(server.pid, () => repeat(CLIENTS, () => download(url, headers))),
      many: await withClients(server.pid, () =>
        Promise.all(Array.from({ length: CLIENTS }, () => download(url, headers))),
      ),
    }))
  })
  console.log(`${CLIENTS} planned downloads: ${titleOf(options)}`)
  const figure = (what: string, unit: string, of: (round: (typeof times)[0]) => number): void =>
    printFigure(what, unit, times.map(of))
  figure('the server, one after another', 's', ({ one }) => one.server)
  figure('the server, all at once', 's', ({ many }) => many.server)
  figure('the clients, one after another', 's', ({ one }) => one.clients)
  figure('the clients, all at once', 's', ({ many }) => many.clients)
  figure(
    'at most, all at once',
    'of the speed of one',
    ({ one, many }) => (one.server + one.clients) / (many.server + many.clients),
  )
}

async function withClients(
  pid: number,
  work: () => Promise<unknown>,
): Promise<{ readonly server: number; readonly clients: number }> {
  const before = childSeconds()
  const { main, others } = await secondsDuring(pid, work)
  return { server: main + others, clients: childSeconds() - before }
}

function checksumSeconds(file: string): number {
  const bytes = readFileSync(file)
  const started = process.cpuUsage()
  crc32(bytes)
  const { user, system } = process.cpuUsage(started)
  return (user + system) / 1e6
}

/** What the children of this process that have ended used: the clients. */
function childSeconds(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / CLOCK_TICKS_PER_SECOND
}
