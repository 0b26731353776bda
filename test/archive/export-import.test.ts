import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
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
import { importWithFlips, smallArchive } from './flips.ts'
import { FEW_OBJECTS, breakOff, building, furnish, linesOf, PROJECT, site } from './support.ts'
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

test('an interrupted export resumes and produces the same file', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  await furnish(source)
  const whole = await exportToFile(source.address, join(folder, 'whole.tar'))
  const path = join(folder, 'broken.tar')
  const brokenAt = await breakOff(source.address, path)
  const went: number[] = []
  const resumed = await exportToFile(source.address, path, { onProgress: ({ objects }) => void went.push(objects) })
  assert.ok(brokenAt > 0 && went[0] >= brokenAt, `${brokenAt}, then ${went[0]}`)
  assert.deepEqual(resumed.manifest, whole.manifest)
  // The last entry tells when it was.
  const [bytes, expected] = await Promise.all([path, join(folder, 'whole.tar')].map((one) => readFile(one)))
  assert.deepEqual(bytes.subarray(0, -2_048), expected.subarray(0, -2_048))
})

test('an interrupted export that goes on after a merge of packs holds each object once', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  await furnish(source)
  const whole = await exportToFile(source.address, join(folder, 'whole.tar'))
  const path = join(folder, 'broken.tar')
  await breakOff(source.address, path)
  assert.equal((await source.project.upkeep.compact({ all: true })).packsAfter, 1)
  await source.project.upload([{ id: 'later' }])
  assert.deepEqual((await exportToFile(source.address, path)).manifest, whole.manifest)
  const { manifest } = await exportToFile(source.address, join(folder, 'merged.tar'))
  assert.equal(manifest.objects, whole.manifest.objects + 1)
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

test('an archive that is damaged, cut or of a later version is refused before anything is sent', async (t) => {
  const path = await smallArchive(t)
  const good = await readFile(path)
  const checksumField = { start: 148, end: 156 }
  const opening = { start: 512, end: 560 }
  // `npm run soak` flips all.
  const isSampled = (at: number): boolean =>
    at % 61 === 0 ||
    [checksumField, opening].some(({ start, end }) => at >= start && at < end) ||
    (at % 7 === 0 && at >= good.length - 1_536)
  assert.ok((await importWithFlips(path, isSampled)) > 200)
  const bad = join(temporaryFolder(t), 'bad.tar')
  const target = site(t)
  const refused = async (bytes: Buffer, code: string, message: RegExp): Promise<void> => {
    await writeFile(bad, bytes)
    await assert.rejects(importFiles(target.address, [bad]), { code, message })
  }
  await refused(good.subarray(0, good.length >> 1), 'corrupt_data', /cut short/)
  await refused(good.subarray(0, -512), 'corrupt_data', /cut short/)
  await refused(Buffer.from('no archive at all'), 'corrupt_data', /not a tar file/)
  const later = Buffer.from(good.toString('latin1').replace('"version":1', '"version":2'), 'latin1')
  await refused(later, 'not_supported', /has version 2/)
  assert.deepEqual(await target.service.project(PROJECT).has(['loose']), new Set())
  // Other programs fill the last record of 10,240 bytes with zeros.
  await writeFile(bad, Buffer.concat([good, Buffer.alloc(10_240 - (good.length % 10_240))]))
  assert.ok((await importFiles(target.address, [bad])).sent > 0)
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
