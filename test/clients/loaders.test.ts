import assert from 'node:assert/strict'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { postBatch } from '../../bench/upload.ts'
import { buildModel, jsonArray } from '../support/model.ts'
import { runClient, startServer, type TestServer } from './support.ts'

/** The npm loaders of the existing service's viewer, unchanged. They sleep between batches: this tests what they get, never how fast. */

const OBJECTS = 1_500
const model = buildModel({ objects: OBJECTS })
let server: TestServer
let folder: string

before(async () => {
  const modules = process.env.STOWAGE_TEST_LOADERS
  assert.ok(modules, 'STOWAGE_TEST_LOADERS must name the node_modules folder with the loaders')
  folder = await mkdtemp(join(tmpdir(), 'stowage-loaders-'))
  await symlink(modules, join(folder, 'node_modules'))
  server = await startServer()
  await postBatch({ url: server.url, token: 'any', projectId: 'demo' }, gzipSync(jsonArray(model.objects)))
})

after(async () => {
  await server[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

test('objectloader2 loads a whole model', async () => {
  await loads(`
import { ObjectLoader2Factory } from '@speckle/objectloader2'
const { URL: serverUrl, ROOT: objectId } = process.env
const loader = ObjectLoader2Factory.createFromUrl({ serverUrl, streamId: 'demo', objectId, token: 'any', options: { useCache: false } })
const ids = []
for await (const object of loader.getObjectIterator()) ids.push(object.id)
await loader.disposeAsync?.()
console.log(JSON.stringify(ids))
process.exit(0)
`)
})

test('objectloader, the older one, loads a whole model', async () => {
  await loads(`
import ObjectLoader from '@speckle/objectloader'
const { URL: serverUrl, ROOT: objectId } = process.env
const loader = new ObjectLoader({ serverUrl, streamId: 'demo', objectId, token: 'any', options: { enableCaching: false, fetch } })
const ids = []
for await (const object of loader.getObjectIterator()) ids.push(object.id)
console.log(JSON.stringify(ids))
process.exit(0)
`)
})

async function loads(script: string): Promise<void> {
  const path = join(folder, 'load.mjs')
  await writeFile(path, script)
  const printed = await runClient(process.execPath, [path], { URL: server.url, ROOT: model.rootId })
  const ids = new Set(JSON.parse(printed.trim().split('\n').at(-1) ?? '') as string[])
  assert.deepEqual(ids, new Set(model.byId.keys()))
}
