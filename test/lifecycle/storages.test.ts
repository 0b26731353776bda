import assert from 'node:assert/strict'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { exportToFile, importFiles } from '../../src/archive/index.ts'
import { ArchiveReader } from '../../src/archive/read-archive.ts'
import { smallArchive } from '../archive/flips.ts'
import { furnish, PROJECT, type Site, site } from '../archive/support.ts'
import { archiveLines } from '../support/archive-names.ts'
import { temporaryFolder } from '../support/folder.ts'

test('a project that moves from memory to LevelDB, to files and back into memory has the same manifest and the same bytes everywhere', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  const { models, versions, modelId, runId } = await furnish(source)
  const first = await exportToFile(source.address, join(folder, '0.tar'))
  assert.ok(first.manifest.parts.filter(({ name }) => name.startsWith('objects/')).length > 1)
  const house = source.extension.project(PROJECT)
  const downloads = await Promise.all(models.map(({ rootId }) => downloadOf(source, rootId)))
  const storages = [
    levelBackend({ path: join(folder, 'level') }),
    filesystemBackend({ path: join(folder, 'files') }),
    memoryBackend(),
  ]
  for (const [at, storage] of storages.entries()) {
    const target = site(t, storage)
    const imported = await importFiles(target.address, [join(folder, `${at}.tar`)])
    assert.deepEqual([imported.sent, imported.differing], [first.manifest.objects, 0])
    const { manifest } = await exportToFile(target.address, join(folder, `${at + 1}.tar`))
    assert.deepEqual(manifest, first.manifest)
    for (const [number, { rootId }] of models.entries())
      assert.deepEqual(await downloadOf(target, rootId), downloads[number])
    const copy = target.extension.project(PROJECT)
    assert.deepEqual(await copy.models.list(), await house.models.list())
    assert.deepEqual((await copy.versions.list(modelId)).items, versions.toReversed())
    assert.deepEqual(await copy.automations.list(), await house.automations.list())
    assert.deepEqual(await copy.runs.annotations(runId), await house.runs.annotations(runId))
    assert.deepEqual(await copy.runs.logs(runId), await house.runs.logs(runId))
    assert.deepEqual((await copy.runs.get(runId)).result, { walls: 12 })
  }
})

/**
 * The lines of a graph as the server sends them: the root, then the others sorted, for their order depends on the
 * uploads that brought them.
 */
async function downloadOf({ service }: Site, rootId: string): Promise<readonly string[]> {
  const headers = { Accept: 'text/plain' }
  const response = await service.fetch(new Request(`http://in.process/objects/${PROJECT}/${rootId}`, { headers }))
  assert.equal(response.status, 200)
  const [root, ...others] = Buffer.from(await response.arrayBuffer())
    .toString('latin1')
    .split('\n')
  assert.ok(root.startsWith(`${rootId}\t`))
  return [root, ...others.sort()]
}

test('an archive has the entries and the members of records that its format names, and no others', async (t) => {
  const archive = await ArchiveReader.open(await smallArchive(t))
  t.after(() => archive.close())
  const found = new Set<string>()
  const members = (subject: string, value: object): void => {
    for (const member of Object.keys(value)) found.add(`archive ${subject} ${member}`)
  }
  const manifest = await archive.manifest()
  members('manifest.json', manifest)
  for (const part of manifest.parts) members('manifest.json parts[]', part)
  for (const entry of archive.entries) {
    const name = entry.name.replace(/\d{8}/, '*').replace(/^artifacts\/.*/, 'artifacts/<run>/<artifact>')
    found.add(`archive entry ${name}`)
    if (['stowage.json', 'source.json'].includes(name)) {
      const chunks = await Readable.from(archive.chunks(entry)).toArray()
      members(name, JSON.parse(Buffer.concat(chunks).toString()) as object)
    }
    if (!name.startsWith('records/')) continue
    for (const line of (await archive.inflated(entry)).toString().split('\n').slice(0, -1)) {
      const { kind, value } = JSON.parse(line) as { kind: string; value: object }
      members(`record ${kind}`, value)
    }
  }
  const named = archiveLines().filter((line) => !/^archive (format|record automation (sealed|secrets)$)/.test(line))
  assert.deepEqual([...found].sort(), [...new Set(named)].sort())
})
