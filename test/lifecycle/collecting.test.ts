import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { createClient, type Project } from '../../src/client/index.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { KillableServer, seeded } from './kill-rounds.ts'
import { PinnedModels } from './pinned-models.ts'
import { type Upkeep, workUntilItDies } from './until-it-dies.ts'

/*
 * The server dies by SIGKILL at any change of its storage, while objects are collected and packs are merged, and uploads and pins go on. Nothing that was
 * acknowledged and that a pin reaches is lost, and the work comes to its end after the restart.
 * `STOWAGE_KILL_ROUNDS` says how often it dies, `STOWAGE_KILL_SEED` repeats the moments.
 */

const ROUNDS = Number(process.env.STOWAGE_KILL_ROUNDS ?? 10)
const SEED = Number(process.env.STOWAGE_KILL_SEED ?? Date.now() % 1_000_000)
const PROJECT = 'house'
const PAGE_BYTES = 65_536
/** About as many changes of the storage as a few uploads, a collection and a merge make. */
const CHANGES = 60

test(`a server that dies ${ROUNDS} times during collections loses nothing, and collects in the end (seed ${SEED})`, (t) =>
  dieDuring(t, 'collection'))

test(`a server that dies ${ROUNDS} times during compactions loses nothing, and compacts in the end (seed ${SEED})`, (t) =>
  dieDuring(t, 'compaction'))

async function dieDuring(t: TestContext, upkeep: Upkeep): Promise<void> {
  const { server, folder } = await KillableServer.inNewFolder(t, PAGE_BYTES)
  const random = seeded(SEED)
  const models = new PinnedModels(SEED)
  const project = createClient({ url: server.url, token: undefined, retry: false }).project(PROJECT)
  for (let step = 0; step < 3; step++) await models.step(project)
  for (let round = 0; round < ROUNDS; round++) {
    await workUntilItDies(server, models, project, { upkeep, changes: random(CHANGES) })
    await models.check(project)
  }
  await endsItsWork(server, models, project, upkeep)
  await server.kill()
  const backend = filesystemBackend({ path: folder })
  try {
    for await (const { severity, message } of checkStore(backend)) assert.notEqual(severity, 'damage', message)
  } finally {
    await backend.close()
  }
}

/** At rest everything that no pin reaches is gone, and few packs are left. */
async function endsItsWork(
  server: KillableServer,
  models: PinnedModels,
  project: Project,
  upkeep: Upkeep,
): Promise<void> {
  for (let passes = 0; passes < 3; passes++) {
    await server.call('advanceEpochs', 2)
    await server.call('collect', PROJECT)
  }
  if (upkeep === 'compaction') {
    // One merge takes 256 packs at most, and what it made is merged again after two epochs.
    let packs = Infinity
    for (let before = Infinity; packs === Infinity || packs < before;) {
      before = packs
      packs = (await server.call('compact', PROJECT, { all: true })).packsAfter
      await server.call('advanceEpochs', 2)
    }
    assert.ok(packs <= 2, `${packs} packs are left`)
  }
  const { objects, next } = await server.call('unreferenced', PROJECT)
  assert.deepEqual([objects, next], [[], undefined])
  const { held, condemned } = await server.call('collect', PROJECT, { dryRun: true })
  await models.check(project)
  assert.deepEqual({ objects: held.objects, jsonBytes: held.jsonBytes }, models.reached())
  assert.equal(condemned.objects, 0)
}
