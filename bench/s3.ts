import { spawn } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync } from 'node:fs'
import type { ClientRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cachedBlobs } from '../adapters/cache/index.ts'
import { filesystemBlobs } from '../adapters/filesystem/index.ts'
import { levelRecords } from '../adapters/level/index.ts'
import { s3Blobs } from '../adapters/s3/index.ts'
import { DeflatePool } from '../src/compression/deflate-pool.ts'
import { emit } from '../src/emit/emit.ts'
import { inspectBatches } from '../src/inspect/inspect.ts'
import { DEFAULT_LIMITS, MB } from '../src/limits.ts'
import { divideMemory } from '../src/memory/service-memory.ts'
import type { BlobStore } from '../src/storage/backend.ts'
import { combinedBackend } from '../src/storage/combined-backend.ts'
import { createPackStore, type PackStore } from '../src/store/pack-store.ts'
import { freePort } from './free-port.ts'
import { engineProgram, listens, startS3Engine } from '../test/engines/s3-engine.ts'
import { printRows, round, type Row } from './measure.ts'
import { building } from './model/building.ts'
import { countOf, orUsage, readOptions } from './options.ts'

/*
 * `npm run bench:s3`: a planned download from files, from S3, and from S3 behind a cache on the local disk, with requests counted.
 */

const PROJECT = 'demo'
const UPLOADS_AT_ONCE = 4
const CACHE_BYTES = 4_000_000_000
/** Of a planned download of a million objects after a merge of all packs, without a cache. */
const GETS_MAX = 150
const GETS_MAX_OBJECTS = 1_000_000
const USAGE =
  'npm run bench:s3 -- [--objects N] [--latency-ms N] [--rounds N] [--compact] [--places files,S3] [--memory-mb N] [--folder PATH]'
const chosen = readOptions(USAGE, {
  objects: { type: 'string', default: '150000' },
  'latency-ms': { type: 'string', default: '0' },
  rounds: { type: 'string', default: '5' },
  compact: { type: 'boolean', default: false },
  places: { type: 'string', default: 'files,S3' },
  'memory-mb': { type: 'string', default: '96' },
  folder: { type: 'string', default: tmpdir() },
})
const [objects, rounds, memoryMB] = orUsage(USAGE, () =>
  (['objects', 'rounds', 'memory-mb'] as const).map((option) => countOf(option, chosen[option])),
)
const latencyMs = orUsage(USAGE, () => countOf('latency-ms', chosen['latency-ms'], 0))
const { signal } = new AbortController()
const scratch = mkdtempSync(join(chosen.folder, 'stowage-s3-'))
const endings: (() => void)[] = [() => rmSync(scratch, { recursive: true, force: true })]
process.once('exit', () => endings.toReversed().forEach((end) => end()))
const ending = { after: (end: () => void): void => void endings.push(end) }
const compressor = new DeflatePool({ level: 4, concurrency: 1 })

interface Counted {
  requests: number
  /** Requests of HTTP, repeated ones too. */
  gets: number
  bytes: number
}

interface Cost extends Counted {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly gzipBytes: number
}

interface Place {
  readonly name: string
  readonly counted: Counted
  readonly open: (isCold: boolean) => BlobStore
}

let getsSent = 0
subscribe('http.client.request.start', (message) => {
  if ((message as { readonly request: ClientRequest }).request.method === 'GET') getsSent++
})
const engine = await startS3Engine(ending)
const slow = await withLatency(latencyMs)
const everyPlace: readonly Place[] = [
  place('files', () => filesystemBlobs({ path: join(scratch, 'blobs') })),
  place('S3', () => s3Blobs(slow)),
]
const places = everyPlace.filter(({ name }) => chosen.places.split(',').includes(name))
if (places.length === 0) throw new Error(`--places is ${chosen.places}; it must name files, S3 or both`)
const rows: Row[] = []
const roots = new Map<Place, string>()
for (const at of places) {
  const began = usage()
  const store = await opened(at, at.open(true))
  roots.set(at, await upload(store))
  await store.idle()
  const cost = since(began, { requests: 0, gets: 0, bytes: 0 }, 0)
  rows.push({
    what: `upload, ${at.name}`,
    value: `${round(cost.seconds)} s, ${round(cost.cpuSeconds)} s of processor time`,
  })
  const root = roots.get(at) ?? ''
  if (chosen.compact)
    await store.compactor.compact(
      PROJECT,
      async () => [{ kind: 'version', id: '1', groupId: 'model', rootObjectId: root }],
      { signal, all: true },
    )
  await download(store, root)
  await store.idle()
  await store.close()
}
const [files, s3] = everyPlace
const everyWay: readonly { name: string; at: Place; open: () => BlobStore }[] = [
  { name: 'files', at: files, open: () => files.open(true) },
  { name: 'S3, no cache', at: s3, open: () => s3.open(true) },
  {
    name: 'S3, cold cache',
    at: s3,
    open: () => (rmSync(join(scratch, 'cache'), { recursive: true, force: true }), cache(s3.open(true))),
  },
  { name: 'S3, warm cache', at: s3, open: () => cache(s3.open(true)) },
]
const ways = everyWay.filter(({ at }) => places.includes(at))
const costs = ways.map((): Cost[] => [])
for (let turn = 0; turn < rounds; turn++)
  for (const [way, { at, open }] of ways.entries()) {
    const store = await opened(at, open())
    Object.assign(at.counted, { requests: 0, bytes: 0 })
    const [began, getsBefore] = [usage(), getsSent]
    const gzipBytes = await download(store, roots.get(at) ?? '')
    costs[way].push(since(began, { ...at.counted, gets: getsSent - getsBefore }, gzipBytes))
    await store.close()
  }
for (const [way, { name }] of ways.entries()) {
  const cost = costs[way].toSorted((a, b) => a.seconds - b.seconds)[Math.floor(costs[way].length / 2)]
  const cpu = costs[way].map(({ cpuSeconds }) => cpuSeconds).toSorted((a, b) => a - b)[
    Math.floor(costs[way].length / 2)
  ]
  const gzipMB = cost.gzipBytes / MB
  rows.push({
    what: `planned download, ${name}`,
    value: `${round(cost.seconds)} s (${round(gzipMB / cost.seconds)} MB/s gzip), ${round(cpu)} s of processor time, ${cost.requests} reads of blobs (${cost.gets} GETs), ${round(cost.bytes / MB)} MB`,
    ...getsVerdict(name, cost),
  })
}
printRows(`${objects} objects, ${latencyMs} ms more to S3, median of ${rounds}`, rows)
process.exit()

function place(name: string, open: () => BlobStore): Place {
  const counted = { requests: 0, gets: 0, bytes: 0 }
  return { name, counted, open: () => counting(open(), counted) }
}

function getsVerdict(name: string, { gets }: Cost): Partial<Row> {
  if (!chosen.compact || name !== 'S3, no cache' || objects > GETS_MAX_OBJECTS) return {}
  return { target: `fewer than ${GETS_MAX} GETs`, met: gets < GETS_MAX }
}

function counting(blobs: BlobStore, counted: Counted): BlobStore {
  return {
    readBytesPreferred: blobs.readBytesPreferred,
    place: blobs.place,
    ready: async () => blobs.ready?.(),
    put: blobs.put.bind(blobs),
    read: (name, start, end, options) => {
      counted.requests++
      counted.bytes += end - start
      return blobs.read(name, start, end, options)
    },
    remove: blobs.remove.bind(blobs),
    list: blobs.list.bind(blobs),
    close: () => blobs.close(),
  }
}

function cache(blobs: BlobStore): BlobStore {
  return cachedBlobs(blobs, { path: join(scratch, 'cache'), sizeBytesMax: CACHE_BYTES })
}

async function opened(at: Place, blobs: BlobStore): Promise<PackStore> {
  const records = levelRecords({ path: join(scratch, `records-${at.name}`) })
  const memory = divideMemory(memoryMB * MB)
  const store = createPackStore({
    backend: combinedBackend({ records, blobs }),
    memory,
    onBackgroundError: console.error,
  })
  await store.ready()
  return store
}

async function upload(store: PackStore): Promise<string> {
  let rootId = ''
  const batches = building({ objects, closure: 'root-less' })
  const sendSome = async (): Promise<void> => {
    for (let next = batches.next(); !next.done; next = batches.next()) {
      const elements = [next.value.map(({ json }, index) => ({ bytes: Buffer.from(json), part: 0, index }))]
      rootId = next.value.at(-1)?.id ?? rootId
      const given = (async function* () {
        yield* elements
      })()
      await store.put(PROJECT, inspectBatches(given, DEFAULT_LIMITS, { signal }), { signal })
    }
  }
  await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, sendSome))
  return rootId
}

async function download(store: PackStore, rootId: string): Promise<number> {
  const selection = await store.closure(PROJECT, rootId, { signal })
  if (selection === undefined) throw new Error('the root is not held')
  let bytes = 0
  for await (const chunk of emit(selection, { format: 'text', coding: 'gzip' }, { signal, compressor }))
    bytes += chunk.length
  selection.release()
  return bytes
}

function usage(): { atMs: number; cpu: NodeJS.CpuUsage } {
  return { atMs: performance.now(), cpu: process.cpuUsage() }
}

function since({ atMs, cpu }: ReturnType<typeof usage>, counted: Counted, gzipBytes: number): Cost {
  const { user, system } = process.cpuUsage(cpu)
  return { seconds: (performance.now() - atMs) / 1_000, cpuSeconds: (user + system) / 1e6, ...counted, gzipBytes }
}

async function withLatency(latencyMs: number): Promise<typeof engine.options> {
  if (latencyMs === 0) return engine.options
  const [api, port] = [await freePort(), await freePort()]
  const child = spawn(engineProgram('toxiproxy'), ['-host', '127.0.0.1', '-port', String(api)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  ending.after(() => child.kill('SIGKILL'))
  await listens(child, api)
  const tell = async (path: string, body: object): Promise<void> => {
    const { ok, status } = await fetch(`http://127.0.0.1:${api}${path}`, { method: 'POST', body: JSON.stringify(body) })
    if (!ok) throw new Error(`toxiproxy answered ${status}`)
  }
  await tell('/proxies', { name: 's3', listen: `127.0.0.1:${port}`, upstream: `127.0.0.1:${engine.port}` })
  await tell('/proxies/s3/toxics', { type: 'latency', stream: 'downstream', attributes: { latency: latencyMs } })
  return { ...engine.options, endpoint: `http://127.0.0.1:${port}` }
}
