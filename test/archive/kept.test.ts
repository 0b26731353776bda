import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  backupServer,
  exportToFile,
  importFiles,
  mirrorProject,
  type ProjectAddress,
  restoreProjects,
} from '../../src/archive/index.ts'
import { inProcess } from '../automation-server/support.ts'
import { temporaryFolder } from '../support/folder.ts'
import { FEW_OBJECTS, furnish, linesOf, PROJECT, type Site, site } from './support.ts'

/** What the server of a backup is told by. */
function serverOf({ url, token, fetch }: ProjectAddress): Omit<ProjectAddress, 'projectId'> {
  return { url, token, ...(fetch === undefined ? {} : { fetch }) }
}

type Move = (source: Site, target: Site) => Promise<void>

/** The ways in which a project gets from one server to another. */
function waysOf(t: TestContext): readonly { readonly way: string; readonly move: Move }[] {
  const folder = temporaryFolder(t)
  let archives = 0
  return [
    {
      way: 'export and import',
      move: async (source, target) => {
        const path = join(folder, `house-${archives++}.tar`)
        await exportToFile(source.address, path)
        await importFiles(target.address, [path])
      },
    },
    {
      way: 'mirror',
      move: async (source, target) => {
        await mirrorProject(source.address, target.address)
      },
    },
    {
      way: 'backup and restore',
      move: async (source, target) => {
        await backupServer(serverOf(source.address), join(folder, 'backup'))
        await restoreProjects(join(folder, 'backup'), serverOf(target.address))
      },
    },
  ]
}

test('pins and retention rules are imported, and keep the same versions', async (t) => {
  const source = site(t)
  const { modelId, versions } = await furnish(source, FEW_OBJECTS)
  const { pins } = source.project
  await pins.add({ rootObjectId: versions[0].rootObjectId, name: 'Release', reason: 'sold\nlast year' })
  await pins.add({ rootObjectId: 'loose', endsAt: '2999-01-01T00:00:00.000Z' })
  await source.extension.project(PROJECT).models.change(modelId, { retention: { keepLastCount: 1, keepAllDays: 30 } })
  for (const { way, move } of waysOf(t)) {
    const target = site(t)
    await move(source, target)
    assert.deepEqual(await target.project.pins.list(), await pins.list(), way)
    const { models } = target.extension.project(PROJECT)
    assert.deepEqual((await models.get(modelId)).retention, { keepLastCount: 1, keepAllDays: 30 }, way)
    const pruned = await models.prune(modelId, { dryRun: true, retention: { keepLastCount: 1 } })
    assert.deepEqual(pruned.versions, [], `${way}: the older version is pinned`)
    await move(source, target)
    assert.equal((await target.project.pins.list()).length, 2, `${way}, again`)
  }
})

test('an expired pin is skipped, and a pin of an absent object is refused', async (t) => {
  const target = site(t)
  await target.project.upload([{ id: 'held' }])
  const pin = {
    id: '0190000000000000000000000000abcd',
    rootObjectId: 'held',
    name: null,
    reason: null,
    createdAt: '2026-01-02T03:04:05.678Z',
    endsAt: '2026-01-03T03:04:05.678Z',
  }
  const sent = (value: object): Promise<Response> =>
    target.service.fetch(
      new Request(`http://in.process/api/v1/projects/${PROJECT}/import/records`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify([{ kind: 'pin', value }]),
      }),
    )
  const answered = async (value: object): Promise<unknown> => (await sent(value)).json()
  assert.deepEqual(await answered(pin), { created: 0, updated: 0, unchanged: 1 })
  assert.deepEqual(await target.project.pins.list(), [])
  assert.equal((await sent({ ...pin, rootObjectId: 'absent', endsAt: null })).status, 409)
  assert.deepEqual(await answered({ ...pin, endsAt: null }), { created: 1, updated: 0, unchanged: 0 })
  assert.deepEqual(await answered({ ...pin, endsAt: null }), { created: 0, updated: 0, unchanged: 1 })
  assert.deepEqual(await target.project.pins.list(), [{ ...pin, endsAt: null }])
})

test('deleted models and versions export only their objects, and automations of a deleted model are left out', async (t) => {
  const source = site(t)
  const { modelId, versions } = await furnish(source, FEW_OBJECTS)
  const house = source.extension.project(PROJECT)
  const { id: otherId } = await house.models.create({ name: 'Shed' })
  const kept = await house.versions.create(otherId, { rootObjectId: versions[1].rootObjectId, message: 'kept' })
  const gone = await house.versions.create(otherId, { rootObjectId: versions[0].rootObjectId, message: 'gone' })
  await house.versions.delete(otherId, gone.id)
  await house.models.delete(modelId)
  for (const { way, move } of waysOf(t)) {
    const target = site(t)
    await move(source, target)
    const { models, versions: copies, automations } = target.extension.project(PROJECT)
    const shown = { deleted: true }
    assert.deepEqual(
      (await models.list(shown)).items.map(({ id }) => id),
      [otherId],
      way,
    )
    assert.deepEqual(
      (await copies.list(otherId, shown)).items.map(({ id }) => id),
      [kept.id],
      way,
    )
    assert.deepEqual((await automations.list()).items, [], way)
    const { rootObjectId } = versions[0]
    assert.deepEqual(await linesOf(target.project, rootObjectId), await linesOf(source.project, rootObjectId), way)
  }
})

test('the files of a run are exported byte for byte, with their checksums', async (t) => {
  // Not a multiple of the blocks of tar, and every byte in it.
  const contents = [Buffer.from(Array.from({ length: 300_001 }, (_, at) => (at * at + at) % 256)), Buffer.alloc(0)]
  const executor = inProcess(async ({ backend }) => {
    for (const [at, content] of contents.entries())
      await backend.storeArtifact({
        // As long as a name may be.
        name: `${at}`.padEnd(251, 'n') + '.bin',
        sizeBytes: content.length,
        idempotencyKey: `file-${at}`,
        content: (async function* () {
          for (let from = 0; from < content.length; from += 65_536) yield content.subarray(from, from + 65_536)
        })(),
      })
    await backend.report({ sequence: 1, status: 'succeeded', message: 'written' })
  })
  const source = site(t, undefined, executor)
  const { runId } = await furnish(source, FEW_OBJECTS)
  const { artifacts } = await source.extension.project(PROJECT).runs.get(runId)
  assert.equal(artifacts.length, 2)
  const read = async (
    { service }: Site,
    id: string,
  ): Promise<{ readonly etag: string | null; readonly bytes: Buffer }> => {
    const response = await service.fetch(new Request(`http://in.process/api/v1/projects/${PROJECT}/artifacts/${id}`))
    assert.equal(response.status, 200)
    return { etag: response.headers.get('etag'), bytes: Buffer.from(await response.arrayBuffer()) }
  }
  for (const { way, move } of waysOf(t)) {
    const target = site(t, undefined, executor)
    await move(source, target)
    assert.deepEqual((await target.extension.project(PROJECT).runs.get(runId)).artifacts, artifacts, way)
    for (const [at, { id }] of artifacts.entries()) {
      const { etag, bytes } = await read(target, id)
      assert.ok(bytes.equals(contents[at]), `${way}: ${bytes.length} bytes`)
      assert.equal(etag, `"${createHash('sha256').update(contents[at]).digest('hex').slice(0, 32)}"`, way)
      assert.equal(etag, (await read(source, id)).etag, way)
    }
  }
})
