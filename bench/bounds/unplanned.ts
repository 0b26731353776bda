import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { Yielder } from '../../src/async/yielder.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import { LocationIndex } from '../../src/store/closure/location-index.ts'
import type { PackTables } from '../../src/store/pack/pack-format.ts'
import { type Pack, PackCatalog } from '../../src/store/records/pack-catalog.ts'
import { viewProject } from '../../src/store/records/projects.ts'
import { MB, repeat } from '../measure.ts'
import { building } from '../model/building.ts'
import { issueToken } from '../server.ts'
import { uploadAnotherRoot, uploadModel } from '../upload.ts'
import { type Bound, CORES, printFigure } from './bound.ts'
import { secondsDuring, shortestSeconds, type ThreadSeconds } from './processor-time.ts'
import { whileServing } from './serving.ts'

const OBJECTS = 1_000_000
const PROJECT = 'unplanned'
/** What a catalog keeps of the tables from one read to the next: one or two, as in a walk that reads far more of them. */
const TABLE_CACHE_BYTES_MAX = MB

/**
 * The processor time until the first byte of a root for which no plan exists, and of what every walk begins with: to
 * read the tables of all packs once, and to number their ids. Each is measured in a process that has done it before.
 */
export const unplanned: Bound = async ({ profile, objects = OBJECTS, rounds, folder }) => {
  const data = join(folder, 'data')
  const untilFirstByte = await whileServing(data, async ({ url, pid }) => {
    const target = { url, token: await issueToken(data, '*'), projectId: PROJECT }
    const { rootId } = await uploadModel(target, building({ objects, closure: 'root-less', profile }))
    const headers = { Authorization: `Bearer ${target.token}`, Accept: 'text/plain', 'Accept-Encoding': 'gzip' }
    const firstDownload = async (): Promise<ThreadSeconds> => {
      const newRootId = await uploadAnotherRoot(target, rootId)
      return await secondsUntilFirstByte(pid, `${url}/objects/${PROJECT}/${newRootId}`, headers)
    }
    await firstDownload()
    return await repeat(rounds, firstDownload)
  })
  const tables = await openTables(data)
  await tables.readAll()
  await tables.indexAll()
  const times = await repeat(rounds, async (round) => ({
    download: untilFirstByte[round],
    reading: await secondsDuring(process.pid, tables.readAll),
    indexing: await secondsDuring(process.pid, tables.indexAll),
  }))
  await tables.close()
  console.log(
    `first download of a root without a plan: ${profile}, ${objects} objects, median (min to max) of ${rounds}`,
  )
  const figures = (what: string, of: (round: (typeof times)[0]) => ThreadSeconds): void => {
    printFigure(
      `${what}, main thread`,
      's',
      times.map(of).map(({ main }) => main),
    )
    printFigure(
      `${what}, other threads`,
      's',
      times.map(of).map(({ others }) => others),
    )
    printFigure(
      `${what}, at least on ${CORES} cores`,
      's',
      times.map(of).map((seconds) => shortestSeconds(seconds, CORES)),
    )
  }
  figures('until the first byte', ({ download }) => download)
  figures('tables of all packs, read once', ({ reading }) => reading)
  figures('the same, with an index of the ids', ({ indexing }) => indexing)
}

/** The rest of the answer is thrown away, so that nothing goes on in the server afterwards. */
async function secondsUntilFirstByte(
  pid: number,
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<ThreadSeconds> {
  let response: IncomingMessage | undefined
  const seconds = await secondsDuring(pid, async () => {
    ;[response] = (await once(get(url, { headers }), 'response')) as [IncomingMessage]
  })
  if (response?.statusCode !== 200) throw new Error(`the download was answered with ${response?.statusCode}`)
  await finished(response.resume())
  return seconds
}

interface Tables {
  readonly readAll: () => Promise<void>
  readonly indexAll: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Reads the tables as a large walk does, into memory that is used again. */
async function openTables(data: string): Promise<Tables> {
  const backend = filesystemBackend({ path: data })
  const { records, blobs } = backend
  const project = await viewProject(records, PROJECT)
  if (project === undefined) throw new Error('the model that was uploaded is not there')
  const bufferPool = new BufferPool(TABLE_CACHE_BYTES_MAX)
  const parts = { records, blobs, environment: REAL_ENVIRONMENT, bufferPool }
  const catalog = new PackCatalog(parts, TABLE_CACHE_BYTES_MAX)
  const readAll = async (use: (pack: Pack, tables: PackTables) => Promise<unknown>): Promise<void> => {
    for await (const pack of catalog.packsFrom(project, 0, new AbortController().signal)) {
      const { tables, giveBack } = await catalog.borrowTables(pack)
      await use(pack, tables)
      giveBack()
    }
  }
  return {
    readAll: () => readAll(() => Promise.resolve()),
    indexAll: () => {
      const memory = { bufferPool: new BufferPool(0), tryHold: () => true, free: () => undefined }
      const index = new LocationIndex<Pack>(REAL_ENVIRONMENT.hashKey, memory, project.sequence)
      const yielder = new Yielder(REAL_ENVIRONMENT)
      return readAll(async (pack, { ids }) => {
        await index.add(pack, ids, pack.record, yielder)
      })
    },
    close: () => backend.close(),
  }
}
