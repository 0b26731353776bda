import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { exportProject, exportToFile, importFiles } from '../../src/archive/index.ts'
import { importWithFlips, smallArchive } from './flips.ts'
import { breakOff, furnish, PROJECT, site } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

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
