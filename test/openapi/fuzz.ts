import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import * as fc from 'fast-check'
import { AUTOMATION_AREA } from '../../src/automation-server/schemas/openapi/area.ts'
import { DELTA_MEDIA_TYPE } from '../../src/delta/delta.ts'
import { openApiDocument } from '../../src/openapi/document.ts'
import type { StowageError } from '../../src/index.ts'
import { behindPort, jsonUpload, rawExchange, type Served } from '../http/served.ts'
import { type Answered, ask, type Sent } from '../mounts/ask.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { hostileRequests, validRequests } from './arbitrary-requests.ts'
import { Conformance } from './conformance.ts'
import { FuzzedAutomation } from './fuzzed-automation.ts'

export interface FuzzOptions {
  /**
   * How long each of the three properties is tried, or how often; the one that waits for connections to be given up a
   * tenth of that.
   */
  readonly effort: { readonly timeMs: number } | { readonly requests: number }
  readonly seed: number
  /** The counterexample of a failed run, as fast-check prints it. */
  readonly path?: string
}

/** Far more than any of these small requests needs, also on a machine that is busy. */
const ANSWER_MS_MAX: number = PATIENCE_MS
const STALL_TIMEOUT_MS = 500
const BROKEN_SHARE = 0.1
/** What a request that follows the document may be answered with, as ids and versions are made up. */
const GOOD_STATUSES: ReadonlySet<number> = new Set([200, 204, 206, 304, 404, 409, 412, 416])
/**
 * The same for automation: inputs that the function does not take, a run that has just ended, a project that is not the
 * run's.
 */
const GOOD_STATUSES_OF_AUTOMATION: ReadonlySet<number> = new Set([...GOOD_STATUSES, 201, 400, 401, 403])
/** The same for deltas, whose steps are made up and lead anywhere. */
const STATUSES_OF_DELTAS: ReadonlySet<number> = new Set([...GOOD_STATUSES, 400, 413])
const MODEL: readonly object[] = [
  { id: 'root', children: [{ referencedId: 'child0' }, { referencedId: 'child1' }] },
  { id: 'child0', text: 'x'.repeat(4_000) },
  { id: 'child1', n: 1.5 },
  { id: 'incomplete', child: { referencedId: 'unknown' } },
]

function isDeltaUpload({ headers }: Sent): boolean {
  return String(headers?.['content-type']).startsWith(DELTA_MEDIA_TYPE)
}

/** A server to be sent anything, and what its host was told. */
export class FuzzedServer {
  readonly conformance: Conformance = new Conformance(openApiDocument({ server: '/', areas: [AUTOMATION_AREA] }))
  readonly #running: Served
  readonly #automation: FuzzedAutomation
  readonly #failures: readonly StowageError[]
  readonly #options: FuzzOptions

  private constructor(
    running: Served,
    automation: FuzzedAutomation,
    failures: readonly StowageError[],
    options: FuzzOptions,
  ) {
    this.#running = running
    this.#automation = automation
    this.#failures = failures
    this.#options = options
  }

  static async start(t: TestContext, options: FuzzOptions): Promise<FuzzedServer> {
    const failures: StowageError[] = []
    const automation = await FuzzedAutomation.start({
      limits: {
        requestBytesMax: 200_000,
        objectBytesMax: 50_000,
        inflatedBytesMax: 1_000_000,
        idListBytesMax: 20_000,
        objectsMax: 1_000,
        nestingMax: 100,
        partsMax: 10,
        partHeaderBytesMax: 1_000,
      },
      stallTimeoutMs: STALL_TIMEOUT_MS,
      cors: { origins: ['https://viewer.example'] },
      onError: (error) => failures.push(error),
    })
    const running = await behindPort(t, automation.service)
    const fuzzed = new FuzzedServer(running, automation, failures, options)
    assert.equal(
      (await running.service.fetch(new Request('http://in.process/objects/demo', jsonUpload(MODEL)))).status,
      200,
    )
    return fuzzed
  }

  /** Requests as the document describes them are answered well. */
  valid(): Promise<number> {
    return this.#holds(validRequests(this.conformance), 1, async (sent) => {
      const answered = await this.#answer(sent)
      // Whether a delta can be undone depends on what is held, so one that was made up is refused, as the document
      // says.
      const good = sent.path.startsWith('/api/v1/')
        ? GOOD_STATUSES_OF_AUTOMATION
        : isDeltaUpload(sent)
          ? STATUSES_OF_DELTAS
          : GOOD_STATUSES
      assert.ok(good.has(answered.status), `${answered.status} ${answered.body}`)
    })
  }

  /** Requests that are wrong in any way get an answer that the document describes, and never one of 500 and above. */
  hostile(): Promise<number> {
    return this.#holds(hostileRequests(this.conformance), 1, async (sent) => {
      const answered = await this.#answer(sent)
      assert.ok(answered.status < 500, `${answered.status} ${answered.body}`)
    })
  }

  /** A request that is itself broken may lose its connection, but not for ever, and harms no other. */
  broken(): Promise<number> {
    const wrongLengths = fc.tuple(
      validRequests(this.conformance),
      fc.integer({ min: -50, max: 50 }),
      fc.constantFrom('', 'Transfer-Encoding: chunked\r\n'),
    )
    return this.#holds(wrongLengths, BROKEN_SHARE, async ([sent, off, framing]) => {
      const answer = await withinTime(
        rawExchange(this.#running.port, [rawRequest(await this.#automation.real(sent), off, framing)]),
      )
      const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(answer) ?? []
      assert.ok(status === undefined || Number(status) < 500, answer.slice(0, 500))
    })
  }

  /** After everything: the model is still there, and nothing failed inside. */
  async stillServes(): Promise<void> {
    const { port } = this.#running
    const answered = await ask(port, { path: '/objects/demo/root', headers: { accept: 'text/plain' } })
    const [root, ...below] = [MODEL[0], MODEL[1], MODEL[2]].map(
      (object) => `${(object as { id: string }).id}\t${JSON.stringify(object)}`,
    )
    const [first, ...rest] = answered.body.trimEnd().split('\n')
    // A merge of packs may change the order of what is below the root.
    assert.deepEqual([first, ...rest.sort()], [root, ...below.sort()])
    assert.deepEqual(
      this.#failures.filter(({ statusCode }) => statusCode >= 500).map(({ code, cause }) => [code, cause]),
      [],
    )
  }

  async #answer(made: Sent): Promise<Answered> {
    const sent = await this.#automation.real(made)
    const answered = await withinTime(ask(this.#running.port, sent))
    assert.deepEqual(this.conformance.problems({ method: sent.method ?? 'GET', path: sent.path }, answered), [])
    return answered
  }

  /** Resolves with the number of requests that were tried. */
  async #holds<T>(requests: fc.Arbitrary<T>, share: number, check: (request: T) => Promise<void>): Promise<number> {
    const { effort, seed, path } = this.#options
    const extent =
      'requests' in effort
        ? { numRuns: Math.ceil(effort.requests * share) }
        : { numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: effort.timeMs, markInterruptAsFailure: false }
    let tried = 0
    const counted = async (request: T): Promise<void> => {
      tried++
      await check(request)
    }
    await fc.assert(fc.asyncProperty(requests, counted), { seed, ...extent, ...(path === undefined ? {} : { path }) })
    return tried
  }
}

/** A request whose length is off by some bytes, or whose body is no chunks although it says so. */
function rawRequest({ method = 'GET', path, headers = {}, body = '' }: Sent, off: number, framing: string): Buffer {
  const bytes = Buffer.from(body)
  const length = framing === '' ? `Content-Length: ${Math.max(0, bytes.length + off)}\r\n` : framing
  const lines = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  return Buffer.concat([
    Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines}${length}\r\n`, 'latin1'),
    bytes,
  ])
}

async function withinTime<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer came within ${ANSWER_MS_MAX} ms`)), ANSWER_MS_MAX)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}
