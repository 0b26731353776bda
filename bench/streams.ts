import { randomUUID } from 'node:crypto'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { memoryBackend } from '../adapters/memory/index.ts'
import { createObjectService, openAccess, type ProjectObjects } from '../src/index.ts'
import { MB, round } from './measure.ts'
import { building } from './model/building.ts'

/*
 * `npm run bench:streams`: Node streams beside the iterables that they stand on, in process, in interleaved pairs. Fails when the median of a pair's ratios
 * says that the stream is more than 5 in 100 slower.
 */

const OBJECTS = 20_000
const PAIRS = 15
const WARM_UP_PAIRS = 3
const CHUNK_BYTES = 65_536
const RATIO_MAX = 1.05

interface Pair {
  readonly name: string
  readonly iterable: () => Promise<void>
  readonly stream: () => Promise<void>
}

const objects = [...building({ objects: OBJECTS })].flat()
const json = Buffer.from(`[${objects.map((object) => object.json).join(',')}]`)
const chunks = Array.from({ length: Math.ceil(json.length / CHUNK_BYTES) }, (_, at) =>
  json.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES),
)
const rootId = objects[objects.length - 1].id
const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
const project = service.project('read')
await project.upload(Readable.from(chunks), 'application/json')

const pairs: readonly Pair[] = [
  {
    name: 'upload of bytes',
    iterable: () => into((to) => to.upload(inTurn(chunks), 'application/json')),
    stream: () => into((to) => pipeline(chunks, to.createUploadStream())),
  },
  {
    name: 'graph as records',
    iterable: async () => {
      let bytes = 0
      for await (const batch of project.graph(rootId)) for (const record of batch) bytes += record.json.length
      check(bytes)
    },
    stream: async () => {
      let bytes = 0
      const count = new Writable({
        objectMode: true,
        write: ({ json: { length } }: { readonly json: Uint8Array }, _encoding, done) => ((bytes += length), done()),
      })
      await pipeline(project.createGraphStream(rootId, { objectMode: true }), count)
      check(bytes)
    },
  },
  {
    name: 'graph as bytes (beside service.fetch)',
    iterable: async () => {
      const headers = { Accept: 'text/plain', 'Accept-Encoding': 'identity' }
      const { body } = await service.fetch(new Request(`http://in.process/objects/read/${rootId}`, { headers }))
      let bytes = 0
      for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) bytes += chunk.length
      check(bytes)
    },
    stream: async () => {
      let bytes = 0
      for await (const chunk of project.createGraphStream(rootId) as AsyncIterable<Buffer>) bytes += chunk.length
      check(bytes)
    },
  },
]

console.log(`${OBJECTS} objects, ${round(json.length / MB)} MB of JSON, ${PAIRS} pairs`)
for (const pair of pairs) await compare(pair)
await service.close()

async function compare({ name, iterable, stream }: Pair): Promise<void> {
  const ratios: number[] = []
  const iterableMs: number[] = []
  for (let at = 0; at < PAIRS + WARM_UP_PAIRS; at++) {
    // The order must not matter.
    const [first, second] = at % 2 === 0 ? [iterable, stream] : [stream, iterable]
    const times = [await cpuMsOf(first), await cpuMsOf(second)]
    const [iterableTime, streamTime] = at % 2 === 0 ? times : times.toReversed()
    if (at < WARM_UP_PAIRS) continue
    ratios.push(streamTime / iterableTime)
    iterableMs.push(iterableTime)
  }
  const ratio = median(ratios)
  console.log(
    `  ${name.padEnd(40)} iterable ${round(median(iterableMs))} ms of processor time, stream ${ratio.toFixed(3)} times that (${quartiles(ratios)})`,
  )
  if (ratio > RATIO_MAX) process.exitCode = 1
}

/** Processor time is more reliable than the clock if others use the machine. */
async function cpuMsOf(run: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

async function into(run: (project: ProjectObjects) => Promise<unknown>): Promise<void> {
  const to = service.project(`upload ${randomUUID()}`)
  await run(to)
  await to.remove()
}

async function* inTurn<T>(items: readonly T[]): AsyncGenerator<T> {
  for (const item of items) yield await Promise.resolve(item)
}

function check(bytes: number): void {
  if (bytes < json.length - objects.length * 2) throw new Error(`${bytes} bytes of ${json.length} came`)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]
}

function quartiles(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b)
  return `quartiles ${sorted[sorted.length >> 2].toFixed(3)} and ${sorted[(3 * sorted.length) >> 2].toFixed(3)}`
}
