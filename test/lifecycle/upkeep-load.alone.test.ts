import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLIENTS, MEMORY_MB_MAX, P99_RATIO_MAX, UpkeepRounds } from './upkeep-rounds.ts'

/** Of one round: 20 s without other programs. The soak has the same load for ten minutes. */
const HALF_MS = 10_000
const ROUNDS_MAX = 4

test(`${CLIENTS} clients upload and download while objects are collected and packs are merged: no request fails, single objects take less than ${P99_RATIO_MAX} times as long, and memory is bounded`, async (t) => {
  const rounds = await UpkeepRounds.start(t)
  const ratios: number[] = []
  // Other programs can slow the second half of a round down, and then it is repeated. What holds requests up itself,
  // such as one commit that blocks the others or a long turn of the event loop, does so in each round.
  do ratios.push(await rounds.ratioOfRound(HALF_MS))
  while (!ratios.some((ratio) => ratio < P99_RATIO_MAX) && ratios.length < ROUNDS_MAX)
  const { freed, merges, residentMbMax, ownMbMax } = await rounds.stop()
  assert.ok(freed > 0 && merges > 0, `${freed} objects were freed, ${merges} packs merged`)
  assert.ok(
    ratios.some((ratio) => ratio < P99_RATIO_MAX),
    `p99 during upkeep is ${ratios.map((ratio) => ratio.toFixed(1)).join(', ')} times as long`,
  )
  assert.ok(residentMbMax < MEMORY_MB_MAX, `${residentMbMax} MB, of these ${ownMbMax} MB without mapped files`)
})
