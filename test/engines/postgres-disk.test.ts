import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { StowageError } from '../../src/errors.ts'
import { assertListed, assertSound, heldCount, type Made, openStore, put, undying } from '../store/support.ts'
import { CaseEngines } from './case-place.ts'

/* A disk of PostgreSQL that has no room any more: a real one, and not an error that a test throws. */

const PROJECT = 'demo'
const DISK_BYTES = 8 * 1_048_576
const OBJECTS = 2_000
/** The rows of so many uploads take more than the disk has. */
const UPLOADS_MAX = 60

const engines = await CaseEngines.start({ after })

function made(upload: number): readonly Made[] {
  return Array.from({ length: OBJECTS }, (_, at) => ({ id: `${upload}-${at}`, data: at }))
}

test('a full disk of PostgreSQL refuses uploads as storage_full, downloads go on, and uploads when it has room', async (t) => {
  const disk = await engines.postgres.putTablesOnSmallDisk({ after }, DISK_BYTES)
  if (disk === undefined) return t.skip('needs the right to mount a tmpfs')
  const backend = engines.newPlace()()
  const { store } = await openStore(backend)
  t.after(async () => {
    await store.close()
    await backend.close()
  })
  let acknowledged = 0
  const refusal = await (async () => {
    for (; acknowledged < UPLOADS_MAX; acknowledged++) await put(store, PROJECT, made(acknowledged))
  })().catch((error: unknown) => error)
  assert.ok(refusal instanceof StowageError, String(refusal))
  assert.equal(refusal.code, 'storage_full')
  t.diagnostic(`${acknowledged} uploads of ${OBJECTS} objects until the disk was full: ${refusal.message}`)
  assert.ok(acknowledged > 0)
  for (let upload = 0; upload < acknowledged; upload++) await assertListed(store, PROJECT, made(upload))

  await disk.grow(4 * DISK_BYTES)
  await put(store, PROJECT, made(acknowledged))
  assert.equal(await heldCount(store, PROJECT, made(acknowledged)), OBJECTS)
  for (let upload = 0; upload <= acknowledged; upload++) await assertListed(store, PROJECT, made(upload))
  await assertSound(undying(backend))
})
