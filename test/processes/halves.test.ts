import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { filesystemBlobs } from '../../adapters/filesystem/index.ts'
import { levelRecords } from '../../adapters/level/index.ts'
import { createObjectService, openAccess, type StorageBackend } from '../../src/index.ts'
import { combinedBackend } from '../../src/storage/index.ts'
import { encodeMaintenance, MAINTENANCE_KEY } from '../../src/storage/maintenance-record.ts'
import { uploadObjects } from '../automation-server/support.ts'
import { stowage } from '../cli/command.ts'
import { temporaryFolder } from '../support/folder.ts'

/* Commands over two halves that are named by their addresses. `test/engines` has the same with servers beside them. */

/** So many that they lie in a pack of their own, and not inside its record. */
const OBJECTS = Array.from({ length: 300 }, (_, at) => ({
  id: `object-${at}`,
  text: randomBytes(300).toString('base64'),
}))

interface Halves {
  readonly records: string
  readonly place: readonly string[]
  open(): StorageBackend
}

async function filledHalves(t: Parameters<typeof temporaryFolder>[0]): Promise<Halves> {
  const folder = temporaryFolder(t)
  const [records, blobs] = [join(folder, 'records'), join(folder, 'blobs')]
  const open = (): StorageBackend =>
    combinedBackend({ records: levelRecords({ path: records }), blobs: filesystemBlobs({ path: blobs }) })
  const service = createObjectService({ backend: open(), access: openAccess() })
  await uploadObjects(service, 'demo', OBJECTS)
  await service.close()
  return { records, open, place: ['--records', `level:${records}`, '--blobs', `file:${blobs}`] }
}

async function withRecords({ open }: Halves, use: (backend: StorageBackend) => Promise<void>): Promise<void> {
  const backend = open()
  await use(backend)
  await backend.close()
}

test('check finds damage in two halves, and reindex mends it', async (t) => {
  const halves = await filledHalves(t)
  const check = () => stowage(['check', ...halves.place])
  const whole = await check()
  assert.deepEqual([whole.code, whole.stdout], [0, 'no damage (0 notes)\n'], whole.stderr)
  await withRecords(halves, async ({ records }) => {
    await records.commit({ remove: [Buffer.from('o\0demo\x0000000001\0object-7\0')] })
  })
  const damaged = await check()
  assert.equal(damaged.code, 4, damaged.stderr)
  assert.match(damaged.stdout, /object "object-7" has no record/)
  const reindexed = await stowage(['reindex', ...halves.place])
  assert.equal(reindexed.code, 0, reindexed.stdout + reindexed.stderr)
  assert.equal((await check()).code, 0)
})

test('reindex makes records anew that were lost as a whole, under the id of the blobs', async (t) => {
  const halves = await filledHalves(t)
  await rm(halves.records, { recursive: true })
  const refused = await stowage(['check', ...halves.place])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /do not belong together/)
  const reindexed = await stowage(['reindex', ...halves.place])
  assert.equal(reindexed.code, 4, reindexed.stderr)
  assert.match(reindexed.stdout, /the records had no id, and took that of the blobs/)
  assert.match(reindexed.stdout, /300 objects in 1 packs/)
  const checked = await stowage(['check', ...halves.place])
  assert.equal(checked.code, 0, checked.stdout + checked.stderr)
})

test('where a reindex was stopped in the middle, nothing opens the storage until it has finished', async (t) => {
  const halves = await filledHalves(t)
  const left = { id: 'a', counter: 7, purpose: 'reindex', stage: 'writing', holder: 'h', since: '2026-01-01' } as const
  await withRecords(halves, async ({ records }) => {
    await records.commit({ put: [{ key: MAINTENANCE_KEY, value: encodeMaintenance(left) }] })
  })
  for (const command of [['serve', '--port', '0'], ['check'], ['project', 'list']]) {
    const refused = await stowage([...command, ...halves.place])
    assert.equal(refused.code, 1, command[0])
    assert.match(refused.stderr, /a "stowage reindex" of 2026-01-01 has not finished/)
  }
  assert.equal((await stowage(['reindex', ...halves.place])).code, 0)
  const listed = await stowage(['project', 'list', ...halves.place])
  assert.equal(listed.stdout, 'demo\n', listed.stderr)
})
