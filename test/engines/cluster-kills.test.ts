import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../bench/model/random.ts'
import { eventually } from '../support/patience.ts'
import { CaseCluster } from './case-cluster.ts'

/*
 * Three servers whose clocks are five minutes apart, under six uploaders: nothing that was acknowledged is lost, and
 * nothing is there in part, whatever is killed and when. `STOWAGE_KILL_ROUNDS` says how often.
 */

const { STOWAGE_KILL_ROUNDS } = process.env
const SERVER_ROUNDS = Number(STOWAGE_KILL_ROUNDS ?? '20')
const ENGINE_ROUNDS = Number(STOWAGE_KILL_ROUNDS ?? '2')
/** Reading everything takes longer than killing a server. After so many kills, one is stopped, and all is read. */
const KILLS_PER_VERIFICATION = 5
const SEED = Number(process.env.STOWAGE_CLUSTER_SEED ?? Date.now() % 1_000_000)
/** A control of so many rounds is never all lucky. */
const CONTROL_ROUNDS = 8
const UPLOADS_BETWEEN = 12
const UPLOADS_WHILE_STOPPED = 6
/** The upkeep of these servers looks every 5 s at what a dead one left; a busy machine needs some time for it. */
const APPLIED_WITHIN_MS = 10_000
const SERVING_AGAIN_WITHIN_MS = 5_000

/** Returns how long it took until nothing waited to be applied any more, in milliseconds. */
async function stopAndContinue(cluster: CaseCluster, victim: number): Promise<number> {
  await cluster.whileUploading(async () => {
    cluster.stop(victim)
    await cluster.upload(UPLOADS_WHILE_STOPPED)
    cluster.continue()
  })
  return cluster.settled()
}

test('a server that is killed or stopped loses nothing, and others apply what it left, without a restart', async (t) => {
  t.diagnostic(`STOWAGE_CLUSTER_SEED=${SEED}`)
  const random = createRandom(SEED, 1)
  const cluster = await CaseCluster.start(t, { random })
  let longestMs = 0
  for (let round = 0; round < SERVER_ROUNDS; round++) {
    const victim = random.below(3)
    const isLast = round === SERVER_ROUNDS - 1
    await cluster.whileUploading(async () => {
      await cluster.acknowledged(1 + random.below(UPLOADS_BETWEEN))
      await cluster.kill(victim)
    })
    longestMs = Math.max(longestMs, await cluster.settled())
    await cluster.revive(victim)
    if (!isLast && (round + 1) % KILLS_PER_VERIFICATION > 0) continue
    longestMs = Math.max(longestMs, await stopAndContinue(cluster, random.below(3)))
    assert.deepEqual(await cluster.verify(victim + 1, isLast), [], `round ${round}`)
  }
  t.diagnostic(`${cluster.oracle.acknowledgedUploads} uploads, ${cluster.refusals} refusals`)
  t.diagnostic(`the longest wait to be applied took ${longestMs} ms`)
  assert.ok(longestMs <= APPLIED_WITHIN_MS, `${longestMs} ms until the rest was applied`)
  assert.deepEqual(await cluster.damages(), [])
})

test('a killed PostgreSQL or S3 store loses nothing, and the servers go on when it is back', async (t) => {
  t.diagnostic(`STOWAGE_CLUSTER_SEED=${SEED}`)
  const random = createRandom(SEED, 2)
  const cluster = await CaseCluster.start(t, { random })
  let longestMs = 0
  for (let round = 0; round < ENGINE_ROUNDS; round++) {
    await cluster.whileUploading(async () => {
      await cluster.acknowledged(1 + random.below(UPLOADS_BETWEEN))
      if (round % 2 === 0) {
        await cluster.postgres.kill()
        await eventually(() => cluster.answers(503), 'every server says that it cannot serve now')
        await cluster.postgres.restart()
        const backAtMs = performance.now()
        await eventually(() => cluster.answers(404), 'every server serves again, without a restart')
        longestMs = Math.max(longestMs, performance.now() - backAtMs)
      } else {
        await cluster.s3.kill()
        await cluster.s3.start()
      }
      await cluster.acknowledged(UPLOADS_BETWEEN)
    })
    await cluster.settled()
    assert.deepEqual(await cluster.verify(round, round === ENGINE_ROUNDS - 1), [], `round ${round}`)
  }
  t.diagnostic(`${cluster.oracle.acknowledgedUploads} uploads, ${cluster.refusals} refusals`)
  t.diagnostic(`serving again took ${longestMs} ms at most`)
  assert.ok(longestMs <= SERVING_AGAIN_WITHIN_MS, `${longestMs} ms until every server served again`)
  assert.deepEqual(await cluster.damages(), [])
})

test('the control: servers that acknowledge before they commit lose something', async (t) => {
  const random = createRandom(SEED, 3)
  const cluster = await CaseCluster.start(t, { random, isLazy: true })
  const findings: string[] = []
  for (let round = 0; round < CONTROL_ROUNDS && findings.length === 0; round++) {
    await cluster.whileUploading(async () => {
      await cluster.acknowledged(3)
      await cluster.kill(round)
    })
    findings.push(...(await cluster.verify(round + 1, true)))
    await cluster.revive(round)
  }
  assert.notEqual(findings.length, 0)
})
