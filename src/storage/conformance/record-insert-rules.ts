import assert from 'node:assert/strict'
import { rejects, rejectsWithReason, type Rule, sameBytes } from './case.ts'
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
      assert.equal(found.length, 3)
      assert.equal(found[0], undefined)
      sameBytes(found[1], bytesOf('old'), 'what was there')
      assert.equal(found[2], undefined)
      const held = await context.value('held')
      assert.equal(
        held,
        'old',
        `what is held afterwards: must be "old", but is ${JSON.stringify(held)}; insertMany never overwrites`,
      )
      assert.equal(await context.value('x'), 'value of x')
    },
  },
  {
    name: 'insertMany: returns an empty list for no entries',
    check: async ({ store }) => assert.deepEqual(await store.insertMany([]), []),
  },
  {
    name: 'insertMany: inserts the first of two entries with one key in a call',
    check: async (context) => {
      const found = await context.store.insertMany([
        context.entry('k', 'first'),
        context.entry('k', 'second'),
        context.entry('k', 'third'),
      ])
      assert.equal(found[0], undefined)
      sameBytes(found[1], bytesOf('first'), 'the second answer')
      sameBytes(found[2], bytesOf('first'), 'the third answer')
      const kept = await context.value('k')
      assert.equal(kept, 'first', `what is held afterwards: must be "first", but is ${JSON.stringify(kept)}`)
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
      for (const [at, entry] of entries.entries()) sameBytes(found[at], entry.value, `answer ${at}`)
      assert.equal((await context.suffixes()).length, 50)
    },
  },
  {
    name: 'insertMany: accepts any number of entries in a call, with duplicates far apart',
    check: async (context) => {
      const entries = context.entries(6_000)
      const found = await context.store.insertMany([...entries, ...entries.slice(0, 10)])
      assert.equal(found.length, 6_010)
      assert.equal(
        found.findIndex((value) => value !== undefined),
        6_000,
      )
      sameBytes(found[6_005], entries[5].value, 'the answer to a duplicate')
      assert.equal((await context.suffixes()).length, 6_000)
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
      assert.equal(winners.length, 1)
      for (const [at, answer] of answers.entries()) {
        assert.equal(answer[0], undefined)
        if (at !== winners[0]) sameBytes(answer[1], bytesOf(`by ${winners[0]}`), `what call ${at} learned`)
      }
      assert.equal(await context.value('shared'), `by ${winners[0]}`)
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
        assert.deepEqual(putters, [value?.[0]])
        for (const answer of answers) if (answer[at]) sameBytes(answer[at], value, `an answer for key ${at}`)
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
        if (answer) assert.equal(Buffer.from(answer).toString(), expected)
        answer?.fill(0)
        calls[at].value.fill(0)
      }
      assert.equal(await context.value('k'), expected)
    },
  },
  {
    name: "insertMany: ignores later changes to the caller's buffers",
    check: async (context) => {
      const { key, value } = context.entry('k', 'kept')
      await context.store.insertMany([{ key, value }])
      key.fill(0x7a)
      value.fill(0x7a)
      assert.equal(await context.value('k'), 'kept')
      assert.deepEqual(await context.suffixes(), ['k'])
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
      assert.equal(await context.value('before'), undefined)
    },
  },
  {
    name: 'insertMany: an abort rejects with its reason, and inserts nothing if it came first',
    check: async (context) => {
      await rejectsWithReason((signal) => context.store.insertMany([context.entry('k')], { signal }))
      assert.equal(await context.value('k'), undefined)
    },
  },
  {
    name: 'insertMany: an abort midway leaves entries whole or absent, and the call can be repeated',
    check: async (context) => {
      const entries = context.entries(6_000)
      const controller = new AbortController()
      const inserting = context.store.insertMany(entries, { signal: controller.signal })
      setImmediate(() => controller.abort(new Error('gone')))
      await inserting.catch((error: unknown) => assert.equal(error, controller.signal.reason))
      const found = await context.store.insertMany(entries)
      for (const [at, value] of found.entries()) if (value) sameBytes(value, entries[at].value, `entry ${at}`)
      assert.equal((await context.suffixes()).length, 6_000)
    },
  },
]
