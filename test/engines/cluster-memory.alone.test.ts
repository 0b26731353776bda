import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { peakResidentBytes } from '../../bench/server.ts'
import { MB } from '../../src/limits.ts'
import { textsOfLines } from '../crash/client.ts'
import { jsonUpload } from '../http/served.ts'
import { type Made, textOf } from '../store/support.ts'
import { eventually } from '../support/patience.ts'
import { CaseEngines } from './case-place.ts'
import { startCaseServer } from './case-server-process.ts'
import { CuttingProxy } from './cutting-proxy.ts'
import { startToxiproxy } from './toxiproxy.ts'

/*
 * A server whose network is slow, breaks and stalls needs hardly more memory than under the same load without that:
 * whatever waits is leased, or waits with its sender.
 */

const MORE_BYTES_MAX = 64 * MB
const CLIENTS = 12
/** Each client uploads and downloads so many models in each part of the test. */
const MODELS = Number(process.env.STOWAGE_FAULTY_MODELS ?? '1')
const OBJECTS = 300
/** Some 3 MB for each model, which hardly shrink. */
const OBJECT_BYTES = 7_500
/** Until the server holds what it needs for this load. */
const CALM_ROUNDS = 3
const LATENCY_MS = 50
const MESSAGES_BETWEEN_RESETS = 100
/** A stall lasts for this long at least: until calls end by their time limit. */
const CALL_TIMEOUT_MS = Number(process.env.STOWAGE_STALL_MS ?? '2000')

interface Model {
  readonly rootId: string
  readonly objects: readonly Made[]
}

function modelOf(rootId: string): Model {
  const objects = Array.from({ length: OBJECTS }, (_, at) => ({
    id: `${rootId}-${at}`,
    data: randomBytes(OBJECT_BYTES).toString('base64'),
  }))
  const children = objects.map(({ id }) => ({ speckle_type: 'reference', referencedId: id }))
  return { rootId, objects: [{ id: rootId, children }, ...objects] }
}

/** Clients of one server, which repeat what failed until it succeeds. */
class Clients extends EventEmitter<{ failure: [] }> {
  failures = 0
  readonly #url: string

  constructor(url: string) {
    super()
    this.#url = url
  }

  /** Every client brings and fetches its models, and compares them. */
  async work(part: string): Promise<void> {
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        for (let count = 0; count < MODELS; count++) await this.#upAndDown(modelOf(`${part}-${client}-${count}`))
      }),
    )
  }

  async #upAndDown({ rootId, objects }: Model): Promise<void> {
    await this.#repeat('/objects/demo', jsonUpload(objects))
    const lines = await this.#repeat(`/objects/demo/${rootId}`, { headers: { Accept: 'text/plain' } })
    assert.deepEqual(textsOfLines(lines), new Map(objects.map((object) => [object.id, textOf(object)])))
  }

  async #repeat(path: string, request: RequestInit): Promise<string> {
    for (;;) {
      try {
        const answer = await fetch(`${this.#url}${path}`, request)
        const text = await answer.text()
        if (answer.ok) return text
        assert.ok(answer.status === 503, `${path} answered ${answer.status}: ${text.slice(0, 300)}`)
      } catch (error) {
        // The answer broke in its middle.
        if (!(error instanceof TypeError)) throw error
      }
      this.failures++
      this.emit('failure')
    }
  }
}

async function startServer(
  t: TestContext,
): Promise<{
  readonly url: string
  readonly peakBytes: () => number
  readonly proxies: readonly CuttingProxy[]
  readonly slowDown: (latencyMs: number) => Promise<void>
}> {
  const engines = await CaseEngines.start(t)
  const slow = await startToxiproxy(t, engines)
  const [postgres, s3] = await Promise.all([CuttingProxy.start(t, slow.postgres), CuttingProxy.start(t, slow.s3)])
  const { child, url } = await startCaseServer({
    connectionString: engines.postgres.url('postgres', postgres.port),
    s3: { ...engines.s3.options, endpoint: `http://127.0.0.1:${s3.port}` },
    clockOffsetMs: 0,
    upkeepSpeed: 1,
    isLazy: false,
    callTimeoutMs: CALL_TIMEOUT_MS,
  })
  t.after(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const { pid } = child
  assert.ok(pid)
  return { url, peakBytes: () => peakResidentBytes(pid), proxies: [postgres, s3], slowDown: slow.slowDown }
}

test('a slow network that breaks and stalls costs at most 64 MB', async (t) => {
  const { url, peakBytes, proxies, slowDown } = await startServer(t)
  const clients = new Clients(url)
  for (let round = 0; round < CALM_ROUNDS; round++) await clients.work(`calm-${round}`)
  const calmBytes = peakBytes()

  await slowDown(LATENCY_MS)
  for (const proxy of proxies) proxy.cutEvery(MESSAGES_BETWEEN_RESETS)
  await clients.work('slow')
  const slowBytes = peakBytes()

  const working = clients.work('stalled')
  working.catch(() => undefined)
  const [, s3] = proxies
  const cuts = s3.cuts
  await eventually(() => s3.cuts > cuts, 'packs are on their way')
  const before = clients.failures
  for (const proxy of proxies) proxy.stall()
  while (clients.failures - before < CLIENTS) await Promise.race([once(clients, 'failure'), working])
  for (const proxy of proxies) proxy.resume()
  await working
  const stalledBytes = peakBytes()

  const megabytes = [calmBytes, slowBytes, stalledBytes].map((bytes) => Math.round(bytes / MB))
  t.diagnostic(`${megabytes.join(', ')} MB at most: calm, slow and broken, stalled`)
  t.diagnostic(`${proxies.map(({ cuts: count }) => count).join(' and ')} resets, ${clients.failures} failures`)
  assert.ok(stalledBytes - calmBytes <= MORE_BYTES_MAX, `${megabytes.join(', ')} MB`)
})
