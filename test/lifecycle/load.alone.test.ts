import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MB } from '../../src/limits.ts'
import { KillableServer } from './kill-rounds.ts'
import { type Latency, Load } from './load.ts'

/*
 * 32 clients upload and download for `STOWAGE_UPKEEP_LOAD_SECONDS`, half of the time while objects are collected and packs are merged. Both halves come in
 * turns, so that whatever else the machine does slows down both.
 */

const SECONDS = Number(process.env.STOWAGE_UPKEEP_LOAD_SECONDS ?? 30)
const CLIENTS = 32
const WINDOW_MS = 2_500
const PROJECT = 'house'
const PAGE_BYTES = 4 * MB
const PROCESSOR_SHARE = 0.25
const RESIDENT_MB_MAX = 300
const P99_RATIO_MAX = 3

interface Window {
  readonly beganAtMs: number
  readonly endedAtMs: number
}

test(`${CLIENTS} clients upload and download for ${SECONDS} s while objects are collected and packs are merged: no request fails, and single objects take no more than ${P99_RATIO_MAX} times as long`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-lifecycle-'))
  const server = new KillableServer(folder, PAGE_BYTES)
  t.after(async () => {
    await server.kill()
    await rm(folder, { recursive: true, force: true })
  })
  await server.start()
  const load = new Load(server.url, PROJECT, CLIENTS)
  const work = alternate(server, load)
  const { without, during, collections, merges, freed } = await Promise.race([
    work,
    load.failure().then(() => Promise.reject(new Error('the load ended too early'))),
  ])
  await load.stop()
  const { residentBytesMax } = await server.call('memory')
  const [p99WithoutMs, p99DuringMs] = [without, during].map((windows) => p99(load.latencies, windows))
  const megabytes = Math.round(residentBytesMax / MB)
  t.diagnostic(
    `${load.steps} uploads and downloads, ${load.latencies.length} single objects; p99 ${p99WithoutMs.toFixed(1)} ms without and ${p99DuringMs.toFixed(1)} ms during ${collections} collections that freed ${freed} objects and ${merges} merges; ${megabytes} MB at most`,
  )
  assert.ok(collections > 0 && merges > 0 && freed > 0, `${collections} collections, ${merges} merges, ${freed} freed`)
  assert.ok(p99DuringMs < P99_RATIO_MAX * p99WithoutMs, `${p99DuringMs} ms during, ${p99WithoutMs} ms without`)
  assert.ok(megabytes < RESIDENT_MB_MAX, `${megabytes} MB`)
})

/** Windows without upkeep and windows with it, in turns. */
async function alternate(
  server: KillableServer,
  load: Load,
): Promise<{
  readonly without: readonly Window[]
  readonly during: readonly Window[]
  readonly collections: number
  readonly merges: number
  readonly freed: number
}> {
  const [without, during]: [Window[], Window[]] = [[], []]
  const done = { collections: 0, merges: 0, freed: 0 }
  const endsAtMs = performance.now() + SECONDS * 1_000
  while (performance.now() < endsAtMs) {
    without.push(await window(() => sleep(WINDOW_MS)))
    during.push(
      await window(async () => {
        const untilMs = performance.now() + WINDOW_MS
        while (performance.now() < untilMs) {
          for (let epochs = 0; epochs < 2; epochs++) {
            await server.call('advanceEpochs', 1)
            // An upload may not take longer than the grace, which is one epoch here.
            await load.settled()
          }
          done.freed += (await server.call('collect', PROJECT)).freed.objects
          done.merges += (await server.call('compact', PROJECT, { processorShare: PROCESSOR_SHARE })).merges
          done.collections++
        }
      }),
    )
  }
  return { without, during, ...done }
}

async function window(act: () => Promise<unknown>): Promise<Window> {
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
