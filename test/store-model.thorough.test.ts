import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { filesystemBackend } from '../adapters/filesystem/index.ts'
import { levelBackend } from '../adapters/level/index.ts'
import { memoryBackend } from '../adapters/memory/index.ts'
import type { ModelObject } from '../bench/model/building.ts'
import { createRandom } from '../bench/model/random.ts'
import { inBatches, jsonArray } from '../bench/upload.ts'
import { type Ask, verifyDownloads } from '../bench/verify/downloads.ts'
import { laterVersion, sentModel, untilPlanned, verifyHave } from '../bench/verify/versions.ts'
import { createObjectService, type ObjectService, openAccess, type StorageBackend } from '../src/index.ts'
import { buildModel } from './support/model.ts'
import { temporaryFolder } from './support/folder.ts'

/* A model and a later version of it, in at every batch and out at every endpoint, over each storage: what `npm run verify` does with large ones. */

const PROJECT = 'building'
const BATCH_BYTES = 200_000
/** More than are planned in memory alone. */
const { objects } = buildModel({ objects: 1_200 })
const newerObjects = laterVersion(objects, 20, createRandom(1))
const older = sentModel(objects)
const newer = sentModel(newerObjects)

const BACKENDS: Readonly<Record<string, (path: string) => StorageBackend>> = {
  memory: () => memoryBackend(),
  level: (path) => levelBackend({ path }),
  filesystem: (path) => filesystemBackend({ path }),
}

for (const [name, backendIn] of Object.entries(BACKENDS)) {
  test(`a model and its later version have the expected objects, ${name}`, async (t) => {
    const path = newFolder(t)
    const backend = backendIn(path)
    const service = createObjectService({ backend, access: openAccess() })
    const ask = asking(service)
    await upload(service, objects)
    await untilPlanned(ask, rootPath(older.rootId))
    await upload(
      service,
      newerObjects.filter(({ id }) => !older.texts.has(id)),
    )
    await verifyHave(ask, PROJECT, older, newer)
    await untilPlanned(ask, rootPath(newer.rootId))
    await verifyDownloads(ask, PROJECT, newer)
    await service.close()
    if (name === 'memory') return
    const reopened = createObjectService({ backend: backendIn(path), access: openAccess() })
    t.after(() => reopened.close())
    await verifyHave(asking(reopened), PROJECT, older, newer)
  })
}

test('a later version keeps most of the model and refers only to its own objects', () => {
  const kept = newerObjects.filter(({ id }) => older.texts.has(id)).length
  assert.ok(kept > objects.length / 2 && kept < objects.length, `${kept} of ${objects.length} objects are kept`)
  for (const { json } of newerObjects)
    for (const [, id] of json.matchAll(/"referencedId":"(\w+)"/g)) assert.ok(newer.texts.has(id), id)
})

function newFolder(t: TestContext): string {
  return join(temporaryFolder(t), 'data')
}

function rootPath(rootId: string): string {
  return `/objects/${PROJECT}/${rootId}`
}

function asking(service: ObjectService): Ask {
  return async (path, { headers, body } = {}) => {
    const response = await service.fetch(
      new Request(`http://in.process${path}`, { method: body === undefined ? 'GET' : 'POST', headers, body }),
    )
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
  }
}

/** In the order of the model, so that no object comes before what it refers to. */
async function upload(service: ObjectService, model: readonly ModelObject[]): Promise<void> {
  for (const batch of inBatches([model], BATCH_BYTES)) {
    const body = new FormData()
    body.append('file', new Blob([gzipSync(jsonArray(batch))], { type: 'application/gzip' }), 'batch.json.gz')
    const response = await service.fetch(new Request(`http://in.process/objects/${PROJECT}`, { method: 'POST', body }))
    assert.equal(response.status, 200, await response.text())
  }
}
