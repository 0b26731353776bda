import assert from 'node:assert/strict'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createClient } from '../../src/client/index.ts'
import type { CollectionReport } from '../../src/object/collection.ts'
import { stowage } from '../cli/command.ts'
import { buildModel } from '../support/model.ts'
import { temporaryFolder } from '../support/folder.ts'
import { eventually } from '../support/patience.ts'
import { KillableServer } from './kill-rounds.ts'

const PROJECT = 'house'
const PAGE_BYTES = 65_536
const OBJECTS = 2_000
const CHANGED = 400
const STATES = 8
const KEPT = 2
const LOOSE = 300
/** A day and a little more: for so long the blobs of merged packs stay. */
const BLOB_GRACE_EPOCHS = 150
const DISK_SHARE_MAX = 0.05

test('a dry run says what a collection of a server at rest then condemns, frees, and takes from the disk', async (t) => {
  const data = temporaryFolder(t)
  const server = new KillableServer(data, PAGE_BYTES)
  t.after(() => server.kill())
  await server.start()
  const project = createClient({ url: server.url, token: undefined }).project(PROJECT)
  for (let state = 0; state < STATES; state++) {
    const { rootId, objects } = buildModel({ objects: OBJECTS, revision: state, changed: CHANGED })
    await project.upload(objects.map(({ id, json }) => ({ id, json })))
    const { id } = await project.pins.add({ rootObjectId: rootId })
    // A collection meets each state while it is wanted, and later as an old version.
    await server.call('collect', PROJECT)
    if (state < STATES - KEPT) await project.pins.remove(id)
  }
  await project.upload(Array.from({ length: LOOSE }, (_, number) => ({ id: `loose-${number}`, number })))
  await server.call('advanceEpochs', 2)
  await collected(server.url, '--dry-run')
  await mergedToOne(server, data)
  const diskBefore = await packBytes(data)

  const dry = await collected(server.url, '--dry-run')
  assert.equal(dry.dryRun, true)
  assert.equal(dry.condemned.byCause.neverReferenced.objects, LOOSE)
  assert.ok(dry.condemned.byCause.oldVersion.objects > STATES, JSON.stringify(dry.condemned))
  const condemning = await collected(server.url)
  assert.deepEqual(condemning.condemned, dry.condemned)
  assert.equal(condemning.freed.objects, 0)
  await server.call('advanceEpochs', 2)
  const dryFreeing = await collected(server.url, '--dry-run')
  const { freed } = await collected(server.url)
  assert.deepEqual(freed, dryFreeing.freed)
  const figures = ({ objects, jsonBytes }: CollectionReport['freed']): unknown => ({ objects, jsonBytes })
  assert.deepEqual(figures(freed), figures(dry.condemned))

  await mergedToOne(server, data)
  const diskFreed = diskBefore - (await packBytes(data))
  const said = dry.condemned.storedBytes
  t.diagnostic(`${freed.objects} objects; the dry run said ${said} bytes in storage, ${diskFreed} left the disk`)
  assert.ok(Math.abs(diskFreed - said) <= DISK_SHARE_MAX * diskFreed, `${diskFreed} bytes left the disk, not ${said}`)
})

/** One epoch is the shortest grace. */
async function collected(url: string, ...options: readonly string[]): Promise<CollectionReport> {
  const grace = ['--older-than', '1s', '--undo-within', '1s']
  const args = ['collect', '--url', url, '--project', PROJECT, '--json', '--quiet', ...grace, ...options]
  const { code, stdout, stderr } = await stowage(args)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as CollectionReport
}

/** Merges all packs; the merged ones leave the disk when their grace is over, at the next start at the latest. */
async function mergedToOne(server: KillableServer, data: string): Promise<void> {
  // A young merge is left alone.
  await server.call('advanceEpochs', 3)
  const { packsAfter } = await server.call('compact', PROJECT, { all: true })
  assert.equal(packsAfter, 1)
  await server.call('advanceEpochs', BLOB_GRACE_EPOCHS)
  await server.restart()
  await eventually(async () => (await packsOf(data)).length === 1, 'one pack is on the disk')
}

async function packsOf(data: string): Promise<readonly string[]> {
  const entries = await readdir(join(data, 'packs'), { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && !entry.name.startsWith('plan-'))
    .map(({ parentPath, name }) => join(parentPath, name))
}

async function packBytes(data: string): Promise<number> {
  const sizes = await Promise.all((await packsOf(data)).map(async (path) => (await stat(path)).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}
