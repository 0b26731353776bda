import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filesystemBackend } from '../../../adapters/filesystem/index.ts'
import { CORE_RECORD_LIMITS, type StorageBackend } from '../../../src/storage/backend.ts'
import { headKey } from '../../../src/store/records/keys.ts'
import { folderInMemory } from '../../support/folder.ts'
import { hooked } from '../failures.ts'
import { assertSound, openStore } from '../support.ts'
import { assertHolds, compact, history, PROJECT, smallest, uploaded } from './support.ts'

const MANY_PACKS = history({ versions: 60, objects: 1_500, changed: 10 })
const OBJECTS = MANY_PACKS.oracle.objects.size
const PACKS = MANY_PACKS.uploads.length
/** Beside those that move objects and retire packs: the one that begins the merge, the one with which it takes effect, and those of plans. */
const OTHER_COMMITS = 6

/** The commits of one compaction, and the most keys that one of them names. */
async function commitsOf(backend: StorageBackend): Promise<{ readonly commits: number; readonly keysMax: number }> {
  const opened = await uploaded(MANY_PACKS, backend)
  await opened.store.close()
  const counted = { commits: 0, keysMax: 0 }
  const { records } = backend
  const { store } = await openStore({
    ...backend,
    records: {
      limits: records.limits,
      getMany: records.getMany.bind(records),
      range: records.range.bind(records),
      insertMany: records.insertMany.bind(records),
      commit: (change, options) => {
        const { put = [], remove = [], expect = [] } = change
        const keys = [...put, ...expect].map(({ key }) => key).concat(remove)
        // The lease of the janitor is no part of the merge.
        if (keys.some((key) => key[0] === 'l'.charCodeAt(0))) return records.commit(change, options)
        counted.commits++
        counted.keysMax = Math.max(counted.keysMax, new Set(keys.map((key) => Buffer.from(key).toString('hex'))).size)
        return records.commit(change, options)
      },
      close: records.close.bind(records),
    },
  })
  const report = await compact({ compactor: store.compactor }, MANY_PACKS)
  assert.equal(report.merges, 1, PROJECT)
  assert.equal(report.packsAfter, 1)
  await assertHolds(store, MANY_PACKS, { closures: 3 })
  await store.close()
  await assertSound(backend)
  return counted
}

test('a merge moves a thousand objects in one commit, and retires dozens of packs in one, if the storage allows it', async (t) => {
  const backend = filesystemBackend({ path: folderInMemory(t) })
  t.after(() => backend.close())
  const { commits, keysMax } = await commitsOf(backend)
  const atMost = Math.ceil(OBJECTS / 1_000) + Math.ceil(PACKS / 32) + OTHER_COMMITS
  assert.ok(commits <= atMost, `${commits} commits; at most ${atMost} were expected`)
  assert.ok(keysMax > CORE_RECORD_LIMITS.commitEntriesMax)
})

test('a commit of a merge names no more keys than the smallest storage allows', async () => {
  const { commits, keysMax } = await commitsOf(smallest())
  assert.ok(keysMax <= CORE_RECORD_LIMITS.commitEntriesMax, `${keysMax} keys`)
  const atLeast = OBJECTS / CORE_RECORD_LIMITS.commitEntriesMax
  assert.ok(commits > atLeast, `${commits} commits; more than ${atLeast} were expected`)
})

test('a merge of many packs that was cut off before it took effect ends in commits that the smallest storage takes', async () => {
  const many = history({ versions: 40, objects: 100, changed: 4 })
  const backend = smallest()
  const { store } = await uploaded(many, backend)
  await store.close()
  const head = Buffer.from(headKey(PROJECT)).toString()
  let commits = 0
  const dying = await openStore(
    hooked(backend, (call, key, work) => {
      const takesEffect = call === 'commit' && key === head && ++commits === 2
      return takesEffect ? Promise.reject(new Error('crashed')) : work()
    }),
  )
  await assert.rejects(compact(dying.store, many))
  await dying.store.close()
  const next = await openStore(backend)
  assert.equal((await compact(next.store, many)).packsBefore, 1)
  await assertHolds(next.store, many, { closures: 3 })
  assert.deepEqual(next.background, [])
  await next.store.close()
  await assertSound(backend)
})
