import { type BlobContext, contentOf, noise, sameContent } from './blob-context.ts'
import { batchesOf, rejects, type Rule, same } from './case.ts'
import { cutAtEach, untilItWorks } from './record-fault-rules.ts'

const RACES = 10
const MANY = 1_050
const PUTS_AT_ONCE = 32
const LARGE_BYTES = 300_000

/** What must hold for two stores over one place, as two servers have them. */
export const BLOB_SHARING_RULES: readonly Rule<BlobContext>[] = [
  {
    name: 'two stores: of two puts of one name one wins, and both stores read its content',
    needs: 'openTwo',
    check: async (context) => {
      const stores = [context.store, context.other]
      for (let race = 0; race < RACES; race++) {
        const name = context.name(`race-${race}`)
        const contents = [noise(LARGE_BYTES), noise(LARGE_BYTES)]
        const puts = await Promise.allSettled(stores.map((store, at) => store.put(name, contentOf(contents[at]))))
        same(puts.filter(({ status }) => status === 'fulfilled').length, 1, 'the number of puts that resolved')
        const winner = contents[puts.findIndex(({ status }) => status === 'fulfilled')]
        for (const store of stores) sameContent(await store.read(name, 0, LARGE_BYTES), winner, 'the blob')
      }
    },
  },
  {
    name: 'two stores: each reads and lists at once what the other has put, and misses what it removed',
    needs: 'openTwo',
    check: async (context) => {
      const [name, bytes] = [context.name('shared/blob'), noise(1_000)]
      await context.store.put(name, contentOf(bytes))
      sameContent(await context.other.read(name, 0, bytes.length), bytes, 'the blob of the other store')
      const listed = await batchesOf(context.other.list(context.name('shared')))
      same(
        listed.map((info) => info.name),
        [name],
        'the names that the other store lists',
      )
      await context.store.remove([name])
      await rejects('BlobNotFoundError', () => context.other.read(name, 0, 1))
      same(await context.names('shared'), [], 'the names after the removal')
    },
  },
]

export const BLOB_FAULT_RULES: readonly Rule<BlobContext>[] = [
  {
    name: `list: finds each of ${MANY} blobs exactly once`,
    needs: 'thorough',
    check: async (context) => {
      const names = Array.from({ length: MANY }, (_, at) => `many/${String(at).padStart(5, '0')}`)
      for (let from = 0; from < MANY; from += PUTS_AT_ONCE)
        await Promise.all(names.slice(from, from + PUTS_AT_ONCE).map((name) => context.put(name, Buffer.from(name))))
      same(await context.names('many/'), names, 'the names')
      await context.store.remove(names.map((name) => context.name(name)))
      same(await context.names('many/'), [], 'the names after the removal')
    },
  },
  {
    name: 'a lost connection: a blob is whole or absent, and the store goes on',
    needs: 'cutAt',
    check: async (context) => {
      const bytes = noise(LARGE_BYTES)
      await cutAtEach(context, async (message) => {
        const name = context.name(`cut-${message}`)
        const isMade = await context.store.put(name, contentOf(bytes)).then(
          () => true,
          () => false,
        )
        const isThere = await untilItWorks(async () => (await context.names(`cut-${message}`)).length > 0)
        if (isMade) same(isThere, true, 'whether an acknowledged blob is listed')
        if (!isThere) return
        const held = await untilItWorks(() => context.store.read(name, 0, LARGE_BYTES))
        sameContent(held, bytes, `the blob after a cut at message ${message}`)
      })
    },
  },
]
