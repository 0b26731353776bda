import assert from 'node:assert/strict'
import { batchesOf, rejects, type Rule, same, sameBytes } from './case.ts'
import type { RecordContext } from './record-context.ts'

const FOUR = ['a', 'b', 'c', 'd']

async function insertFour(context: RecordContext): Promise<void> {
  await context.store.insertMany(['c', 'a', 'd', 'b'].map((suffix) => context.entry(suffix)))
}

export const RECORD_RANGE_RULES: readonly Rule<RecordContext>[] = [
  {
    name: 'range: returns entries with their values in key order',
    check: async (context) => {
      await insertFour(context)
      const entries = await batchesOf(context.store.range(context.all))
      same(entries.length, 4, 'the number of entries')
      for (const [at, { key, value }] of entries.entries()) {
        sameBytes(key, context.key(FOUR[at]), `key ${at}`)
        sameBytes(value, context.entry(FOUR[at]).value, `value ${at}`)
      }
    },
  },
  {
    name: 'range: sorts bytewise, including 0x00 and 0xff, and puts a key before those that it prefixes',
    check: async (context) => {
      const ordered = [
        [],
        [0],
        [0, 0],
        [0, 1],
        [0, 0xff],
        [1],
        [0x61],
        [0x61, 0],
        [0x61, 0x61],
        [0x7f],
        [0x80],
        [0xc3, 0xa9],
        [0xfe],
        [0xff],
        [0xff, 0],
        [0xff, 0xff],
      ]
      const shuffled = ordered.toSorted(
        (a, b) => ((a.length * 7 + (a[0] ?? 3)) % 5) - ((b.length * 7 + (b[0] ?? 3)) % 5),
      )
      await context.store.insertMany(
        shuffled.map((suffix) => ({ key: context.key(suffix), value: Uint8Array.from(suffix) })),
      )
      const expected = ordered.map((suffix) => Buffer.from(suffix).toString('latin1'))
      same(await context.suffixes(), expected, 'the keys')
      same(await context.suffixes({ reverse: true }), expected.toReversed(), 'the keys in reverse')
    },
  },
  {
    name: 'range: includes gte, excludes lt, and neither has to exist',
    check: async (context) => {
      await insertFour(context)
      const keys = (gte: string, lt: string, reverse = false): Promise<string[]> =>
        context.suffixes({ gte: context.key(gte), lt: context.key(lt), reverse })
      same(await keys('b', 'd'), ['b', 'c'], 'the keys from b to d')
      same(await keys('aa', 'cc'), ['b', 'c'], 'the keys from aa to cc')
      same(await keys('b', 'd', true), ['c', 'b'], 'the keys from b to d in reverse')
      same(await keys('b', 'b\0'), ['b'], 'the keys from b to the next possible key')
    },
  },
  {
    name: 'range: returns no batch if the bounds exclude everything',
    check: async (context) => {
      await insertFour(context)
      for (const [gte, lt] of [
        ['b', 'b'],
        ['c', 'b'],
        ['x', 'y'],
      ]) {
        for (const reverse of [false, true]) {
          for await (const batch of context.store.range({ gte: context.key(gte), lt: context.key(lt), reverse }))
            assert.fail(`${batch.length} entries between ${gte} and ${lt}`)
        }
      }
      same(
        await batchesOf(context.store.range({ gte: new Uint8Array(0), lt: new Uint8Array(0) })),
        [],
        'an empty range',
      )
    },
  },
  {
    name: 'range: an empty gte means the first key',
    check: async (context) => {
      await insertFour(context)
      const [first] = await batchesOf(
        context.store.range({ gte: new Uint8Array(0), lt: context.key('b'), reverse: true, limit: 1 }),
      )
      sameBytes(first?.key, context.key('a'), 'the last key before b')
      const [lowest] = await batchesOf(context.store.range({ gte: new Uint8Array(0), lt: context.key('b'), limit: 1 }))
      assert.ok(
        lowest && Buffer.compare(lowest.key, context.key('a')) <= 0,
        'a range from an empty gte starts at the first key',
      )
    },
  },
  {
    name: 'range: limit counts entries, from the end if reverse',
    check: async (context) => {
      await insertFour(context)
      same(await context.suffixes({ limit: 3 }), ['a', 'b', 'c'], 'the keys with a limit of 3')
      same(await context.suffixes({ limit: 3, reverse: true }), ['d', 'c', 'b'], 'the keys in reverse')
      same(await context.suffixes({ limit: 4 }), FOUR, 'the keys with a limit of 4')
      same(await context.suffixes({ limit: 100 }), FOUR, 'the keys with a limit of 100')
      same(await context.suffixes({ limit: 0 }), [], 'the keys with a limit of 0')
      await rejects('RangeError', () => context.suffixes({ limit: -1 }))
      await rejects('RangeError', () => context.suffixes({ limit: 1.5 }))
    },
  },
  {
    name: 'range: returns thousands of entries, each once, in batches of bounded size',
    check: async (context) => {
      const entries = context.entries(5_000)
      await context.store.insertMany(entries)
      for (const reverse of [false, true]) {
        const sizes: number[] = []
        let seen = 0
        for await (const batch of context.store.range({ ...context.all, reverse })) {
          sizes.push(batch.length)
          for (const { key } of batch) sameBytes(key, entries[reverse ? 4_999 - seen++ : seen++].key, `entry ${seen}`)
        }
        same(seen, 5_000, 'the number of entries')
        assert.ok(!sizes.includes(0), 'a batch is never empty')
        assert.ok(
          sizes.length <= 500,
          `5,000 small entries came in ${sizes.length} batches; entries must not come one by one`,
        )
      }
    },
  },
  {
    name: 'range: returns a stable entry exactly once while others come and go',
    check: async (context) => {
      const kept = context.entries(3_000).filter((_, at) => at % 2 === 0)
      const others = context.entries(3_000).filter((_, at) => at % 2 === 1)
      await context.store.insertMany([...kept, ...others.slice(0, 750)])
      const seen = new Map<string, number>()
      let rounds = 0
      for await (const batch of context.store.range(context.all)) {
        for (const { key } of batch)
          seen.set(Buffer.from(key).toString(), (seen.get(Buffer.from(key).toString()) ?? 0) + 1)
        const from = (rounds++ * 20) % 700
        await context.store.commit({ remove: others.slice(from, from + 20).map((entry) => entry.key) })
        await context.store.insertMany(others.slice(750 + from, 770 + from))
      }
      for (const { key } of kept)
        same(seen.get(Buffer.from(key).toString()) ?? 0, 1, 'how often the range gave an entry that stayed')
      assert.ok(
        [...seen.values()].every((times) => times === 1),
        'no entry is seen twice',
      )
    },
  },
  {
    name: 'range: an early return or a throw of the consumer ends it',
    check: async (context) => {
      await context.store.insertMany(context.entries(3_000))
      for (let round = 0; round < 50; round++) {
        for await (const batch of context.store.range(context.all)) if (batch.length > 0) break
      }
      await assert.rejects(async () => {
        for await (const batch of context.store.range(context.all)) throw new Error(`thrown after ${batch.length}`)
      }, /thrown after/)
      same((await context.suffixes()).length, 3_000, 'the number of entries')
    },
  },
  {
    name: 'range: an abort rejects with its reason, before the first batch and between batches',
    check: async (context) => {
      await context.store.insertMany(context.entries(5_000))
      const reason = new Error('the caller went away')
      await assert.rejects(
        batchesOf(context.store.range(context.all, { signal: AbortSignal.abort(reason) })),
        (error) => error === reason,
      )
      const controller = new AbortController()
      let batches = 0
      await assert.rejects(
        async () => {
          for await (const batch of context.store.range(context.all, { signal: controller.signal })) {
            batches += Math.sign(batch.length)
            controller.abort(reason)
          }
        },
        (error) => error === reason,
      )
      same(batches, 1, 'the number of batches until the abort')
    },
  },
  {
    name: 'range: the caller owns the returned buffers',
    check: async (context) => {
      await insertFour(context)
      for (const { key, value } of await batchesOf(context.store.range(context.all))) {
        key.fill(0)
        value.fill(0)
      }
      same(await context.suffixes(), FOUR, 'the keys after the caller overwrote its buffers')
      same(await context.value('b'), 'value of b', 'the stored value')
    },
  },
]
