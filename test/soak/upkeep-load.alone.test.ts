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
 * 32 clients upload and download, in rounds: in the first half of each the storage is left alone, in the second half objects are collected and packs
 * are merged. `STOWAGE_UPKEEP_LOAD_SECONDS` says how long all rounds take together, 600 by default; one that is under way comes to its end.
 */

const SECONDS = Number(process.env.STOWAGE_UPKEEP_LOAD_SECONDS ?? 600)
const ROUNDS = 3
const CLIENTS = 32
const PROJECT = 'house'
const PAGE_BYTES = 4 * MB
const PROCESSOR_SHARE = 0.5
/** Everything that is resident, with the tables of the database that are mapped. */
const MEMORY_MB_MAX = 300
/**
 * Of the middle one of the rounds: other programs on the machine slow one down, and not most of them. What holds requests up, such as one commit that
 * blocks the others or a long turn of the event loop, does so in each round.
 */
const P99_RATIO_MAX = 3

interface Window {
  readonly beganAtMs: number
  readonly endedAtMs: number
}

interface Done {
  collections: number
  freed: number
  merges: number
}

test(`${CLIENTS} clients upload and download for ${SECONDS} s while objects are collected and packs are merged: no request fails, and single objects take less than ${P99_RATIO_MAX} times as long`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-lifecycle-'))
  const server = new KillableServer(folder, PAGE_BYTES)
  t.after(async () => {
    await server.kill()
    await rm(folder, { recursive: true, force: true })
  })
  await server.start()
  await server.call('memory')
  const load = new Load(server.url, PROJECT, CLIENTS)
  const ended = load.failure().then(() => Promise.reject(new Error('the load ended too early')))
  const within = <T>(work: Promise<T>): Promise<T> => Promise.race([work, ended])
  await within(eventually(() => load.steps > 2 * CLIENTS, 'every client has uploaded'))
  const halfMs = (SECONDS * 1_000) / ROUNDS / 2
  const done: Done = { collections: 0, freed: 0, merges: 0 }
  const ratios: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const without = await within(windowOf(() => sleep(halfMs)))
    const during = await within(windowOf(() => upkeepFor(halfMs, server, load, done)))
    const [withoutMs, duringMs] = [without, during].map((window) => p99(load.latencies, window))
    ratios.push(duringMs / withoutMs)
    t.diagnostic(`single objects: p99 ${withoutMs.toFixed(0)} ms without, ${duringMs.toFixed(0)} ms during`)
  }
  await load.stop()
  const { residentBytesMax, ownBytesMax } = await server.call('memory')
  const [resident, own] = [residentBytesMax, ownBytesMax].map((bytes) => Math.round(bytes / MB))
  t.diagnostic(
    `${load.steps} uploads and downloads, ${load.latencies.length} single objects; ${done.collections} collections freed ${done.freed} objects, ${done.merges} merges; at most ${own} MB of memory, ${resident} MB with mapped files`,
  )
  const [, middle] = ratios.toSorted((a, b) => a - b)
  assert.ok(
    middle < P99_RATIO_MAX,
    `p99 during upkeep is ${ratios.map((ratio) => ratio.toFixed(1)).join(', ')} times as long`,
  )
  assert.ok(resident < MEMORY_MB_MAX, `${resident} MB, of these ${own} MB without mapped files`)
})

/** Until the time is up, and until something was freed and merged since the beginning. */
async function upkeepFor(atLeastMs: number, server: KillableServer, load: Load, done: Done): Promise<void> {
  const untilMs = performance.now() + atLeastMs
  while (performance.now() < untilMs || done.freed === 0 || done.merges === 0) await upkeep(server, load, done)
}

/** Condemns, frees and merges once. */
async function upkeep(server: KillableServer, load: Load, done: Done): Promise<void> {
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

/** Of the requests that lie in the window as a whole. */
function p99(latencies: readonly Latency[], { beganAtMs, endedAtMs }: Window): number {
  const sorted = latencies
    .filter((one) => one.beganAtMs >= beganAtMs && one.beganAtMs + one.tookMs <= endedAtMs)
    .map(({ tookMs }) => tookMs)
    .sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
}
