import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import {
  baseOfFile,
  exportInto,
  exportProject,
  exportToFile,
  importFiles,
  importProject,
  verifyFiles,
} from '../../src/archive/index.ts'
import { FEW_OBJECTS, building, furnish, linesOf, PROJECT, site } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

test('a repeated import changes nothing', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  await furnish(source)
  const path = join(folder, 'house.tar')
  await exportToFile(source.address, path)
  const target = site(t)
  const first = await importFiles(target.address, [path])
  const again = await importFiles(target.address, [path])
  assert.ok(first.records.created > 0)
  assert.deepEqual([again.sent, again.records.created, again.records.updated], [0, 0, 0])
})

test('an export into a folder that does not exist names the folder', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  await furnish(source)
  await assert.rejects(exportToFile(source.address, join(folder, 'missing', 'house.tar')), {
    code: 'not_found',
    message: /missing" does not exist; create it first$/,
  })
})

test('an incremental export contains only new data, and restores the project on top of its base', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  const { modelId } = await furnish(source)
  const [base, more] = [join(folder, 'base.tar'), join(folder, 'more.tar')]
  const before = await exportToFile(source.address, base)
  const { rootId, objects } = building(2)
  const { sent } = await source.project.upload(objects.map(({ id, json }) => ({ id, json })))
  await source.extension.project(PROJECT).versions.create(modelId, { rootObjectId: rootId, message: 'third' })
  await source.extension.idle()
  const since = await baseOfFile(base)
  const { manifest } = await exportToFile(source.address, more, { since })
  assert.equal(manifest.objects, sent)
  assert.ok(manifest.objects < before.manifest.objects)

  const target = site(t)
  await importFiles(target.address, [base, more])
  assert.deepEqual(await linesOf(target.project, rootId), await linesOf(source.project, rootId))
  const whole = await exportToFile(source.address, join(folder, 'whole.tar'))
  assert.equal((await exportToFile(target.address, join(folder, 'copy.tar'))).manifest.sha256, whole.manifest.sha256)
})

test('streams export and import in process', async (t) => {
  const source = site(t)
  const { models } = await furnish(source)
  const target = site(t)
  await importProject(target.address, exportProject(source.address))
  const { rootId } = models[1]
  assert.deepEqual(await linesOf(target.project, rootId), await linesOf(source.project, rootId))
})

test('an archive is handed out in pieces with its manifest and its cursor', async (t) => {
  const source = site(t)
  await furnish(source)
  const path = join(temporaryFolder(t), 'house.tar')
  const expected = await exportToFile(source.address, path)
  const pieces: Uint8Array[] = []
  let last = { bytes: 0, objects: 0 }
  const { runsListedAt, ...result } = await exportInto(source.address, async (bytes) => void pieces.push(bytes), {
    onProgress: (progress) => (last = { ...progress }),
  })
  assert.deepEqual(result, { manifest: expected.manifest, cursor: expected.cursor })
  assert.equal((await verifyFiles([Readable.from(pieces)]))[0].sha256, expected.manifest.sha256)
  assert.equal(last.objects, expected.manifest.objects)
  assert.ok(Date.parse(runsListedAt) > 0 && last.bytes < Buffer.concat(pieces).length)
})

test('an import of bytes that stop coming can be aborted', async (t) => {
  const stop = new AbortController()
  const stalled = new Readable({ read: () => undefined })
  const importing = importProject(site(t).address, stalled, { signal: stop.signal })
  stop.abort(new Error('enough'))
  await assert.rejects(importing, { name: 'AbortError' })
})

test('secrets are left out and their automation is disabled, but sealed ones go to a server with the same key', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  const { modelId } = await furnish(source, FEW_OBJECTS)
  const inputs = { tolerance: 1, apiKey: 'open sesame' }
  const wanted = { name: 'Secret', functionId: 'checker', modelId, inputs, trigger: 'manual' } as const
  const { id } = await source.extension.project(PROJECT).automations.create(wanted)
  const [plain, sealed] = [join(folder, 'plain.tar'), join(folder, 'sealed.tar')]
  await exportToFile(source.address, plain)
  await exportToFile(source.address, sealed, { hasSealedSecrets: true })
  const without = site(t)
  await importFiles(without.address, [plain])
  const { enabled, inputs: kept } = await without.extension.project(PROJECT).automations.get(id)
  assert.deepEqual([enabled, kept], [false, { tolerance: 1, apiKey: '******' }])
  const withSecrets = site(t)
  await importFiles(withSecrets.address, [sealed])
  const copy = withSecrets.extension.project(PROJECT)
  assert.equal((await copy.automations.get(id)).enabled, true)
  const { id: runId } = await copy.runs.start(id)
  await withSecrets.extension.idle()
  assert.equal((await copy.runs.get(runId)).status, 'succeeded')
  assert.doesNotMatch((await readFile(sealed)).toString('latin1'), /open sesame/)
})
