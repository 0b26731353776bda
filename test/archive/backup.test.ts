import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import {
  archives,
  backupServer,
  type BackupContent,
  type BackupOptions,
  restoreProjects,
} from '../../src/archive/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { type ClientOptions, createClient } from '../../src/client/index.ts'
import { type Access, claimAuthorize, createObjectService, type StorageBackend } from '../../src/index.ts'
import { setStoreId } from '../../src/storage/store-id.ts'
import { coldCopy } from '../support/cold-copy.ts'
import { temporaryFolder } from '../support/folder.ts'

/*
 * A backup never loses what it has: neither to another server, nor to one that has lost its data or its history.
 */

/** A token is the id of the project that it may read and write, or `*`. */
const ACCESS: Access<unknown> = {
  authenticate: ({ headers }) => {
    const [, project] = /^Bearer (.+)$/.exec(headers.get('authorization') ?? '') ?? []
    return { subject: 'test', projects: { [project]: 'write' } }
  },
  authorize: claimAuthorize,
}

interface Server {
  readonly backend: StorageBackend
  readonly where: (token?: string) => ClientOptions
  readonly upload: (projectId: string, ...ids: readonly string[]) => Promise<void>
  readonly holds: (projectId: string, ...ids: readonly string[]) => Promise<boolean>
  readonly remove: (projectId: string) => Promise<void>
}

function server(t: TestContext, backend: StorageBackend = memoryBackend()): Server {
  const service = createObjectService({ backend, access: ACCESS, extensions: [automation(), archives()] })
  t.after(() => service.close({ graceMs: 0 }))
  const where: Server['where'] = (token = '*') => ({
    url: 'http://in.process',
    token,
    retry: false,
    fetch: (url, init) => service.fetch(new Request(url, init)),
  })
  const project = (id: string): ReturnType<ReturnType<typeof createClient>['project']> =>
    createClient(where()).project(id)
  return {
    backend,
    where,
    upload: async (projectId, ...ids) => void (await project(projectId).upload(ids.map((id) => ({ id })))),
    holds: async (projectId, ...ids) => (await project(projectId).has(ids)).missing.length === 0,
    remove: (projectId) => service.project(projectId).remove(),
  }
}

/** A new storage with a backup, as `stowage restore` makes it. */
async function restored(t: TestContext, folder: string): Promise<Server> {
  const backend = memoryBackend()
  const { storeId } = JSON.parse(readFileSync(join(folder, 'backup.json'), 'utf8')) as BackupContent
  await setStoreId(backend.records, storeId)
  const made = server(t, backend)
  await restoreProjects(folder, made.where())
  return made
}

function backUp({ where }: Server, folder: string, options?: BackupOptions, token?: string): Promise<BackupContent> {
  return backupServer(where(token), folder, options)
}

function chainsIn(folder: string): readonly string[] {
  return readdirSync(join(folder, 'projects'))
}

test('the backup of another storage is refused, and nothing of it is changed', async (t) => {
  const folder = join(temporaryFolder(t), 'backup')
  const first = server(t)
  await first.upload('house', 'a')
  await backUp(first, folder)
  const before = readFileSync(join(folder, 'backup.json'))
  for (const other of [server(t), await withSameProject(t)])
    for (const options of [{}, { isFull: true }, { prunes: true }])
      await assert.rejects(backUp(other, folder, options), { code: 'conflict', message: /another storage/ })
  assert.deepEqual(readFileSync(join(folder, 'backup.json')), before)
  assert.ok(await (await restored(t, folder)).holds('house', 'a'))
  const again = server(t, await coldCopy(first.backend))
  assert.equal((await backUp(again, folder)).projects.length, 1)
})

async function withSameProject(t: TestContext): Promise<Server> {
  const other = server(t)
  await other.upload('house', 'b')
  return other
}

test('archives of projects that a server does not list stay until a backup prunes', async (t) => {
  const folder = join(temporaryFolder(t), 'backup')
  const source = server(t)
  for (const project of ['house', 'shed', 'barn']) await source.upload(project, project)
  await backUp(source, folder)
  const some = await backUp(source, folder, {}, 'house')
  assert.deepEqual(
    some.projects.map(({ project, missingSince }) => [project, missingSince !== undefined]),
    [
      ['house', false],
      ['barn', true],
      ['shed', true],
    ],
  )
  const whole = await restored(t, folder)
  for (const project of ['house', 'shed', 'barn']) assert.ok(await whole.holds(project, project), project)

  await source.remove('barn')
  const without = await backUp(source, folder)
  const missing = without.projects.filter(({ missingSince }) => missingSince !== undefined)
  assert.deepEqual(missing, [{ ...some.projects[1] }])
  assert.ok(await (await restored(t, folder)).holds('barn', 'barn'))
  assert.equal((await backUp(source, folder, { prunes: true })).projects.length, 2)
  assert.equal(chainsIn(folder).length, 2)
})

test('a restored server is backed up into the same folder, which keeps the earlier archives until a backup prunes', async (t) => {
  const folder = join(temporaryFolder(t), 'backup')
  const source = server(t)
  await source.upload('house', 'a')
  await backUp(source, folder)
  await source.upload('house', 'b')
  const before = await backUp(source, folder)
  assert.equal(before.projects[0].files.length, 2)
  const second = await restored(t, folder)
  await second.upload('house', 'c')
  const after = await backUp(second, folder)
  assert.deepEqual(
    after.replaced.map(({ project, files }) => ({ project, files })),
    [{ project: 'house', files: before.projects[0].files }],
  )
  assert.ok(await (await restored(t, folder)).holds('house', 'a', 'b', 'c'))

  await second.upload('house', 'd')
  const next = await backUp(second, folder)
  assert.deepEqual([next.projects[0].files.length, next.replaced], [2, after.replaced])
  assert.ok(await (await restored(t, folder)).holds('house', 'c', 'd'))
  assert.deepEqual((await backUp(second, folder, { prunes: true })).replaced, [])
  for (const file of before.projects[0].files) assert.equal(existsSync(join(folder, file)), false)
  assert.ok(await (await restored(t, folder)).holds('house', 'a', 'b', 'c', 'd'))
})

test('a server that got older data back is backed up in full, and the backup keeps what it lost', async (t) => {
  const folder = join(temporaryFolder(t), 'backup')
  const source = server(t)
  await source.upload('house', 'a')
  const cold = await coldCopy(source.backend)
  await backUp(source, folder)
  await source.upload('house', 'lost')
  await backUp(source, folder)
  const older = server(t, cold)
  await older.upload('house', 'new')
  const { projects, replaced } = await backUp(older, folder)
  assert.equal(projects[0].files.length, 1)
  assert.ok(await (await restored(t, folder)).holds('house', 'a', 'new'))
  // What was lost can still be imported.
  assert.equal(replaced[0].files.length, 2)
  for (const file of replaced[0].files) assert.ok(existsSync(join(folder, file)))
})
