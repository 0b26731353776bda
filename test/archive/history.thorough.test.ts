import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import {
  archives,
  baseOfCursor,
  baseOfFile,
  exportToFile,
  importFiles,
  mirrorProject,
} from '../../src/archive/index.ts'
import { createClient } from '../../src/client/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { coldCopy } from '../support/cold-copy.ts'
import { temporaryFolder } from '../support/folder.ts'
import { addressOf, breakOff, furnish, PROJECT, type Site, site } from './support.ts'

/*
 * A cursor belongs to one history of a project. Where another one has the same numbers, nothing is left out in silence.
 */

type Filled = Pick<Site, 'backend' | 'address' | 'project'>

/** A server with archives that has neither models nor runs. */
function withoutRecords(t: TestContext, backend = memoryBackend()): Filled {
  const service = createObjectService({ backend, access: openAccess(), extensions: [archives()] })
  t.after(() => service.close({ graceMs: 0 }))
  const address = addressOf(service)
  return { backend, address, project: createClient(address).project(PROJECT) }
}

const upload = ({ project }: Filled, ...ids: readonly string[]): Promise<unknown> =>
  project.upload(ids.map((id) => ({ id, text: 'x'.repeat(500) })))

test('an incremental export refuses the base of another project, another server, or a history that was put back', async (t) => {
  const folder = temporaryFolder(t)
  const base = join(folder, 'base.tar')
  const source = site(t)
  await furnish(source)
  const cold = await coldCopy(source.backend)
  await upload(source, 'first')
  await exportToFile(source.address, base)
  const since = await baseOfFile(base)
  const other = { ...source.address, projectId: 'other' }
  await assert.rejects(exportToFile(other, join(folder, 'other.tar'), { since }), {
    code: 'invalid_request',
    message: /base\.tar" is of the project "house", not of "other"/,
  })

  const imported = site(t)
  await importFiles(imported.address, [base])
  const older = site(t, cold)
  await upload(older, 'second')
  for (const [name, { address }] of [
    ['imported', imported],
    ['older', older],
  ] as const)
    for (const one of [since, baseOfCursor(since.cursor ?? '')])
      await assert.rejects(
        exportToFile(address, join(folder, 'more.tar'), { since: one }),
        { code: 'conflict', message: /^the project "house" at http:\/\/in\.process does not continue / },
        name,
      )

  await upload(source, 'third')
  const { manifest } = await exportToFile(source.address, join(folder, 'more.tar'), { since })
  assert.equal(manifest.objects, 1)
})

test('a mirror copies everything again if its source was restored, or got older data back', async (t) => {
  const folder = temporaryFolder(t)
  for (const open of [site, withoutRecords]) {
    const source = open(t)
    await upload(source, 'zeroth')
    const cold = await coldCopy(source.backend)
    await upload(source, 'first')
    const target = site(t)
    const held = (...ids: readonly string[]): Promise<ReadonlySet<string>> => target.service.project(PROJECT).has(ids)
    await mirrorProject(source.address, target.address)
    const older = open(t, cold)
    await upload(older, 'second')
    await mirrorProject(older.address, target.address)
    assert.deepEqual(await held('first', 'second'), new Set(['first', 'second']), open.name)

    const archive = join(folder, `${open.name}.tar`)
    await exportToFile(older.address, archive)
    const restored = open(t)
    await importFiles(restored.address, [archive])
    await upload(restored, 'third')
    await mirrorProject(restored.address, target.address)
    assert.deepEqual(await held('third'), new Set(['third']), open.name)
  }
})

test('an interrupted export begins again if the server got older data back in between', async (t) => {
  const path = join(temporaryFolder(t), 'house.tar')
  const source = site(t)
  await furnish(source)
  const cold = await coldCopy(source.backend)
  await upload(source, 'first')
  assert.ok((await breakOff(source.address, path)) > 0)
  const older = site(t, cold)
  await upload(older, 'second')
  await exportToFile(older.address, path)
  const target = site(t)
  await importFiles(target.address, [path])
  assert.deepEqual(await target.service.project(PROJECT).has(['first', 'second']), new Set(['second']))
})
