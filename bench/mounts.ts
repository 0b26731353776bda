import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { printRows, type Row, sample } from './measure.ts'
import { building } from './model/building.ts'
import { countOf, orUsage, readOptions } from './options.ts'

/*
 * `npm run bench:mounts`: what a mount adds to the time of plain `http`, for each kind of request. All hosts run in one process of their own, over
 * one service where that can be. Requests go in pairs, one to plain `http` and one to the host, in turns first; the median of the pairs' differences is told, in
 * hundredths of plain `http`'s median, with the interval in which that median lies in 95 of 100 runs. A second plain `http` shows what the measurement itself
 * makes of no difference at all. What the host takes for an answer of its own, in which Stowage has no part, is the host's share: it is told, and what
 * is left of the difference without it is the mount's. Hono has no mount: it is fetch-style, and its server turns streams of one kind into the other.
 */

const USAGE = 'npm run bench:mounts -- [--factor N]'
const chosen = readOptions(USAGE, { factor: { type: 'string', default: '1' } })
const FACTOR = orUsage(USAGE, () => countOf('factor', chosen.factor))
const MODEL_OBJECTS = 20_000
const OBJECTS_A_PART = 5_000
const WARM_REQUESTS = 100
const WARM_PAIRS = 3
/** No two connections are equally fast, so that each is used for a few pairs only. */
const PAIRS_ON_A_CONNECTION = 10
const ADDED_MAX = 0.05
/** Standard deviations that 95 in 100 of a normal distribution are within. */
const DEVIATIONS = 1.96
const UPLOAD_BYTES = 1_000_000
const START_TIMEOUT_MS = 120_000
const ANSWER_TIMEOUT_MS = 20_000
const PROJECT = 'bench'
const PLAIN = 'http'
const CONTROL = 'http, once more'
const PREFIX = '/models'

interface Workload {
  readonly name: string
  /** Of the answer that is expected. */
  readonly status: 200 | 404
  readonly pairs: number
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

const model = [...building({ objects: MODEL_OBJECTS })].flat()
const rootId = model[model.length - 1].id
const jsonType = { 'content-type': 'application/json' }
const asArray = (objects: readonly { readonly json: string }[]): Buffer =>
  Buffer.from(`[${objects.map(({ json }) => json).join(',')}]`)
const parts = Array.from({ length: Math.ceil(model.length / OBJECTS_A_PART) }, (_, part) =>
  asArray(model.slice(part * OBJECTS_A_PART, (part + 1) * OBJECTS_A_PART)),
)

/** The first objects of the model, as many as there are in this many bytes. */
function beginning(bytes: number): Buffer {
  let [count, left] = [0, bytes]
  while (left > 0 && count < model.length) left -= Buffer.byteLength(model[count++].json) + 1
  return asArray(model.slice(0, count))
}

const upload: Workload = {
  name: 'upload of 1 MB',
  pairs: 100,
  status: 200,
  method: 'POST',
  path: `/objects/${PROJECT}`,
  headers: jsonType,
  body: beginning(UPLOAD_BYTES),
}
const WORKLOADS: readonly Workload[] = [
  { name: "an answer of the host's own", pairs: 600, status: 404, method: 'GET', path: '/nothing', headers: {} },
  {
    name: 'one object',
    pairs: 600,
    status: 200,
    method: 'GET',
    path: `/objects/${PROJECT}/${model[0].id}/single`,
    headers: {},
  },
  {
    name: 'diff of 1,000 ids',
    pairs: 200,
    status: 200,
    method: 'POST',
    path: `/api/diff/${PROJECT}`,
    headers: jsonType,
    body: Buffer.from(JSON.stringify({ objects: JSON.stringify(model.slice(0, 1_000).map(({ id }) => id)) })),
  },
  {
    name: 'graph of 20,000 objects',
    pairs: 100,
    status: 200,
    method: 'GET',
    path: `/objects/${PROJECT}/${rootId}`,
    headers: { accept: 'text/plain', 'accept-encoding': 'gzip' },
  },
  upload,
]

function send(
  agent: Agent,
  port: number,
  prefix: string,
  { method, path, headers, body, status }: Workload,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': body.length }
    const req = request(
      { agent, host: '127.0.0.1', port, method, path: `${prefix}${path}`, headers: { ...headers, ...length } },
      (res) => {
        if (res.statusCode !== status) reject(new Error(`${path} answered ${res.statusCode}`))
        res.resume().on('end', resolve).on('error', reject)
      },
    )
    req.setTimeout(ANSWER_TIMEOUT_MS, () =>
      req.destroy(new Error(`${path} on port ${port} was not answered within ${ANSWER_TIMEOUT_MS} ms`)),
    )
    req.on('error', (cause) => reject(new Error(`${path} on port ${port}`, { cause }))).end(body)
  })
}

async function timeOnce(agent: Agent, port: number, prefix: string, workload: Workload): Promise<number> {
  const startedMs = performance.now()
  await send(agent, port, prefix, workload)
  return performance.now() - startedMs
}

/** The times of plain `http` and of the host, in milliseconds. */
type Pairs = readonly (readonly [number, number])[]

async function timePairs(plainPort: number, port: number, prefix: string, workload: Workload): Promise<Pairs> {
  const pairs: [number, number][] = []
  while (pairs.length < workload.pairs * FACTOR) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const plain = (): Promise<number> => timeOnce(agent, plainPort, '', workload)
    const host = (): Promise<number> => timeOnce(agent, port, prefix, workload)
    for (let n = -WARM_PAIRS; n < PAIRS_ON_A_CONNECTION; n++) {
      const first = await (n % 2 === 0 ? plain() : host())
      const second = await (n % 2 === 0 ? host() : plain())
      if (n >= 0) pairs.push(n % 2 === 0 ? [first, second] : [second, first])
    }
    agent.destroy()
  }
  return pairs
}

/** The confidence interval of the median of these samples, by their order alone. */
function medianInterval(values: readonly number[]): readonly [number, number] {
  const sorted = [...values].sort((a, b) => a - b)
  const reach = (DEVIATIONS * Math.sqrt(sorted.length)) / 2
  const at = (index: number): number => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(index)))]
  return [at(sorted.length / 2 - reach - 1), at(sorted.length / 2 + reach)]
}

/** `hostMs` is the host's share, for hosts whose mount is measured. */
function describePairs(name: string, pairs: Pairs, hostMs: number | undefined): Row {
  const plainMs = sample(pairs.map(([plain]) => plain)).median
  const differences = pairs.map(([plain, host]) => host - plain)
  const addedMs = sample(differences).median
  const inHundredths = (ms: number): string => ((ms / plainMs) * 100).toFixed(1)
  const [low, high] = medianInterval(differences)
  const all = `${inHundredths(addedMs)} in 100 (${inHundredths(low)} to ${inHundredths(high)}): ${(addedMs * 1_000).toFixed(0)} us more than ${plainMs.toFixed(3)} ms`
  if (hostMs === undefined) return { what: name, value: all }
  const mountMs = addedMs - hostMs
  return {
    what: name,
    value: `${all}; the mount's ${inHundredths(mountMs)}`,
    target: `under ${ADDED_MAX * 100}`,
    met: mountMs / plainMs < ADDED_MAX,
  }
}

const hasMount = (name: string): boolean => name !== CONTROL && !name.startsWith('hono')

/** Plain `http` is asked without a prefix. */
const prefixOf = (name: string): string => (name === PLAIN || name === CONTROL ? '' : PREFIX)

const child = fork(new URL('./mounts-server.ts', import.meta.url))
child.once('exit', (code, signal) => {
  console.error(`the hosts ended with ${signal ?? `code ${code}`}`)
  process.exit(1)
})
const [ports] = (await once(child, 'message', { signal: AbortSignal.timeout(START_TIMEOUT_MS) })) as [
  readonly (readonly [string, number])[],
]
const plainPort = new Map(ports).get(PLAIN) as number
for (const [name, port] of ports) {
  const prefix = prefixOf(name)
  for (const body of parts) await send(new Agent(), port, prefix, { ...upload, body })
  for (const workload of WORKLOADS) {
    for (let n = 0; n < Math.min(WARM_REQUESTS, workload.pairs); n++) await send(new Agent(), port, prefix, workload)
  }
}
const hostShareMs = new Map<string, number>()
for (const workload of WORKLOADS) {
  const rows: Row[] = []
  for (const [name, port] of ports) {
    if (name === PLAIN) continue
    const pairs = await timePairs(plainPort, port, prefixOf(name), workload)
    if (workload.status === 404 && hasMount(name))
      hostShareMs.set(name, Math.max(0, sample(pairs.map(([plain, host]) => host - plain)).median))
    rows.push(describePairs(name, pairs, workload.status === 200 ? hostShareMs.get(name) : undefined))
  }
  printRows(`${workload.name}, ${workload.pairs * FACTOR} pairs`, rows)
}
child.removeAllListeners('exit').disconnect()
