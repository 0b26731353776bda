import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MB } from '../../src/limits.ts'
import { KillableServer } from './kill-rounds.ts'
import { type Latency, Load } from './upkeep-load.ts'

/*
 * 32 clients upload and download, in rounds: in the first half of each the storage is left alone, in the second half objects are collected and packs
 * are merged.
 */

export const CLIENTS = 32
/** In units of 2^20 bytes. */
export const MEMORY_MB_MAX = 300
export const P99_RATIO_MAX = 3
const PROJECT = 'house'
const PAGE_BYTES = 4 * MB
const PROCESSOR_SHARE = 0.5

/** Condemns, frees and merges once. */
const STEPS = ['age', 'age', 'collect', 'age', 'age', 'collect', 'compact'] as const

interface Window {
  readonly beganAtMs: number
  readonly endedAtMs: number
}

export interface UpkeepFigures {
  readonly residentMbMax: number
  /** Without mapped files. */
  readonly ownMbMax: number
  readonly freed: number
  readonly merges: number
}

export class UpkeepRounds {
  readonly #t: TestContext
  readonly #server: KillableServer
  readonly #load: Load
  /** Rejects with the first request that failed. */
  readonly #ended: Promise<never>
  #steps = 0
  #collections = 0
  #freed = 0
  #merges = 0

  private constructor(t: TestContext, server: KillableServer, load: Load) {
    this.#t = t
    this.#server = server
    this.#load = load
    this.#ended = load.failure().then(() => Promise.reject(new Error('the load ended too early')))
    this.#ended.catch(() => undefined)
  }

  /** Resolves when every client has uploaded. */
  static async start(t: TestContext): Promise<UpkeepRounds> {
    const folder = await mkdtemp(join(tmpdir(), 'stowage-lifecycle-'))
    const server = new KillableServer(folder, PAGE_BYTES)
    t.after(async () => {
      await server.kill()
      await rm(folder, { recursive: true, force: true })
    })
    await server.start()
    await server.call('memory')
    const load = new Load(server.url, PROJECT, CLIENTS)
    const rounds = new UpkeepRounds(t, server, load)
    // However long that takes: only a request that fails ends it.
    await rounds.#within(load.hasMade(2 * CLIENTS))
    return rounds
  }

  /**
   * One round. Its second half lasts until something was freed and merged since the beginning, too. Resolves to how
   * many times as long single objects take in it (p99).
   */
  async ratioOfRound(halfMs: number): Promise<number> {
    const without = await this.#within(windowOf(() => sleep(halfMs)))
    const during = await this.#within(windowOf(() => this.#upkeepFor(halfMs)))
    const [withoutMs, duringMs] = [without, during].map((window) => p99(this.#load.latencies, window))
    this.#t.diagnostic(`single objects: p99 ${withoutMs.toFixed(0)} ms without, ${duringMs.toFixed(0)} ms during`)
    return duringMs / withoutMs
  }

  /** Ends the clients. */
  async stop(): Promise<UpkeepFigures> {
    await this.#load.stop()
    const { residentBytesMax, ownBytesMax } = await this.#server.call('memory')
    const [residentMbMax, ownMbMax] = [residentBytesMax, ownBytesMax].map((bytes) => Math.round(bytes / MB))
    this.#t.diagnostic(
      `${this.#load.steps} uploads and downloads, ${this.#load.latencies.length} single objects; ${this.#collections} collections freed ${this.#freed} objects, ${this.#merges} merges; at most ${ownMbMax} MB of memory, ${residentMbMax} MB with mapped files`,
    )
    return { residentMbMax, ownMbMax, freed: this.#freed, merges: this.#merges }
  }

  #within<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#ended])
  }

  /** What is under way at the end is stopped, and goes on in the next round: a pass may take longer than a round. */
  async #upkeepFor(atLeastMs: number): Promise<void> {
    const untilMs = performance.now() + atLeastMs
    const isEnough = (): boolean => this.#freed > 0 && this.#merges > 0
    const stopping = setTimeout(() => {
      if (isEnough()) this.#server.call('stopUpkeep').catch(() => undefined)
    }, atLeastMs)
    while (performance.now() < untilMs || !isEnough()) await this.#step(STEPS[this.#steps++ % STEPS.length])
    clearTimeout(stopping)
  }

  async #step(kind: (typeof STEPS)[number]): Promise<void> {
    const beganAtMs = performance.now()
    if (kind === 'age') {
      await this.#server.call('advanceEpochs', 1)
      // An upload may not take longer than the grace, which is one epoch here.
      await this.#load.settled()
      return
    }
    const count = await this.#server.call('workUntilStopped', PROJECT, kind, PROCESSOR_SHARE)
    const tookS = ((performance.now() - beganAtMs) / 1_000).toFixed(1)
    if (kind === 'collect') {
      this.#freed += count
      this.#collections++
    } else this.#merges += count
    this.#t.diagnostic(
      `${kind}: ${tookS} s, ${count} ${kind === 'collect' ? 'objects freed' : 'merges'}, after ${this.#load.steps} uploads`,
    )
  }
}

async function windowOf(act: () => Promise<unknown>): Promise<Window> {
  const beganAtMs = performance.now()
  await act()
  return { beganAtMs, endedAtMs: performance.now() }
}

/** Of the requests that lie in the window as a whole. */
function p99(latencies: readonly Latency[], { beganAtMs, endedAtMs }: Window): number {
  const sorted = latencies
    .filter((one) => one.beganAtMs >= beganAtMs && one.beganAtMs + one.tookMs <= endedAtMs)
    .map(({ tookMs }) => tookMs)
    .sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
}
