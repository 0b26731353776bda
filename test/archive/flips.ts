import assert from 'node:assert/strict'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { exportToFile, importFiles, type ProjectAddress } from '../../src/archive/index.ts'
import { StowageError } from '../../src/index.ts'
import { inProcess } from '../automation-server/support.ts'
import { temporaryFolder } from '../support/folder.ts'
import { furnish, site } from './support.ts'

const OBJECTS = 12

/** A small archive that has every kind of entry: objects, records with annotations and logs, and a file of a run. */
export async function smallArchive(t: TestContext): Promise<string> {
  const executor = inProcess(async ({ backend }) => {
    const logs = [{ atMs: 1, level: 'info', message: 'began' }] as const
    const annotation = {
      category: 'Walls',
      level: 'ERROR',
      objectAppIds: { a: null },
      message: 'thin',
      metadata: null,
    } as const
    await backend.report({ sequence: 1, status: 'running', message: '', logs, annotations: [annotation] })
    await backend.storeArtifact({
      name: 'report.txt',
      sizeBytes: 700,
      idempotencyKey: 'report',
      content: (async function* () {
        yield Buffer.alloc(700, 'r')
      })(),
    })
    await backend.report({ sequence: 2, status: 'succeeded', message: 'checked', result: { walls: 12 } })
  })
  const source = site(t, undefined, executor)
  await furnish(source, OBJECTS)
  await source.project.pins.add({ rootObjectId: 'loose' })
  const path = join(temporaryFolder(t), 'small.tar')
  await exportToFile(source.address, path)
  return path
}

/**
 * Flips one bit of each byte whose place `isTried`, one at a time, and imports the archive. Every import must fail with
 * `corrupt_data` or `not_supported`, name the file, and send nothing.
 */
export async function importWithFlips(path: string, isTried: (at: number) => boolean): Promise<number> {
  const good = await readFile(path)
  const requests: string[] = []
  const address: ProjectAddress = {
    url: 'http://in.process',
    token: undefined,
    projectId: 'target',
    retry: false,
    fetch: (url) => {
      requests.push(url)
      return Promise.reject(new Error('nothing may be sent'))
    },
  }
  const file = await open(path, 'r+')
  let tried = 0
  try {
    for (const [at, byte] of good.entries()) {
      if (!isTried(at)) continue
      tried++
      const bit = at % 8
      await file.write(Uint8Array.of(byte ^ (1 << bit)), 0, 1, at)
      const outcome = await importFiles(address, [path]).then(
        () => 'it was imported',
        (error: unknown) => error,
      )
      await file.write(Uint8Array.of(byte), 0, 1, at)
      const where = `bit ${bit} of byte ${at} of ${good.length}`
      assert.ok(outcome instanceof StowageError, `${where}: ${String(outcome)}`)
      assert.match(outcome.code, /^(corrupt_data|not_supported)$/, where)
      assert.ok(outcome.message.includes('small.tar'), `${where}: ${outcome.message}`)
      assert.deepEqual(requests, [], where)
    }
  } finally {
    await file.close()
  }
  return tried
}
