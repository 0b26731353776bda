import { batchesOf, rejects, type Rule, same, within } from './case.ts'
import type { RecordContext } from './record-context.ts'

export const RECORD_CLOSING_RULES: readonly Rule<RecordContext>[] = [
  {
    name: 'close: may be repeated, and rejects later calls',
    check: async (context) => {
      const { store } = context
      await store.insertMany([context.entry('k')])
      await Promise.all([store.close(), store.close()])
      await store.close()
      await rejects('StorageClosedError', () => store.getMany([context.key('k')]))
      await rejects('StorageClosedError', () => store.insertMany([context.entry('x')]))
      await rejects('StorageClosedError', () => store.commit({ put: [context.entry('x')] }))
      await rejects('StorageClosedError', () => batchesOf(store.range(context.all)))
    },
  },
  { name: 'close: closes a store that was never used', check: async ({ store }) => store.close() },
  {
    name: 'close: waits for calls in flight, but not for an abandoned range',
    check: async (context) => {
      const { store } = context
      await store.insertMany(context.entries(3_000))
      const range = store.range(context.all)[Symbol.asyncIterator]()
      await range.next()
      const calls = [
        store.insertMany([context.entry('x')]),
        store.commit({ put: [context.entry('y')] }),
        store.getMany([context.key('000001')]),
      ]
      await within(30_000, 'close', store.close())
      await Promise.all(calls)
      await rejects('StorageClosedError', () => batchesOf({ [Symbol.asyncIterator]: () => range }))
    },
  },
]

/** For stores that keep their contents when they are closed. */
export const RECORD_REOPENING_RULES: readonly Rule<RecordContext>[] = [
  {
    name: 'reopen: keeps everything that resolved',
    isForPersistent: true,
    check: async (context) => {
      await context.store.insertMany(context.entries(2_500))
      await context.store.commit({ put: [context.entry('put')], remove: [context.key('000007')] })
      await context.reopen()
      same((await context.suffixes()).length, 2_500, 'the number of entries after reopening')
      same(await context.value('put'), 'value of put', 'a committed value after reopening')
      same(await context.value('000007'), undefined, 'a removed value after reopening')
      same(
        await context.store.commit({ expect: [{ key: context.key('put'), value: context.entry('put').value }] }),
        { ok: true },
        'the result of an expectation after reopening',
      )
    },
  },
]
