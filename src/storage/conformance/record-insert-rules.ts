import { rejects, rejectsWithReason, type Rule, same, sameBytes } from './case.ts'
import { bytesOf, type RecordContext } from './record-context.ts'

export const RECORD_INSERT_RULES: readonly Rule<RecordContext>[] = [
  {
    name: 'insertMany: returns undefined for inserted entries and the existing value otherwise, in order',
    check: async (context) => {
      await context.store.insertMany([context.entry('held', 'old')])
      const found = await context.store.insertMany([
        context.entry('x'),
        context.entry('held', 'new'),
        context.entry('y'),
      ])
      same(found.length, 3, 'the number of results for three entries')
      sameBytes(found[0], undefined, 'the result of a new entry')
      sameBytes(found[1], bytesOf('old'), 'the result of an entry whose key exists')
      sameBytes(found[2], undefined, 'the result of a new entry')
      same(await context.value('held'), 'old', 'the stored value, which insertMany never overwrites')
      same(await context.value('x'), 'value of x', 'the stored value of a new entry')
    },
  },
  {
    name: 'insertMany: returns an empty list for no entries',
    check: async ({ store }) => same(await store.insertMany([]), [], 'the result for no entries'),
  },
  {
    name: 'insertMany: inserts the first of two entries with one key in a call',
    check: async (context) => {
      const found = await context.store.insertMany([
        context.entry('k', 'first'),
        context.entry('k', 'second'),
        context.entry('k', 'third'),
      ])
      sameBytes(found[0], undefined, 'the result of the first entry')
      sameBytes(found[1], bytesOf('first'), 'the result of the second entry')
      sameBytes(found[2], bytesOf('first'), 'the result of the third entry')
      same(await context.value('k'), 'first', 'the stored value')
    },
  },
  {
    name: 'insertMany: returns an existing empty value as a value',
    check: async (context) => {
      await context.store.insertMany([context.entry('k', '')])
      sameBytes((await context.store.insertMany([context.entry('k', 'new')]))[0], new Uint8Array(0), 'the empty value')
    },
  },
  {
    name: 'insertMany: a repeated call changes nothing',
    check: async (context) => {
      const entries = context.entries(50)
      await context.store.insertMany(entries)
      const found = await context.store.insertMany(entries)
      for (const [at, entry] of entries.entries())
        sameBytes(found[at], entry.value, `result ${at} of the repeated call`)
      same((await context.suffixes()).length, 50, 'the number of stored entries')
    },
  },
  {
    name: 'insertMany: accepts any number of entries in a call, with duplicates far apart',
    check: async (context) => {
      const entries = context.entries(6_000)
      const found = await context.store.insertMany([...entries, ...entries.slice(0, 10)])
      same(found.length, 6_010, 'the number of results')
      const firstHeld = found.findIndex((value) => value !== undefined)
      same(firstHeld, 6_000, 'the index of the first result that is not undefined')
      sameBytes(found[6_005], entries[5].value, 'the result of a duplicate')
      same((await context.suffixes()).length, 6_000, 'the number of stored entries')
    },
  },
  {
    name: 'insertMany: exactly one of several concurrent calls inserts a key, and the others return its value',
    check: async (context) => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          context.store.insertMany([context.entry(`own ${at}`), context.entry('shared', `by ${at}`)]),
        ),
      )
      const winners = [...answers.keys()].filter((at) => answers[at][1] === undefined)
      same(winners.length, 1, 'the number of calls that inserted the shared key')
      for (const [at, answer] of answers.entries()) {
        sameBytes(answer[0], undefined, `the result of call ${at} for its own key`)
        if (at !== winners[0])
          sameBytes(answer[1], bytesOf(`by ${winners[0]}`), `the result of call ${at} for the shared key`)
      }
      same(await context.value('shared'), `by ${winners[0]}`, 'the stored value of the shared key')
    },
  },
  {
    name: 'insertMany: large concurrent calls over the same keys agree on every key',
    check: async (context) => {
      const keys = Array.from({ length: 1_500 }, (_, at) => context.key(String(at)))
      const answers = await Promise.all(
        [1, 2, 3].map((caller) => context.store.insertMany(keys.map((key) => ({ key, value: Uint8Array.of(caller) })))),
      )
      const values = await context.store.getMany(keys)
      for (const [at, value] of values.entries()) {
        const putters = [1, 2, 3].filter((caller) => answers[caller - 1][at] === undefined)
        same(putters, [value?.[0]], `the callers that inserted key ${at}, given its stored value`)
        for (const answer of answers) if (answer[at]) sameBytes(answer[at], value, `a result for key ${at}`)
      }
    },
  },
  {
    name: 'insertMany: each caller owns its results, even if calls were batched together',
    check: async (context) => {
      const calls = [0, 1, 2].map((at) => context.entry('k', `by ${at}`))
      const answers = await Promise.all(calls.map((entry) => context.store.insertMany([entry])))
      const expected = await context.value('k')
      for (const [at, [answer]] of answers.entries()) {
        if (answer) sameBytes(answer, bytesOf(expected ?? ''), `the result of call ${at}, which is the stored value`)
        answer?.fill(0)
        calls[at].value.fill(0)
      }
      same(await context.value('k'), expected, 'the stored value after callers overwrote their buffers')
    },
  },
  {
    name: "insertMany: ignores later changes to the caller's buffers",
    check: async (context) => {
      const { key, value } = context.entry('k', 'kept')
      await context.store.insertMany([{ key, value }])
      key.fill(0x7a)
      value.fill(0x7a)
      same(await context.value('k'), 'kept', 'the stored value after the caller overwrote its buffers')
      same(await context.suffixes(), ['k'], 'the stored keys')
    },
  },
  {
    name: 'insertMany: accepts keys and values at their limits and rejects one byte more',
    check: async (context) => {
      const { keyBytesMax, valueBytesMax } = context.store.limits
      const value = Buffer.alloc(valueBytesMax, 0xa5)
      await context.store.insertMany([{ key: context.longKey(keyBytesMax), value }])
      sameBytes((await context.store.getMany([context.longKey(keyBytesMax)]))[0], value, 'the largest value')
      const tooMuch = [
        { key: context.longKey(keyBytesMax + 1), value },
        { key: context.key('k'), value: Buffer.alloc(valueBytesMax + 1) },
        { key: new Uint8Array(0), value },
      ]
      for (const entry of tooMuch)
        await rejects('RangeError', () => context.store.insertMany([context.entry('before'), entry]))
      same(await context.value('before'), undefined, 'an entry of a refused call')
    },
  },
  {
    name: 'insertMany: an abort rejects with its reason, and inserts nothing if it came first',
    check: async (context) => {
      await rejectsWithReason((signal) => context.store.insertMany([context.entry('k')], { signal }))
      same(await context.value('k'), undefined, 'an entry of an aborted call')
    },
  },
  {
    name: 'insertMany: an abort midway leaves entries whole or absent, and the call can be repeated',
    check: async (context) => {
      const entries = context.entries(6_000)
      const controller = new AbortController()
      const inserting = context.store.insertMany(entries, { signal: controller.signal })
      setImmediate(() => controller.abort(new Error('gone')))
      await inserting.catch((error: unknown) => same(error, controller.signal.reason, 'the error'))
      const found = await context.store.insertMany(entries)
      for (const [at, value] of found.entries()) if (value) sameBytes(value, entries[at].value, `entry ${at}`)
      same((await context.suffixes()).length, 6_000, 'the number of stored entries')
    },
  },
]
