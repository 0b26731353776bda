import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { archives, exportProject, exportToFile, mirrorProject } from '../../src/archive/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { temporaryFolder } from '../support/folder.ts'
import { addressOf, site } from './support.ts'

test('an export or a mirror of a project that does not exist says so and makes nothing', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  await source.project.upload([{ id: 'root' }])
  const alone = createObjectService({ backend: memoryBackend(), access: openAccess(), extensions: [archives()] })
  t.after(() => alone.close({ graceMs: 0 }))
  const expected = { code: 'not_found', message: 'there is no project "nosuch" at http://in.process' }
  for (const { address } of [source, { address: addressOf(alone) }]) {
    const absent = { ...address, projectId: 'nosuch' }
    await assert.rejects(exportToFile(absent, join(folder, 'nosuch.tar')), expected)
    await assert.rejects(exportProject(absent).toArray(), expected)
    const target = site(t)
    await assert.rejects(mirrorProject(absent, target.address), expected)
    for await (const projects of target.service.projects()) assert.deepEqual(projects, [])
  }
  assert.deepEqual(readdirSync(folder), [])
})

test('a project with a model and no objects can be exported and mirrored', async (t) => {
  const [source, target] = [site(t), site(t)]
  const { id } = await source.project.models.create({ name: 'House' })
  const { manifest } = await exportToFile(source.address, join(temporaryFolder(t), 'house.tar'))
  assert.equal(manifest.objects, 0)
  await mirrorProject(source.address, target.address)
  assert.equal((await target.project.models.get(id)).name, 'House')
})
