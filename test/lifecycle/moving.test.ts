import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { archives, exportToFile, restoreProjects, verifyFiles } from '../../src/archive/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { createClient, type Project } from '../../src/client/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { building, linesOf } from '../archive/support.ts'
import { KillableServer, killRounds, seeded } from './kill-rounds.ts'
import type { Work } from './work.ts'

/*
 * Whatever is killed in the middle of an export, an import, a mirror or a backup, with SIGKILL: the same call goes on, and what it makes in the end is whole.
 * `STOWAGE_KILL_ROUNDS` says how often each is killed, `STOWAGE_KILL_SEED` repeats a failure.
 */

const ROUNDS = Number(process.env.STOWAGE_KILL_ROUNDS ?? 10)
const SEED = Number(process.env.STOWAGE_KILL_SEED ?? Date.now() % 1_000_000)
const PROJECT = 'house'
const OBJECTS = 600
/** Seven pages or so. */
const PAGE_BYTES = 65_536

const states = [building(0, OBJECTS), building(1, OBJECTS)]
let folder = ''
let source: KillableServer
let target: KillableServer
let expected: readonly (readonly string[])[] = []
let modelId = ''
let sha256 = ''

function projectAt(url: string, projectId: string): Project {
  return createClient({ url, token: undefined, retry: { delayMs: 50, delayMsMax: 400 } }).project(projectId)
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stowage-lifecycle-'))
  source = new KillableServer(join(folder, 'source'), PAGE_BYTES)
  target = new KillableServer(join(folder, 'target'), PAGE_BYTES)
  await Promise.all([source.start(), target.start()])
  const house = projectAt(source.url, PROJECT)
  modelId = (await house.models.create({ name: 'House' })).id
  for (const { objects, rootId } of states) {
    await house.upload(objects.map(({ id, json }) => ({ id, json })))
    await house.versions.create(modelId, { rootObjectId: rootId, message: rootId })
  }
  expected = await Promise.all(states.map(({ rootId }) => linesOf(house, rootId)))
  const address = { url: source.url, token: undefined, projectId: PROJECT }
  sha256 = (await exportToFile(address, join(folder, 'expected.tar'))).manifest.sha256
})

after(async () => {
  await Promise.all([source.kill(), target.kill()])
  await rm(folder, { recursive: true, force: true })
})

async function checkProject(project: Project): Promise<void> {
  for (const [at, { rootId }] of states.entries()) assert.deepEqual(await linesOf(project, rootId), expected[at])
  const { items } = await project.versions.list(modelId)
  assert.deepEqual(items, (await projectAt(source.url, PROJECT).versions.list(modelId)).items)
}

const workOf =
  (kind: Work['kind'], path: (number: number) => string) =>
  (number: number): Work => ({
    kind,
    from: source.url,
    to: target.url,
    project: PROJECT,
    copy: `${kind}-${number}`,
    path: path(number),
  })

function rounds(
  kind: Work['kind'],
  servers: () => readonly KillableServer[],
  path: (number: number) => string,
  verify: (work: Work) => Promise<void>,
): void {
  test(`${kind}: ${ROUNDS} kills lose nothing (seed ${SEED})`, () =>
    killRounds({ rounds: ROUNDS, random: seeded(SEED), servers: servers(), work: workOf(kind, path), verify }))
}

// All at a time: each also meets the kills of the others.
describe('a killed transfer resumes', { concurrency: true }, () => {
  rounds(
    'export',
    () => [source],
    (number) => join(folder, `export-${number}.tar`),
    async ({ path }) => assert.equal((await verifyFiles([path]))[0].sha256, sha256),
  )

  rounds(
    'import',
    () => [target],
    () => join(folder, 'expected.tar'),
    ({ copy }) => checkProject(projectAt(target.url, copy)),
  )

  rounds(
    'mirror',
    () => [source, target],
    () => '',
    ({ copy }) => checkProject(projectAt(target.url, copy)),
  )

  rounds(
    'backup',
    () => [source],
    (number) => join(folder, `backup-${number}`),
    async ({ path }) => {
      const service = createObjectService({
        backend: memoryBackend(),
        access: openAccess(),
        extensions: [automation(), archives()],
      })
      const where = {
        url: 'http://in.process',
        token: undefined,
        fetch: (url: string, init: RequestInit) => service.fetch(new Request(url, init)),
      }
      try {
        await restoreProjects(path, where)
        await checkProject(createClient(where).project(PROJECT))
      } finally {
        await service.close()
      }
    },
  )
})
