import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MB } from '../../src/limits.ts'
import { eventually } from '../support/patience.ts'
import { KillableServer } from '../lifecycle/kill-rounds.ts'
import { type Latency, Load } from './upkeep-load.ts'

/*
 * 32 clients upload and download for `STOWAGE_UPKEEP_LOAD_SECONDS`: a quarter of the time without upkeep, half of it while objects are collected and packs
 * are merged, and a quarter without again, so that a machine that grows slower or faster does not decide.
 */

const SECONDS = Number(process.env.STOWAGE_UPKEEP_LOAD_SECONDS ?? 600)
const CLIENTS = 32
const PROJECT = 'house'
const PAGE_BYTES = 4 * MB
/** Less than the default: the process takes about 200 MB beside it, most of it for V8's garbage. */
const MEMORY_BYTES_MAX = 64 * MB
const PROCESSOR_SHARE = 0.5
const RESIDENT_MB_MAX = 300
const P99_RATIO_MAX = 3

interface Window {
  readonly beganAtMs: number
  readonly endedAtMs: number
}

test(`${CLIENTS} clients upload and download for ${SECONDS} s while objects are collected and packs are merged: no request fails, and single objects take less than ${P99_RATIO_MAX} times as long`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-lifecycle-'))
  const server = new KillableServer(folder, PAGE_BYTES, MEMORY_BYTES_MAX)
  t.after(async () => {
    await server.kill()
    await rm(folder, { recursive: true, force: true })
  })
  await server.start()
  const load = new Load(server.url, PROJECT, CLIENTS)
  const ended = load.failure().then(() => Promise.reject(new Error('the load ended too early')))
  const within = <T>(work: Promise<T>): Promise<T> => Promise.race([work, ended])
  await within(eventually(() => load.steps > 2 * CLIENTS, 'every client has uploaded'))
  const before = await within(windowOf(() => sleep(SECONDS * 250)))
  const done = { collections: 0, freed: 0, merges: 0 }
  const during = await within(
    windowOf(async () => {
      const untilMs = performance.now() + SECONDS * 500
      while (performance.now() < untilMs || done.freed === 0 || done.merges === 0) await upkeep(server, load, done)
    }),
  )
  const after = await within(windowOf(() => sleep(SECONDS * 250)))
  await load.stop()
  const { residentBytesMax } = await server.call('memory')
  const [withoutMs, duringMs] = [[before, after], [during]].map((windows) => p99(load.latencies, windows))
  const megabytes = Math.round(residentBytesMax / MB)
  t.diagnostic(
    `${load.steps} uploads and downloads, ${load.latencies.length} single objects; p99 ${withoutMs.toFixed(0)} ms without, ${duringMs.toFixed(0)} ms during ${done.collections} collections that freed ${done.freed} objects and ${done.merges} merges; ${megabytes} MB at most`,
  )
  assert.ok(duringMs < P99_RATIO_MAX * withoutMs, `p99 ${duringMs} ms during, ${withoutMs} ms without`)
  assert.ok(megabytes < RESIDENT_MB_MAX, `${megabytes} MB`)
})

/** Condemns, frees and merges once. */
async function upkeep(
  server: KillableServer,
  load: Load,
  done: { collections: number; freed: number; merges: number },
): Promise<void> {
  for (let pass = 0; pass < 2; pass++) {
    for (let epochs = 0; epochs < 2; epochs++) {
      await server.call('advanceEpochs', 1)
      // An upload may not take longer than the grace, which is one epoch here.
      await load.settled()
    }
    done.freed += (await server.call('collect', PROJECT)).freed.objects
    done.collections++
  }
  done.merges += (await server.call('compact', PROJECT, { processorShare: PROCESSOR_SHARE })).merges
}

async function windowOf(act: () => Promise<unknown>): Promise<Window> {
  const beganAtMs = performance.now()
  await act()
  return { beganAtMs, endedAtMs: performance.now() }
}

/** Of the requests that lie in one of the windows as a whole. */
function p99(latencies: readonly Latency[], windows: readonly Window[]): number {
  const sorted = latencies
    .filter(({ beganAtMs, tookMs }) =>
      windows.some((one) => beganAtMs >= one.beganAtMs && beganAtMs + tookMs <= one.endedAtMs),
    )
    .map(({ tookMs }) => tookMs)
    .sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
}
