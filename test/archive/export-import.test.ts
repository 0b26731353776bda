import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { levelBackend } from '../../adapters/level/index.ts'
import { baseOfFile, exportProject, exportToFile, importFiles, importProject } from '../../src/archive/index.ts'
import { building, furnish, linesOf, PROJECT, site } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

test('an export survives an import into another storage with the same manifest and the same bytes', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  const { models, versions, modelId, runId } = await furnish(source)
  const first = await exportToFile(source.address, join(folder, 'first.tar'))
  assert.ok(first.manifest.parts.filter(({ name }) => name.startsWith('objects/')).length > 1)

  const target = site(t, levelBackend({ path: join(folder, 'data') }))
  const imported = await importFiles(target.address, [join(folder, 'first.tar')])
  assert.deepEqual([imported.sent, imported.differing], [first.manifest.objects, 0])
  const second = await exportToFile(target.address, join(folder, 'second.tar'))

  assert.deepEqual(second.manifest, first.manifest)
  for (const { rootId } of models)
    assert.deepEqual(await linesOf(target.project, rootId), await linesOf(source.project, rootId))
  const [house, copy] = [source, target].map(({ extension }) => extension.project(PROJECT))
  assert.deepEqual(await copy.models.list(), await house.models.list())
  assert.deepEqual((await copy.versions.list(modelId)).items, versions.toReversed())
  assert.deepEqual(await copy.automations.list(), await house.automations.list())
  assert.deepEqual(await copy.runs.annotations(runId), await house.runs.annotations(runId))
  assert.deepEqual(await copy.runs.logs(runId), await house.runs.logs(runId))
  assert.deepEqual((await copy.runs.get(runId)).result, { walls: 12 })
})

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

test('an interrupted export resumes and produces the same file', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  await furnish(source)
  const whole = await exportToFile(source.address, join(folder, 'whole.tar'))
  const path = join(folder, 'broken.tar')
  const stop = new AbortController()
  const seen: number[] = []
  const breaking = exportToFile(source.address, path, {
    signal: stop.signal,
    onProgress: ({ objects }) => {
      if (seen.push(objects) > 0 && objects > 0) stop.abort(new Error('enough'))
    },
  })
  await assert.rejects(breaking, /enough/)
  const brokenAt = seen.at(-1) ?? 0
  const went: number[] = []
  const resumed = await exportToFile(source.address, path, { onProgress: ({ objects }) => void went.push(objects) })
  assert.ok(brokenAt > 0 && went[0] >= brokenAt, `${brokenAt}, then ${went[0]}`)
  assert.deepEqual(resumed.manifest, whole.manifest)
  // The last entry tells when it was.
  const [bytes, expected] = await Promise.all([path, join(folder, 'whole.tar')].map((one) => readFile(one)))
  assert.deepEqual(bytes.subarray(0, -2_048), expected.subarray(0, -2_048))
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
  await assert.rejects(importFiles(site(t).address, [more]), { code: 'objects_missing' })
  await assert.rejects(importFiles(site(t).address, [more, base]), { code: 'invalid_request' })
})

test('streams export and import in process', async (t) => {
  const source = site(t)
  const { models } = await furnish(source)
  const target = site(t)
  await importProject(target.address, exportProject(source.address))
  const { rootId } = models[1]
  assert.deepEqual(await linesOf(target.project, rootId), await linesOf(source.project, rootId))
})

test('an archive that has a flipped bit, is cut or has a later version is refused before anything is sent', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  await furnish(source)
  const path = join(folder, 'house.tar')
  await exportToFile(source.address, path)
  const good = await readFile(path)
  const bad = join(folder, 'bad.tar')
  const target = site(t)
  const refused = async (bytes: Buffer, code: string): Promise<void> => {
    await writeFile(bad, bytes)
    await assert.rejects(importFiles(target.address, [bad]), { code })
  }
  for (let at = 700; at < good.length - 1_030; at += Math.ceil(good.length / 40)) {
    const flipped = Buffer.from(good)
    flipped[at] ^= 4
    // Zeros between the parts mean nothing.
    if (good[at] !== 0) await refused(flipped, 'corrupt_data')
  }
  const cursorAt = good.lastIndexOf('"cursor":"') + 10
  const elsewhere = Buffer.from(good)
  elsewhere[cursorAt] ^= 1
  await refused(elsewhere, 'corrupt_data')
  await refused(good.subarray(0, good.length >> 1), 'corrupt_data')
  await refused(Buffer.from('no archive at all'), 'corrupt_data')
  await refused(Buffer.from(good.toString('latin1').replace('"version":1', '"version":2'), 'latin1'), 'not_supported')
  assert.deepEqual(await target.service.project(PROJECT).has(['loose']), new Set())
})

test('secrets are left out and their automation is disabled, but sealed ones go to a server with the same key', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  const { modelId } = await furnish(source)
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

test('an export with a stalled reader buffers at most two pages and requests no more', async (t) => {
  const source = site(t)
  await furnish(source)
  let pages = 0
  const { fetch } = source.address
  const archive = exportProject({
    ...source.address,
    fetch: (url, init) => {
      if (url.includes('/export/objects')) pages++
      return fetch?.(url, init) ?? Promise.reject(new Error('no fetch'))
    },
  })
  const reader = archive[Symbol.asyncIterator]()
  while (pages === 0) await reader.next()
  // Whatever would still be asked for without a reader has been by the time that another export is whole.
  const whole = await exportToFile(source.address, join(temporaryFolder(t), 'other.tar'))
  const all = whole.manifest.parts.filter(({ name }) => name.startsWith('objects/')).length
  assert.ok(pages <= 3 && all > 5, `${pages} of ${all} pages`)
  archive.destroy()
})
