import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createRandom, type Random } from '../../bench/model/random.ts'
import { eventually } from '../support/patience.ts'
import { CaseCluster } from './case-cluster.ts'

/*
 * PostgreSQL loses its power under six uploaders: of what it wrote only what it synced is left. `STOWAGE_KILL_ROUNDS`
 * says how often. Needs gcc.
 */

const ROUNDS = Number(process.env.STOWAGE_KILL_ROUNDS ?? '1')
const SEED = Number(process.env.STOWAGE_CLUSTER_SEED ?? Date.now() % 1_000_000)
const UPLOADS_BETWEEN = 12

async function started(t: TestContext, random: Random, fsync: 'on' | 'off'): Promise<CaseCluster> {
  t.diagnostic(`STOWAGE_CLUSTER_SEED=${SEED}`)
  const cluster = await CaseCluster.start(t, { random, postgres: { settings: { fsync }, canLosePower: true } })
  // What was there before the last start is durable in the control too: the schema, for example.
  await cluster.postgres.stop()
  await cluster.postgres.restart()
  await servesAgain(cluster)
  return cluster
}

function servesAgain(cluster: CaseCluster): Promise<void> {
  return eventually(() => cluster.answers(404), 'every server serves again, without a restart')
}

test('PostgreSQL that loses its power loses nothing that was acknowledged', async (t) => {
  const random = createRandom(SEED, 4)
  const cluster = await started(t, random, 'on')
  for (let round = 0; round < ROUNDS; round++) {
    await cluster.whileUploading(async () => {
      await cluster.acknowledged(1 + random.below(UPLOADS_BETWEEN))
      await cluster.postgres.losePower()
      await eventually(() => cluster.answers(503), 'every server says that it cannot serve now')
      await cluster.postgres.restart()
      await servesAgain(cluster)
      await cluster.acknowledged(UPLOADS_BETWEEN)
    })
    await cluster.settled()
    assert.deepEqual(await cluster.verify(round, round === ROUNDS - 1), [], `round ${round}`)
  }
  t.diagnostic(`${cluster.oracle.acknowledgedUploads} uploads, ${cluster.refusals} refusals`)
  assert.deepEqual(await cluster.damages(), [])
})

test('the control: PostgreSQL that loses its power and has fsync=off loses what was acknowledged', async (t) => {
  const random = createRandom(SEED, 5)
  const cluster = await started(t, random, 'off')
  await cluster.whileUploading(async () => {
    await cluster.acknowledged(3)
    await cluster.postgres.losePower()
  })
  await cluster.postgres.restart()
  await servesAgain(cluster)
  const findings = await cluster.verify(0, true)
  assert.ok(
    findings.some((finding) => finding.startsWith('lost: ')),
    findings.join('\n'),
  )
})
