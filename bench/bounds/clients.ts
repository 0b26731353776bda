import { readFileSync } from 'node:fs'
import { download } from '../download.ts'
import { repeat } from '../measure.ts'
import { type Bound, printFigure } from './bound.ts'
import { plannedModel, titleOf, urlOf } from './planned.ts'
import { secondsDuring } from './processor-time.ts'
import { whileServing } from './serving.ts'

const CLIENTS = 32
/** The unit of `/proc/self/stat`, on every Linux that Node runs on. */
const CLOCK_TICKS_PER_SECOND = 100

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

/** What the children of this process that have ended used: the clients. */
function childSeconds(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / CLOCK_TICKS_PER_SECOND
}
