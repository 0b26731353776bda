import type { RecordStore } from '../backend.ts'
import { batchesOf, type Rule, same, sameBytes } from './case.ts'
import { bytesOf, type RecordContext } from './record-context.ts'

const ROUNDS = 20
const OPPOSITE_COMMITS = 150

async function increment(store: RecordStore, key: Uint8Array): Promise<void> {
  for (;;) {
    const [held] = await store.getMany([key])
    const value = bytesOf(String(Number(held ? Buffer.from(held).toString() : 0) + 1))
    if ((await store.commit({ put: [{ key, value }], expect: [{ key, value: held }] })).ok) return
  }
}

/** What must hold for two stores over one place, as two servers have them. */
export const RECORD_SHARING_RULES: readonly Rule<RecordContext>[] = [
  {
    name: 'two stores: lose no increment of concurrent counters',
    needs: 'openTwo',
    check: async (context) => {
      const { store, other } = context
      const hands = Array.from({ length: 12 }, async (_, hand) => {
        for (let round = 0; round < 5; round++)
          await increment(hand % 2 === 0 ? store : other, context.key(`counter ${(hand + round) % 3}`))
      })
      await Promise.all(hands)
      const counts = await Promise.all([0, 1, 2].map(async (at) => Number(await context.value(`counter ${at}`))))
      same(counts, [20, 20, 20], 'the counters')
    },
  },
  {
    name: 'two stores: of two commits that exclude each other, at most one succeeds (no write skew)',
    needs: 'openTwo',
    check: async (context) => {
      for (let round = 0; round < ROUNDS; round++) {
        const [left, right] = [`left ${round}`, `right ${round}`]
        const results = await Promise.all([
          context.store.commit({ put: [context.entry(left)], expect: [{ key: context.key(right), value: undefined }] }),
          context.other.commit({ put: [context.entry(right)], expect: [{ key: context.key(left), value: undefined }] }),
        ])
        same(results.filter((result) => result.ok).length, 1, 'the number of successful commits')
      }
    },
  },
  {
    name: 'two stores: commits that name the same keys in opposite orders all end',
    needs: 'openTwo',
    check: async (context) => {
      const entries = context.entries(25)
      const commits = Array.from({ length: OPPOSITE_COMMITS }, (_, at) =>
        at % 2 === 0 ? context.store.commit({ put: entries }) : context.other.commit({ put: entries.toReversed() }),
      )
      for (const result of await Promise.all(commits)) same(result, { ok: true }, 'the result')
    },
  },
  {
    name: 'two stores: one insert of a key wins, and the other store returns its value',
    needs: 'openTwo',
    check: async (context) => {
      for (let round = 0; round < ROUNDS; round++) {
        const suffix = `k ${round}`
        const [[first], [second]] = await Promise.all([
          context.store.insertMany([context.entry(suffix, 'first')]),
          context.other.insertMany([context.entry(suffix, 'second')]),
        ])
        const winner = first === undefined ? 'first' : 'second'
        sameBytes(first ?? second, bytesOf(winner), 'the earlier value that the loser returns')
        same(await context.value(suffix), winner, 'the stored value')
      }
    },
  },
  {
    name: 'two stores: a commit is serializable against an insert of the same key',
    needs: 'openTwo',
    check: async (context) => {
      for (let round = 0; round < ROUNDS; round++) {
        const suffix = `k ${round}`
        const expect = [{ key: context.key(suffix), value: undefined }]
        const [committed, [found]] = await Promise.all([
          context.store.commit({ put: [context.entry(suffix, 'committed')], expect }),
          context.other.insertMany([context.entry(suffix, 'inserted')]),
        ])
        same(committed.ok, found !== undefined, 'ok of the commit, which is true if the insert found a value')
        same(await context.value(suffix), committed.ok ? 'committed' : 'inserted', 'the stored value')
      }
    },
  },
  {
    name: 'two stores: each reads at once what the other has acknowledged',
    needs: 'openTwo',
    check: async (context) => {
      const stores = [context.store, context.other]
      for (let round = 0; round < ROUNDS; round++) {
        const [writer, reader] = round % 2 === 0 ? stores : stores.toReversed()
        const [inserted, committed] = [context.entry(`i ${round}`), context.entry('c', String(round))]
        await writer.insertMany([inserted])
        await writer.commit({ put: [committed] })
        const [first, second] = await reader.getMany([inserted.key, committed.key])
        sameBytes(first, inserted.value, 'the entry that the other store inserted')
        sameBytes(second, committed.value, 'the entry that the other store committed')
        const listed = await batchesOf(reader.range(context.all))
        same(listed.length, round + 2, 'the number of entries in a range of the other store')
        await writer.commit({ remove: [committed.key] })
        sameBytes((await reader.getMany([committed.key]))[0], undefined, 'the entry that the other store removed')
      }
    },
  },
]
