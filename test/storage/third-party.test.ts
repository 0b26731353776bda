import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RecordStore } from '../../src/storage/backend.ts'
import { blobStoreConformance, recordStoreConformance } from '../../src/storage/conformance/index.ts'
import { mapBackend } from './third-party-backend.ts'

describe('records of a third-party backend', () => {
  for (const { name, run } of recordStoreConformance(() => mapBackend().records, { thorough: false })) test(name, run)
})

describe('blobs of a third-party backend', () => {
  for (const { name, run } of blobStoreConformance(() => mapBackend().blobs, { thorough: false })) test(name, run)
})

/** Stores that break one sentence of the contract each, and the case that has to notice. */
const BROKEN: readonly (readonly [string, (store: RecordStore) => Partial<RecordStore>, RegExp])[] = [
  [
    'answers without order',
    (store) => ({ getMany: async (keys) => (await store.getMany(keys)).toReversed() }),
    /^getMany: returns values in the order/,
  ],
  [
    'a last write that wins',
    (store) => ({
      insertMany: async (entries) => (await store.commit({ put: entries.slice(0, 1) }), store.insertMany(entries)),
    }),
    /^insertMany: returns undefined/,
  ],
  [
    'a commit without expectations',
    (store) => ({ commit: ({ put, remove }) => store.commit({ put, remove }) }),
    /^commit: loses no increment/,
  ],
  [
    'a range that ignores its limit',
    (store) => ({ range: ({ gte, lt }) => store.range({ gte, lt }) }),
    /^range: limit counts/,
  ],
  ['a close that does nothing', () => ({ close: async () => undefined }), /^close: may be repeated/],
]

for (const [flaw, breakIt, rule] of BROKEN) {
  test(`the suite notices ${flaw}`, async () => {
    const open = (): RecordStore => {
      const store = mapBackend().records
      const whole: RecordStore = {
        limits: store.limits,
        getMany: (...call) => store.getMany(...call),
        range: (...call) => store.range(...call),
        insertMany: (...call) => store.insertMany(...call),
        commit: (...call) => store.commit(...call),
        close: () => store.close(),
      }
      return { ...whole, ...breakIt(store) }
    }
    const found = recordStoreConformance(open).find(({ name }) => rule.test(name))
    await assert.rejects(async () => found?.run())
  })
}
