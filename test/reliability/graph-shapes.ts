import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { processorMs } from '../support/processor.ts'

interface Shape {
  readonly name: string
  /** Ids that each object refers to, by its number; the root is number 0. */
  readonly referencesOf: (n: number) => readonly number[]
  readonly objects: number
}

export interface Outcome {
  readonly name: string
  readonly lines: number
  /** How often an id came that had come before. */
  readonly repeated: number
  readonly rootFirst: boolean
  readonly missing: string | null
  readonly strictStatus: number
  /** Processor time up to the first byte: unlike wall time it does not count what other processes do. */
  readonly graphMs: number
  /** The same for the second time, over the plan that the first made, and once more with `?strict`. */
  readonly againMs: number
  /** Beyond the highest peak before. */
  readonly grownBytes: number
}

const OBJECTS = 100_000
/** The ten objects below object n of an ordinary model. */
const tenBelow = (n: number): readonly number[] =>
  Array.from({ length: 10 }, (_, k) => n * 10 + k + 1).filter((child) => child < OBJECTS)
const upTo = (end: number): readonly number[] => Array.from({ length: end - 1 }, (_, n) => n + 1)

/** The first is the control: an ordinary model. */
const SHAPES: readonly Shape[] = [
  { name: 'control', objects: OBJECTS, referencesOf: tenBelow },
  { name: 'ring', objects: OBJECTS, referencesOf: (n) => [(n + 1) % OBJECTS] },
  { name: 'star and back', objects: OBJECTS, referencesOf: (n) => (n === 0 ? upTo(OBJECTS) : [0, n]) },
  { name: 'everybody knows everybody', objects: 300, referencesOf: () => Array.from({ length: 300 }, (_, n) => n) },
  { name: 'missing children', objects: 1, referencesOf: () => upTo(OBJECTS + 1) },
]

const idOf = (n: number): string => `o${n}`

function bodyOf({ objects, referencesOf }: Shape): string {
  const texts = Array.from(
    { length: objects },
    (_, n) =>
      `{"id":"${idOf(n)}","to":[${referencesOf(n)
        .map((to) => `{"referencedId":"${idOf(to)}"}`)
        .join()}]}`,
  )
  return `[${texts.join()}]`
}

async function idsOf(
  answer: Response,
): Promise<{ readonly lines: number; readonly distinct: number; readonly first: string }> {
  const text = await answer.text()
  const ids = text
    .split('\n')
    .slice(0, -1)
    .map((line) => line.slice(0, line.indexOf('\t')))
  return { lines: ids.length, distinct: new Set(ids).size, first: ids[0] }
}

async function outcomeOf(shape: Shape, url: string): Promise<Outcome> {
  const project = encodeURIComponent(shape.name)
  const upload = await fetch(`${url}/objects/${project}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: bodyOf(shape),
  })
  if (upload.status !== 200) throw new Error(`${shape.name}: ${await upload.text()}`)
  const peakBefore = process.resourceUsage().maxRSS
  const lines = { headers: { Accept: 'text/plain' } }
  const graphMs = processorMs()
  const graph = await fetch(`${url}/objects/${project}/o0`, lines)
  const graphEndMs = processorMs()
  const { lines: count, distinct, first } = await idsOf(graph)
  const againMs = processorMs()
  await (await fetch(`${url}/objects/${project}/o0`, lines)).body?.cancel()
  const strict = await fetch(`${url}/objects/${project}/o0?strict`)
  await strict.body?.cancel()
  return {
    name: shape.name,
    lines: count,
    repeated: count - distinct,
    rootFirst: first === 'o0',
    missing: graph.headers.get('stowage-missing-objects'),
    strictStatus: strict.status,
    graphMs: graphEndMs - graphMs,
    againMs: processorMs() - againMs,
    grownBytes: (process.resourceUsage().maxRSS - peakBefore) * 1_024,
  }
}

/**
 * Runs in a process of its own: each shape over one server, the control first; prints what each was answered with and
 * how far it pushed the peak of memory.
 */
const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
const server = createServer(service.node)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
for (const shape of SHAPES) {
  process.stdout.write(
    `${JSON.stringify(await outcomeOf(shape, `http://127.0.0.1:${(server.address() as AddressInfo).port}`))}\n`,
  )
}
server.closeAllConnections()
server.close()
await service.close({ graceMs: 1_000 })
