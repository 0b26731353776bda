import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { archives, backupServer, restoreProjects } from '../../src/archive/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { type ClientOptions, createClient, type Project } from '../../src/client/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { spawnCommand, stowage } from '../cli/command.ts'
import { temporaryFolder } from '../support/folder.ts'
import { eventually } from '../support/patience.ts'
import { KillableServer, seeded, ServerKilledError } from './kill-rounds.ts'
import { isGone, PinnedModels } from './pinned-models.ts'

/*
 * A server is backed up while clients write and while it is killed. Then its folder is gone, and one command, which is killed too, restores it.
 * `STOWAGE_KILL_ROUNDS` says how often the server dies, `STOWAGE_KILL_SEED` repeats the moments.
 */

const BACKUPS = Math.max(2, Math.ceil(Number(process.env.STOWAGE_KILL_ROUNDS ?? 10) / 5))
const SEED = Number(process.env.STOWAGE_KILL_SEED ?? Date.now() % 1_000_000)
const PROJECT = 'house'
const PAGE_BYTES = 16_384
const RETRY = { retryForMs: 60_000, delayMs: 50, delayMsMax: 400 }
const CHANGES = 60
const RESTORE_KILLS = 2

test(`backups of a server that is written to and dies are whole, and its last one replaces it (seed ${SEED})`, async (t) => {
  const folder = temporaryFolder(t)
  const [data, backup, restored] = ['data', 'backup', 'restored'].map((name) => join(folder, name))
  const server = new KillableServer(data, PAGE_BYTES)
  t.after(() => server.kill())
  await server.start()
  const random = seeded(SEED)
  const models = new PinnedModels(SEED)
  const project = createClient({ url: server.url, token: undefined, retry: false }).project(PROJECT)
  for (let step = 0; step < 3; step++) await models.step(project)
  const source: ClientOptions = { url: server.url, token: undefined, retry: RETRY }
  let archivesMade = 0
  let pinsBackedUpMax = 0
  for (let number = 0; number < BACKUPS; number++) {
    const before = models.pinIds()
    const isChanged = models.pinsAdded > pinsBackedUpMax
    await server.call('dieAfter', random(CHANGES))
    const [, { projects }] = await Promise.all([
      writeUntilItDies(server, models, project),
      backupServer(source, backup).finally(() => (pinsBackedUpMax = models.pinsAdded)),
    ])
    const added = projects[0].files.length - archivesMade
    // A server that dies at its first change leaves nothing to add.
    assert.ok(added === 1 || (added === 0 && !isChanged), `a backup added ${added} archives`)
    archivesMade += added
    const copy = await checkBackup(t, backup, models)
    await models.check(project)
    for (const id of models.pinIds())
      if (before.has(id)) assert.ok(copy.has(id), `the pin ${id} was there before the backup, and is not in it`)
  }
  assert.ok(archivesMade >= BACKUPS / 2, `${BACKUPS} backups added ${archivesMade} archives`)
  await backupServer(source, backup)
  await server.kill()
  rmSync(data, { recursive: true })

  await restoreWithKills(backup, restored, random)
  const after = new KillableServer(restored, PAGE_BYTES)
  t.after(() => after.kill())
  await after.start()
  await models.check(createClient({ url: after.url, token: undefined }).project(PROJECT))
})

/** The server is started again at once. */
async function writeUntilItDies(server: KillableServer, models: PinnedModels, project: Project): Promise<void> {
  const writes = (async () => {
    for (;;) await models.step(project)
  })().catch((error: unknown) => error)
  await server.died()
  const error = await writes
  if (!isGone(error) && !(error instanceof ServerKilledError)) throw error
  await server.start()
}

/** Restores the backup into memory. Resolves to its pins, below which everything is there. */
async function checkBackup(t: TestContext, backup: string, models: PinnedModels): Promise<ReadonlySet<string>> {
  const extensions = [automation(), archives()]
  const service = createObjectService({ backend: memoryBackend(), access: openAccess(), extensions })
  t.after(() => service.close({ graceMs: 0 }))
  const where: ClientOptions = {
    url: 'http://in.process',
    token: undefined,
    fetch: (url, init) => service.fetch(new Request(url, init)),
  }
  await restoreProjects(backup, where)
  return models.checkWhole(createClient(where).project(PROJECT))
}

async function restoreWithKills(backup: string, data: string, random: (below: number) => number): Promise<void> {
  const args = ['restore', backup, '--data', data, '--storage', 'filesystem', '--quiet']
  const marker = join(data, 'restoring.json')
  for (let kill = 0; kill < RESTORE_KILLS; kill++) {
    const child = spawnCommand(args)
    const ended = once(child, 'exit')
    await eventually(() => existsSync(marker) || child.exitCode !== null, 'the restore begins')
    setTimeout(() => child.kill('SIGKILL'), random(200))
    await ended
    // A restore that came to its end has restored everything.
    if (!existsSync(marker)) return
  }
  const { code, stderr } = await stowage(args)
  assert.equal(code, 0, stderr)
}
