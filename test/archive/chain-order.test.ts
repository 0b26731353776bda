import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  backupServer,
  baseOfCursor,
  baseOfFile,
  exportToFile,
  importFiles,
  openBackup,
  restoreProjects,
  verifyFiles,
} from '../../src/archive/index.ts'
import { temporaryFolder } from '../support/folder.ts'
import { PROJECT, type Site, site } from './support.ts'

/*
 * An archive is imported with everything that it continues, or not at all.
 */

/** Messages name paths in full, also long ones. */
function longFolder(t: TestContext): string {
  const folder = join(temporaryFolder(t), 'a-folder-whose-name-is-long-'.repeat(4))
  mkdirSync(folder)
  return folder
}

interface Chain {
  readonly source: Site
  /** Monday, Tuesday and Wednesday. */
  readonly paths: readonly string[]
  readonly sums: readonly string[]
}

async function chain(t: TestContext): Promise<Chain> {
  const folder = longFolder(t)
  const source = site(t)
  const paths = ['monday.tar', 'tuesday.tar', 'wednesday.tar'].map((name) => join(folder, name))
  const sums: string[] = []
  for (const [at, path] of paths.entries()) {
    await source.project.upload([{ id: `object ${at}` }])
    const since = at === 0 ? {} : { since: await baseOfFile(paths[at - 1]) }
    sums.push((await exportToFile(source.address, path, since)).manifest.sha256)
  }
  return { source, paths, sums }
}

test('an incremental archive without the one before it is refused before anything is sent, and the one is named', async (t) => {
  const { paths, sums } = await chain(t)
  const [monday, tuesday, wednesday] = paths
  const target = site(t)
  const refused = async (files: readonly string[], ...parts: readonly string[]): Promise<void> => {
    const error = await importFiles(target.address, files).then(
      () => assert.fail('it was imported'),
      (thrown: Error & { readonly code?: string }) => thrown,
    )
    assert.equal(error.code, 'invalid_request', error.message)
    for (const part of parts) assert.ok(error.message.includes(part), `${error.message} has no ${part}`)
  }
  await refused([tuesday], `${tuesday}" is incremental`, '"monday.tar"', sums[0])
  await refused([wednesday, tuesday, monday], `${wednesday}" is incremental`, '"tuesday.tar"', sums[1])
  await refused([monday, wednesday], `${wednesday}" continues "tuesday.tar"`, sums[1], `not "${monday}"`, sums[0])
  await refused([monday, monday], 'is a full archive, which continues nothing')
  assert.deepEqual(await target.service.project(PROJECT).has(['object 0', 'object 1', 'object 2']), new Set())

  assert.equal((await verifyFiles([tuesday, wednesday])).length, 2)
  assert.equal((await importFiles(target.address, paths)).sent, 3)
})

test('an archive since a cursor continues the archive that ends there', async (t) => {
  const { source, paths } = await chain(t)
  const path = join(temporaryFolder(t), 'more.tar')
  const { cursor } = await baseOfFile(paths[0])
  await exportToFile(source.address, path, { since: baseOfCursor(cursor as string) })
  await assert.rejects(importFiles(site(t).address, [path]), {
    code: 'invalid_request',
    message: new RegExp(`is incremental: without the archive that ends at the cursor ${cursor},`),
  })
  assert.equal((await importFiles(site(t).address, [paths[0], path])).sent, 3)
})

test('an archive after one without objects holds everything', async (t) => {
  const folder = temporaryFolder(t)
  const source = site(t)
  await source.project.models.create({ name: 'House' })
  const [first, second] = [join(folder, 'first.tar'), join(folder, 'second.tar')]
  await exportToFile(source.address, first)
  await source.project.upload([{ id: 'root' }])
  await exportToFile(source.address, second, { since: await baseOfFile(first) })
  for (const files of [[second], [first, second]]) assert.equal((await importFiles(site(t).address, files)).sent, 1)
})

test('what is no archive is named in full', async (t) => {
  const folder = longFolder(t)
  const { address } = site(t)
  const path = join(folder, 'missing.tar')
  const missing = { code: 'not_found', message: `there is no archive "${path}"` }
  await assert.rejects(importFiles(address, [path]), missing)
  await assert.rejects(baseOfFile(path), missing)
  await assert.rejects(importFiles(address, [folder]), {
    code: 'invalid_request',
    message: `"${folder}" is a folder; name the file of an archive`,
  })
  await assert.rejects(importFiles(address, ['/dev/null']), {
    code: 'invalid_request',
    message: /is a pipe or a device/,
  })
  writeFileSync(path, 'no archive')
  await assert.rejects(importFiles(address, [path]), {
    code: 'corrupt_data',
    message: `"${path}" is not a complete archive: it is not a tar file`,
  })
})

test('a backup that lacks an archive, or whose list is damaged, is not restored', async (t) => {
  const folder = longFolder(t)
  const source = site(t)
  await source.project.upload([{ id: 'root' }])
  const { projects } = await backupServer(source.address, folder)
  const [file] = projects[0].files
  rmSync(join(folder, file))
  const expected = {
    code: 'not_found',
    message: `the backup "${folder}" lacks the archive "${file}" of the project "${PROJECT}", which its backup.json names; put it back, or restore another backup`,
  }
  await assert.rejects(openBackup(folder), expected)
  await assert.rejects(restoreProjects(folder, site(t).address), expected)
  writeFileSync(join(folder, 'backup.json'), '{"format":')
  for (const using of [openBackup(folder), backupServer(source.address, folder)])
    await assert.rejects(using, {
      code: 'corrupt_data',
      message: `"${folder}" holds a backup.json that is damaged or of something else`,
    })
})
