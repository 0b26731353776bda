import type { CommitResult, Entry } from '../backend.ts'
import { rejects, rejectsWithReason, type Rule, same } from './case.ts'
import { bytesOf, type RecordContext } from './record-context.ts'

async function increment(context: RecordContext, suffix: string): Promise<void> {
  for (;;) {
    const [held] = await context.store.getMany([context.key(suffix)])
    const next = context.entry(suffix, String(Number(held ? Buffer.from(held).toString() : 0) + 1))
    const result = await context.store.commit({ put: [next], expect: [{ key: next.key, value: held }] })
    if (result.ok) return
    const [found] = conflictsOf(result)
    same(found.index, 0, 'the conflict of a commit with one expectation')
    if (Number(found.value) <= Number(held === undefined ? 0 : textOf(held)))
      throw new Error(`the counter was ${textOf(held)}, but a commit that expected so found ${found.value} instead`)
  }
}

interface FoundValue {
  readonly index: number
  readonly value: string | undefined
}

/** The conflicts of a commit, with their values as text; none if it was made. */
function conflictsOf(result: CommitResult): FoundValue[] {
  return result.ok ? [] : result.conflicts.map(({ index, value }) => ({ index, value: textOf(value) }))
}

function textOf(value: Uint8Array | undefined): string | undefined {
  return value === undefined ? undefined : Buffer.from(value).toString()
}

/** `count` entries that fill a commit of `bytes` bytes to the last one. */
function fillingEntries(context: RecordContext, count: number, bytes: number): Entry[] {
  const keys = Array.from({ length: count }, (_, at) => context.key(String(at).padStart(4, '0')))
  const valuesBytes = bytes - keys.reduce((sum, key) => sum + key.length, 0)
  const each = Math.floor(valuesBytes / count)
  return keys.map((key, at) => ({ key, value: Buffer.alloc(at === 0 ? valuesBytes - each * (count - 1) : each, at) }))
}

export const RECORD_COMMIT_RULES: readonly Rule<RecordContext>[] = [
  {
    name: 'commit: inserts, replaces and removes together',
    check: async (context) => {
      await context.store.insertMany([context.entry('replaced', 'old'), context.entry('removed')])
      const result = await context.store.commit({
        put: [context.entry('replaced', 'new'), context.entry('added')],
        remove: [context.key('removed'), context.key('never there')],
      })
      same(result, { ok: true }, 'the result')
      same(await context.value('replaced'), 'new', 'the replaced value')
      same(await context.suffixes(), ['added', 'replaced'], 'the stored keys')
    },
  },
  {
    name: 'commit: accepts an empty change',
    check: async ({ store }) => {
      same(await store.commit({}), { ok: true }, 'the result')
      same(await store.commit({ put: [], remove: [], expect: [] }), { ok: true }, 'the result')
    },
  },
  {
    name: 'commit: checks expectations of absent, equal and empty values',
    check: async (context) => {
      const { store } = context
      same(
        await store.commit({ put: [context.entry('k', '')], expect: [{ key: context.key('k'), value: undefined }] }),
        { ok: true },
        'the result of an expectation of no value',
      )
      same(
        await store.commit({
          put: [context.entry('k', 'full')],
          expect: [{ key: context.key('k'), value: new Uint8Array(0) }],
        }),
        { ok: true },
        'the result of an expectation of an empty value',
      )
      same(
        await store.commit({ remove: [context.key('k')], expect: [{ key: context.key('k'), value: bytesOf('full') }] }),
        { ok: true },
        'the result of an expectation of an equal value',
      )
      same(await context.value('k'), undefined, 'the removed value')
    },
  },
  {
    name: 'commit: a failed expectation returns all that failed with the values that are there and changes nothing',
    check: async (context) => {
      await context.store.insertMany([context.entry('a', 'is'), context.entry('b', ''), context.entry('c', 'is')])
      const result = await context.store.commit({
        put: [context.entry('put'), context.entry('a', 'changed')],
        remove: [context.key('c')],
        expect: [
          { key: context.key('a'), value: bytesOf('is') },
          { key: context.key('a2'), value: new Uint8Array(0) },
          { key: context.key('b'), value: undefined },
          { key: context.key('put'), value: undefined },
          { key: context.key('c'), value: bytesOf('is not') },
          { key: context.key('d'), value: bytesOf('is') },
        ],
      })
      same(result.ok, false, 'ok of the commit')
      const found = [
        { index: 1, value: undefined },
        { index: 2, value: '' },
        { index: 4, value: 'is' },
        { index: 5, value: undefined },
      ]
      same(conflictsOf(result), found, 'the conflicts, in the order of the expectations')
      same(await context.suffixes(), ['a', 'b', 'c'], 'the stored keys')
      same(await context.value('a'), 'is', 'the stored value')
    },
  },
  {
    name: 'commit: checks expectations without writes',
    check: async (context) => {
      await context.store.insertMany([context.entry('k', 'is')])
      const held = await context.store.commit({ expect: [{ key: context.key('k'), value: bytesOf('is') }] })
      same(held, { ok: true }, 'the result of an expectation that holds')
      const failed = await context.store.commit({ expect: [{ key: context.key('k'), value: bytesOf('is n') }] })
      same(failed.ok, false, 'ok of a commit with an expectation that fails')
      same(conflictsOf(failed), [{ index: 0, value: 'is' }], 'the conflicts')
    },
  },
  {
    name: 'commit: the values of conflicts are what the next try expects, and belong to the caller',
    check: async (context) => {
      const keys = ['a', 'b', 'c'].map((suffix) => context.key(suffix))
      await context.store.insertMany([context.entry('a', 'one'), context.entry('b', 'two')])
      const stale = keys.map((key) => ({ key, value: bytesOf('stale') }))
      const failed = await context.store.commit({ expect: stale })
      same(conflictsOf(failed).length, 3, 'the number of conflicts')
      const expect = failed.ok ? [] : failed.conflicts.map(({ index, value }) => ({ key: keys[index], value }))
      const made = await context.store.commit({ put: [context.entry('c', 'put')], expect })
      same(made, { ok: true }, 'the result of a commit that expects the values of the conflicts')
      for (const { value } of expect) value?.fill(0x7a)
      same(await context.value('a'), 'one', 'a stored value after the caller overwrote the value of its conflict')
    },
  },
  {
    name: 'commit: rejects a key that occurs twice in the writes or twice in the expectations',
    check: async (context) => {
      const expectation = { key: context.key('k'), value: undefined }
      await rejects('RangeError', () =>
        context.store.commit({ put: [context.entry('k', '1'), context.entry('k', '2')] }),
      )
      await rejects('RangeError', () => context.store.commit({ put: [context.entry('k')], remove: [context.key('k')] }))
      await rejects('RangeError', () =>
        context.store.commit({ put: [context.entry('x')], expect: [expectation, expectation] }),
      )
      same(await context.suffixes(), [], 'the stored keys after refused commits')
    },
  },
  {
    name: 'commit: accepts keys and bytes up to the limits and rejects one more',
    check: async (context) => {
      const { commitEntriesMax, commitBytesMax, valueBytesMax } = context.store.limits
      const count = Math.min(commitEntriesMax, 1_000)
      const largest = fillingEntries(context, count, Math.min(commitBytesMax, count * valueBytesMax))
      same(await context.store.commit({ put: largest }), { ok: true }, 'the result of the largest commit')
      same((await context.suffixes()).length, count, 'the number of stored entries')
      if (count === commitEntriesMax) {
        const expect = [{ key: context.key('one more'), value: undefined }]
        await rejects('RangeError', () => context.store.commit({ put: context.entries(count), expect }))
      }
      const tooLarge = fillingEntries(context, count, commitBytesMax + 1)
      await rejects('RangeError', () => context.store.commit({ put: tooLarge }))
    },
  },
  {
    name: 'commit: rejects a key or value over its limit and changes nothing',
    check: async (context) => {
      const { keyBytesMax, valueBytesMax } = context.store.limits
      await rejects('RangeError', () =>
        context.store.commit({
          put: [context.entry('k'), { key: context.longKey(keyBytesMax + 1), value: bytesOf('') }],
        }),
      )
      await rejects('RangeError', () =>
        context.store.commit({
          put: [context.entry('k'), { key: context.key('x'), value: Buffer.alloc(valueBytesMax + 1) }],
        }),
      )
      await rejects('RangeError', () =>
        context.store.commit({ put: [context.entry('k')], remove: [new Uint8Array(0)] }),
      )
      same(await context.suffixes(), [], 'the stored keys after refused commits')
    },
  },
  {
    name: 'commit: loses no increment of many concurrent counters',
    check: async (context) => {
      const hands = Array.from({ length: 12 }, async (_, hand) => {
        for (let round = 0; round < 5; round++) await increment(context, `counter ${(hand + round) % 3}`)
      })
      await Promise.all(hands)
      const counts = await Promise.all([0, 1, 2].map(async (at) => Number(await context.value(`counter ${at}`))))
      same(counts, [20, 20, 20], 'the counters')
    },
  },
  {
    name: 'commit: of two commits that exclude each other, at most one succeeds (no write skew)',
    check: async (context) => {
      for (let round = 0; round < 10; round++) {
        const [left, right] = [`left ${round}`, `right ${round}`]
        const results = await Promise.all([
          context.store.commit({ put: [context.entry(left)], expect: [{ key: context.key(right), value: undefined }] }),
          context.store.commit({ put: [context.entry(right)], expect: [{ key: context.key(left), value: undefined }] }),
        ])
        same(results.filter((result) => result.ok).length, 1, 'the number of successful commits')
      }
    },
  },
  {
    name: 'commit: is serializable against inserts of the same key',
    check: async (context) => {
      for (let round = 0; round < 10; round++) {
        const entry = context.entry(`k ${round}`, 'inserted')
        const [committed, [found]] = await Promise.all([
          context.store.commit({
            put: [context.entry(`k ${round}`, 'committed')],
            expect: [{ key: entry.key, value: undefined }],
          }),
          context.store.insertMany([entry]),
        ])
        same(committed.ok, found !== undefined, 'ok of the commit, which is true if the insert found a value')
        same(await context.value(`k ${round}`), committed.ok ? 'committed' : 'inserted', 'the stored value')
      }
    },
  },
  {
    name: "commit: ignores later changes to the caller's buffers",
    check: async (context) => {
      const { key, value } = context.entry('k', 'kept')
      await context.store.commit({ put: [{ key, value }] })
      key.fill(0x7a)
      value.fill(0x7a)
      same(await context.value('k'), 'kept', 'the stored value after the caller overwrote its buffers')
      same(await context.suffixes(), ['k'], 'the stored keys')
    },
  },
  {
    name: 'commit: rejects with the reason of a signal that is already aborted and changes nothing',
    check: async (context) => {
      await rejectsWithReason((signal) => context.store.commit({ put: [context.entry('k')] }, { signal }))
      same(await context.value('k'), undefined, 'an entry of an aborted call')
    },
  },
]
