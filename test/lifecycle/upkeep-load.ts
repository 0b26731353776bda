import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type Project } from '../../src/client/index.ts'
import { linesOf } from '../archive/support.ts'
import { buildModel } from '../support/model.ts'

const OBJECTS = 80
const CHANGED = 10
const PINS_MAX = 3
const SINGLES = 8
/** Between two steps of a client. Without it, all that is measured is the queue in front of a busy processor. */
const PAUSE_MS = 500
const LOOK_MS = 50

/** How long one request for a single object took, and between which moments. */
export interface Latency {
  readonly beganAtMs: number
  readonly tookMs: number
}

/** Clients that upload, pin, download and read single objects until they are stopped. Every answer must be whole. */
export class Load {
  readonly latencies: Latency[] = []
  #steps = 0
  #isStopped = false
  readonly #running: Promise<void>[]
  /** The step of each client that is under way. */
  readonly #current: Promise<void>[] = []

  constructor(url: string, projectId: string, clients: number) {
    this.#running = Array.from({ length: clients }, (_, number) =>
      this.#client(createClient({ url, token: undefined, retry: { delayMs: 50 } }).project(projectId), number),
    )
  }

  get steps(): number {
    return this.#steps
  }

  /** Resolves when the clients have made so many steps together. */
  async hasMade(steps: number): Promise<void> {
    while (this.#steps < steps && !this.#isStopped) await sleep(LOOK_MS)
  }

  /** Resolves when no step is under way any more that was when this was called. */
  async settled(): Promise<void> {
    await Promise.all(this.#current)
  }

  /** Rejects with the first request that failed. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#running)
  }

  /** Rejects with the first request that failed; does not resolve before `stop`. */
  async failure(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #client(project: Project, number: number): Promise<void> {
    const pins: string[] = []
    for (let revision = 0; !this.#isStopped; revision++) {
      this.#current[number] = this.#step(project, number, revision, pins)
      await this.#current[number]
      this.#steps++
      await sleep(PAUSE_MS)
    }
  }

  async #step(project: Project, number: number, revision: number, pins: string[]): Promise<void> {
    const { rootId, objects } = buildModel({ objects: OBJECTS, seed: number + 1, revision, changed: CHANGED })
    await project.upload(
      objects.map(({ id, json }) => ({ id, json })),
      { concurrency: 1 },
    )
    pins.push((await project.pins.add({ rootObjectId: rootId })).id)
    const lines = await linesOf(project, rootId)
    assert.deepEqual(
      lines,
      objects.map(({ id, json }) => `${id}\t${json}`).sort(),
      `client ${number}, state ${revision}`,
    )
    for (let single = 0; single < SINGLES; single++) {
      const { id, json } = objects[(revision * SINGLES + single * 17) % objects.length]
      const beganAtMs = performance.now()
      const got = await project.getText(id)
      this.latencies.push({ beganAtMs, tookMs: performance.now() - beganAtMs })
      assert.equal(got?.json, json)
    }
    const [oldest] = pins
    if (pins.length <= PINS_MAX) return
    pins.shift()
    await project.pins.remove(oldest)
  }
}
