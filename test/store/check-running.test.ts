import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { confirmedFindings } from '../../src/store/upkeep/check-running.ts'
import type { Finding } from '../../src/store/upkeep/finding.ts'
import { collected, type Made, never, openStore, put } from './support.ts'

/* A check while a server goes on: whatever the server changes between two reads of the check is no damage. */

const OBJECTS = 8

function objects(from: string): Made[] {
  return Array.from({ length: OBJECTS }, (_, at) => ({ id: `${from}-${at}`, text: 'x'.repeat(100) }))
}

/** The storage as the check reads it: before every range, and between its batches, something happens. */
function disturbed(backend: StorageBackend, happen: () => Promise<void>): StorageBackend {
  const { records } = backend
  return {
    ...backend,
    records: {
      limits: records.limits,
      getMany: async (keys, options) => {
        await happen()
        return records.getMany(keys, options)
      },
      range: async function* (bounds, options) {
        await happen()
        for await (const entries of records.range(bounds, options)) {
          yield entries
          await happen()
        }
      },
      insertMany: (entries) => records.insertMany(entries),
      commit: (change) => records.commit(change),
      close: () => records.close(),
    },
  }
}

function damages(findings: readonly Finding[]): readonly Finding[] {
  return findings.filter(({ severity }) => severity === 'damage')
}

test('a check during uploads, removals and merges finds real damage and reports no other', async () => {
  const backend = memoryBackend()
  const { store } = await openStore(backend)
  for (let upload = 0; upload < 4; upload++) await put(store, 'demo', objects(`first-${upload}`))
  let changes = 0
  const server = async (): Promise<void> => {
    changes++
    // Uploads end: a project that never stands still cannot be compared with its totals.
    if (changes % 4 === 0) await put(store, `project-${changes % 5}`, objects(`at-${changes}`))
    if (changes % 10 === 0) await store.remove('project-1')
    if (changes % 15 === 0) await store.compactor.compact('demo', async () => [], { signal: never, all: true })
  }
  const running = disturbed(backend, server)
  const pass = (): AsyncIterable<Finding> => checkStore(running, { isRunning: true })
  assert.notDeepEqual(damages(await collected(pass())), [], 'one pass alone takes changes for damage')
  assert.deepEqual(damages(await collected(confirmedFindings(pass))), [])
  assert.ok(changes > 20)

  const { records } = backend
  const [, ...packs] = await collected(
    records.range({ gte: Buffer.from('k\0demo\0'), lt: Buffer.from('k\0demo\u0001') }),
  )
  assert.deepEqual(packs, [])
  for await (const [entry] of records.range({
    gte: Buffer.from('o\0demo\0'),
    lt: Buffer.from('o\0demo\u0001'),
    limit: 1,
  }))
    await records.commit({ remove: [entry.key] })
  const found = damages(await collected(confirmedFindings(pass)))
  assert.equal(found.length, 1)
  assert.match(found[0].message, /object "first-0-0" has no record/)
  await store.close()
})
