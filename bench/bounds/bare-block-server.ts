import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type LevelDatabase, openRecordsDatabase } from '../../adapters/level/database.ts'
import { BLOCKS_MEDIA_TYPE } from '../../src/blocks/ready-blocks.ts'
import { tuneHeap } from '../../src/cli/server/heap.ts'
import { decodeBlocks } from '../../src/decode/decode-blocks.ts'
import type { UploadSource } from '../../src/decode/wire.ts'
import { inspectBlocks } from '../../src/inspect/inspect-blocks.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import { MemoryBudget } from '../../src/memory/memory-budget.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'
import { type RunningServer, serverOf } from '../server-process.ts'

/** Ids in one call of LevelDB, as in an upload to Stowage. */
const LOOKUP_KEYS = 1_000
/** Of the record of an object, about. */
const RECORD_BYTES = 24
const MEMORY_BYTES_MAX = 67_108_864

/**
 * A process of its own that takes ready blocks, and does nothing that Stowage could do without: it inflates them,
 * compares their checksums, inspects their lines, asks LevelDB for each id, syncs the body to a file, and then a record
 * for each object to LevelDB. It makes no tables, knows no projects, and checks no token. Its heap grows as that of
 * `stowage serve`.
 */
export async function startBareBlockServer(folder: string): Promise<RunningServer> {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), 'bare-block-server', folder]
  return await serverOf(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }))
}

interface Parts {
  readonly folder: string
  readonly database: LevelDatabase
  readonly memory: MemoryBudget
}

async function store(request: IncomingMessage, name: string, { folder, database, memory }: Parts): Promise<void> {
  const { signal } = new AbortController()
  const lease = memory.open({ signal })
  const { bufferPool } = memory
  const received: Uint8Array[] = []
  const source: UploadSource = {
    contentType: { mediaType: BLOCKS_MEDIA_TYPE, parameters: new Map(), text: BLOCKS_MEDIA_TYPE },
    contentEncoding: undefined,
    contentLength: undefined,
    body: noting(request, received),
  }
  const ids: Uint8Array[] = []
  const blocks = decodeBlocks(source, DEFAULT_LIMITS, { signal, memory: lease })
  for await (const batch of inspectBlocks(blocks, DEFAULT_LIMITS, { signal, bufferPool })) {
    const here = idsOf(batch)
    for (let first = 0; first < here.length; first += LOOKUP_KEYS)
      await database.getMany(here.slice(first, first + LOOKUP_KEYS))
    for (const id of here) ids.push(id)
    bufferPool.giveBack(batch.lines)
    bufferPool.giveBack(batch.names)
  }
  lease.release()
  await writeDurably(join(folder, name), received)
  const writes = database.batch()
  for (const id of ids) writes.put(id, new Uint8Array(RECORD_BYTES))
  await writes.write({ sync: true })
}

async function writeDurably(file: string, pieces: readonly Uint8Array[]): Promise<void> {
  const handle = await open(file, 'wx')
  await handle.writev(pieces)
  await handle.datasync()
  await handle.close()
}

async function* noting(request: IncomingMessage, received: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    received.push(chunk)
    yield chunk
  }
}

function idsOf({ count, lines, lineBytes, idBytes }: ObjectBatch): Uint8Array[] {
  const ids: Uint8Array[] = []
  for (let index = 0, at = 0; index < count; at += lineBytes[index++]) ids.push(lines.slice(at, at + idBytes[index]))
  return ids
}

async function serve(folder: string): Promise<void> {
  const { database } = await openRecordsDatabase(join(folder, 'records'), { createIfMissing: true })
  const memory = new MemoryBudget(MEMORY_BYTES_MAX, { bufferPool: new BufferPool(MEMORY_BYTES_MAX) })
  let bodies = 0
  tuneHeap()
  const server = createServer((request, response) => {
    store(request, `body-${bodies++}`, { folder, database, memory }).then(
      () => response.end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  }).listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo
    console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid }))
  })
}

if (process.argv[2] === 'bare-block-server') await serve(process.argv[3])
