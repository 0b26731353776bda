import { LoadClient } from '../load/client.ts'
import { repeat, sample } from '../measure.ts'
import { type Bound, printFigure } from './bound.ts'
import { startPlainServer } from './plain-server.ts'
import { plannedModel, titleOf, urlOf } from './planned.ts'
import { checksumSeconds, secondsToDownload, startSameBytes } from './same-bytes.ts'
import { whileServing } from './serving.ts'

/** Until V8 has compiled what a download runs. */
const WARMING_DOWNLOADS = 20
/** Of each server in a round, in turn. */
const DOWNLOADS = 5

/**
 * Planned downloads from a server that has sent them often, and the same bytes from nginx and from a Node server that
 * only reads them, computes their checksums and sends them. The client is that of the benchmark.
 */
export const recursive: Bound = async (options) => {
  const planned = await plannedModel(options)
  const { file, nginxUrl, stop } = await startSameBytes(planned, options.folder)
  const plain = await startPlainServer(file)
  const client = await LoadClient.start()
  const rounds = await whileServing(planned.data, async (server) => {
    const ask = {
      server: () => secondsToDownload(client, urlOf(server, planned), planned.headers),
      plain: () => secondsToDownload(client, plain.url),
      nginx: () => secondsToDownload(client, nginxUrl),
    }
    const downloads = async (times: number): Promise<Downloads> => {
      const seconds: Record<keyof Downloads, number[]> = { server: [], plain: [], nginx: [] }
      for (let i = 0; i < times; i++) {
        seconds.nginx.push(await ask.nginx())
        seconds.plain.push(await ask.plain())
        seconds.server.push(await ask.server())
      }
      const { server, plain, nginx } = seconds
      return { server: sample(server).median, plain: sample(plain).median, nginx: sample(nginx).median }
    }
    await downloads(WARMING_DOWNLOADS)
    return await repeat(options.rounds, async () => ({
      ...(await downloads(DOWNLOADS)),
      checksums: checksumSeconds(file),
    }))
  })
  await client.close()
  await plain.stop()
  await stop()
  print(titleOf(options), rounds)
}

/** The median seconds of each. */
interface Downloads {
  readonly server: number
  readonly plain: number
  readonly nginx: number
}

interface Round extends Downloads {
  readonly checksums: number
}

function print(title: string, rounds: readonly Round[]): void {
  console.log(`planned downloads: ${title}`)
  const figure = (what: string, unit: string, of: (round: Round) => number): void =>
    printFigure(what, unit, rounds.map(of))
  figure('a download', 's', ({ server }) => server)
  figure('checksums of its bytes', 's', ({ checksums }) => checksums)
  figure('the same bytes from a Node server that does nothing else', 's', ({ plain }) => plain)
  figure('the same bytes from nginx', 's', ({ nginx }) => nginx)
  figure('a download', 'of nginx', ({ server, nginx }) => nginx / server)
  figure('that of the Node server', 'of nginx', ({ plain, nginx }) => nginx / plain)
  figure('a download', 'of that Node server', ({ server, plain }) => plain / server)
}
