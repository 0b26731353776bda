import { spawn } from 'node:child_process'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { type LevelDatabase, openRecordsDatabase } from '../../adapters/level/database.ts'
import { tuneHeap } from '../../src/cli/server/heap.ts'
import { type RunningServer, serverOf } from '../server-process.ts'
import { type Intake, intakeElsewhere, intakeHere } from './block-intake.ts'

/** Ids in one call of LevelDB, as in an upload to Stowage. */
const LOOKUP_KEYS = 1_000
/** Of the record of an object, about. */
const RECORD_BYTES = 24

/**
 * A process of its own that takes ready blocks, and does nothing that Stowage could do without: it inflates them,
 * compares their checksums, inspects their lines, syncs the body to a file, asks LevelDB for each id, and then syncs a
 * record for each object to LevelDB. It makes no tables, knows no projects, and checks no token. Its heap grows as that
 * of `stowage serve`. All but the requests and LevelDB is left to this many other threads, if there are any.
 */
export async function startBareBlockServer(folder: string, threads = 0): Promise<RunningServer> {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), 'bare-block-server', folder, String(threads)]
  return await serverOf(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }))
}

async function store(request: IncomingMessage, file: string, database: LevelDatabase, takeIn: Intake): Promise<void> {
  const writes = database.batch()
  for await (const { bytes, lengths } of takeIn(request, file)) {
    const ids: Uint8Array[] = []
    for (let index = 0, at = 0; index < lengths.length; at += lengths[index++])
      ids.push(bytes.subarray(at, at + lengths[index]))
    for (let first = 0; first < ids.length; first += LOOKUP_KEYS)
      await database.getMany(ids.slice(first, first + LOOKUP_KEYS))
    for (const id of ids) writes.put(id, new Uint8Array(RECORD_BYTES))
  }
  await writes.write({ sync: true })
}

async function serve(folder: string, threads: number): Promise<void> {
  const { database } = await openRecordsDatabase(join(folder, 'records'), { createIfMissing: true })
  const takeIn = threads === 0 ? intakeHere() : intakeElsewhere(threads)
  let bodies = 0
  tuneHeap()
  const server = createServer((request, response) => {
    store(request, join(folder, `body-${bodies++}`), database, takeIn).then(
      () => response.end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  }).listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo
    console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid }))
  })
}

if (isMainThread && process.argv[2] === 'bare-block-server') await serve(process.argv[3], Number(process.argv[4]))
