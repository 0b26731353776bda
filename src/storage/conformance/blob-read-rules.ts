import assert from 'node:assert/strict'
import { BLOB_READ_BYTES_MAX } from '../backend.ts'
import { type BlobContext, contentOf, noise, sameContent } from './blob-context.ts'
import { batchesOf, isNamed, rejects, rejectsWithReason, type Rule, same, sameBytes, within } from './case.ts'

export const BLOB_READ_RULES: readonly Rule<BlobContext>[] = [
  {
    name: 'read: returns exactly the bytes from start to end, at every boundary',
    check: async (context) => {
      const bytes = noise(1_300_000)
      await context.put('blob', bytes)
      const edges = [
        0, 1, 65_535, 262_143, 262_144, 262_145, 524_288, 1_048_575, 1_048_576, 1_048_577, 1_299_999, 1_300_000,
      ]
      for (const start of edges) {
        for (const end of edges.filter((edge) => edge >= start)) {
          const read = await context.store.read(context.name('blob'), start, end)
          sameContent(read, bytes.subarray(start, end), `read from ${start} to ${end}`)
        }
      }
    },
  },
  {
    name: 'read: returns the same bytes when memory for them is offered, and leaves the memory around it alone',
    check: async (context) => {
      const bytes = noise(400_000)
      await context.put('blob', bytes)
      for (const [start, end] of [
        [0, 400_000],
        [150_000, 350_000],
        [10, 1_010],
      ]) {
        const memory = new Uint8Array(end - start + 20)
        const into = memory.subarray(10, -10)
        const read = await context.store.read(context.name('blob'), start, end, { into })
        sameContent(read, bytes.subarray(start, end), `read from ${start} to ${end}`)
        sameContent(memory.subarray(0, 10), new Uint8Array(10), 'the memory before it')
        sameContent(memory.subarray(-10), new Uint8Array(10), 'the memory behind it')
      }
    },
  },
  {
    name: 'read: rejects a range outside the blob and never returns fewer bytes',
    check: async (context) => {
      await context.put('blob', noise(1_000))
      for (const [start, end, expected] of [
        [0, 1_001, 'BlobRangeError'],
        [999, 1_001, 'BlobRangeError'],
        [1_000, 1_001, 'BlobRangeError'],
        [1_001, 1_001, 'BlobRangeError'],
        [-1, 5, 'RangeError'],
        [5, 4, 'RangeError'],
        [0.5, 2, 'RangeError'],
        [0, Number.NaN, 'RangeError'],
      ] as const) {
        await rejects(
          expected,
          () => context.store.read(context.name('blob'), start, end),
          `of 1,000 bytes from ${start} to ${end}`,
        )
      }
    },
  },
  {
    name: 'read: rejects an absent blob with blob_not_found, even for zero bytes',
    check: async (context) => {
      await context.put('there/below', noise(5))
      for (const rest of ['missing', 'there', 'there/below/deeper', 'missing/below']) {
        await rejects('BlobNotFoundError', () => context.store.read(context.name(rest), 0, 0))
        await rejects('BlobNotFoundError', () => context.store.read(context.name(rest), 0, 10))
      }
    },
  },
  {
    name: 'read: returns the largest read in one buffer and rejects one byte more',
    check: async (context) => {
      const bytes = noise(BLOB_READ_BYTES_MAX + 10)
      await context.put('large', bytes)
      const read = await context.store.read(context.name('large'), 5, BLOB_READ_BYTES_MAX + 5)
      sameContent(read, bytes.subarray(5, BLOB_READ_BYTES_MAX + 5), 'the largest read')
      await rejects('RangeError', () => context.store.read(context.name('large'), 5, BLOB_READ_BYTES_MAX + 6))
      assert.ok(context.store.readBytesPreferred > 0 && context.store.readBytesPreferred <= BLOB_READ_BYTES_MAX)
    },
  },
  {
    name: 'read: the caller owns the returned buffer',
    check: async (context) => {
      const bytes = noise(1_000)
      await context.put('blob', bytes)
      const first = await context.store.read(context.name('blob'), 0, 1_000)
      const second = await context.store.read(context.name('blob'), 0, 1_000)
      first.fill(0)
      sameBytes(second, bytes, 'the result of another read')
      sameBytes(await context.store.read(context.name('blob'), 0, 1_000), bytes, 'the result of a later read')
    },
  },
  {
    name: 'read: serves many concurrent reads of many blobs',
    check: async (context) => {
      const blobs = Array.from({ length: 100 }, () => noise(3_000))
      await Promise.all(blobs.map((bytes, at) => context.put(`r/${at}`, bytes)))
      const order = Array.from({ length: 400 }, (_, at) => (at * 37) % 100)
      await Promise.all(
        order.map(async (at) =>
          sameBytes(await context.store.read(context.name(`r/${at}`), at, 3_000), blobs[at].subarray(at), `blob ${at}`),
        ),
      )
    },
  },
  {
    name: 'read: an abort rejects with its reason',
    check: async (context) => {
      await context.put('blob', noise(10))
      await rejectsWithReason((signal) => context.store.read(context.name('blob'), 0, 10, { signal }))
    },
  },
]

export const BLOB_REMOVE_RULES: readonly Rule<BlobContext>[] = [
  {
    name: 'remove: hides the blob from reads and lists, ignores absent names and keeps other blobs',
    check: async (context) => {
      for (const rest of ['a', 'b', 'c/d', 'c/e']) await context.put(rest, noise(300_000))
      await context.store.read(context.name('a'), 0, 10)
      await context.store.remove(['a', 'missing', 'c/d', 'no/such/folder', 'a'].map((rest) => context.name(rest)))
      await rejects('BlobNotFoundError', () => context.store.read(context.name('a'), 0, 10))
      await rejects('BlobNotFoundError', () => context.store.read(context.name('c/d'), 0, 10))
      same(await context.names(), ['b', 'c/e'], 'the names')
      await context.store.remove([])
      await context.store.remove([context.name('a')])
    },
  },
  {
    name: 'remove: frees the name for a new blob, which contains nothing of the old one',
    check: async (context) => {
      await context.put('again', noise(700_000))
      await context.store.read(context.name('again'), 0, 10)
      await context.store.remove([context.name('again')])
      const bytes = noise(400_000)
      await context.put('again', bytes)
      sameBytes(await context.store.read(context.name('again'), 0, 400_000), bytes, 'the new blob')
      await rejects('BlobRangeError', () => context.store.read(context.name('again'), 0, 400_001))
    },
  },
  {
    name: 'remove: removes many blobs concurrently while they are read',
    check: async (context) => {
      const names = Array.from({ length: 50 }, (_, at) => `m/${at}`)
      for (const rest of names) await context.put(rest, noise(1_000))
      const reads = names.map((rest) =>
        context.store.read(context.name(rest), 0, 1_000).then(
          (bytes) => same(bytes.length, 1_000, 'the number of bytes read'),
          (error: unknown) => isNamed('BlobNotFoundError', error),
        ),
      )
      await Promise.all([...reads, context.store.remove(names.map((rest) => context.name(rest)))])
      same(await context.names('m'), [], 'the names')
    },
  },
]

export const BLOB_LIST_RULES: readonly Rule<BlobContext>[] = [
  {
    name: 'list: returns the names that start with the prefix, with size and time',
    check: async (context) => {
      const before = Date.now()
      await context.put('a/one', noise(11))
      await context.put('a/two', noise(0))
      await context.put('a-b', noise(22))
      await context.put('b/one', noise(33))
      const one = (await context.list('a/o'))[0]
      same(one?.name, context.name('a/one'), 'the name')
      same(one.sizeBytes, 11, 'sizeBytes')
      assert.ok(Math.abs(one.modifiedAtMs - before) < 60_000, `modifiedAtMs is ${one.modifiedAtMs} at ${before}`)
      same(await context.names('a'), ['a-b', 'a/one', 'a/two'], 'the names that start with a')
      same(await context.names('a/'), ['a/one', 'a/two'], 'the names that start with a/')
      same(await context.names('a/t'), ['a/two'], 'the names that start with a/t')
      same(await context.names('a/one/'), [], 'the names that start with a/one/')
      same(await context.names('c'), [], 'the names that start with c')
      same((await context.list('')).length, 4, 'the number of names')
      const everything = await batchesOf(context.store.list(''))
      const own = everything.filter(({ name }) => name.startsWith(context.name('')))
      same(own.length, 4, 'the number of names of this case in the whole list')
    },
  },
  {
    name: 'list: returns more than a thousand blobs, each exactly once across all pages',
    check: async (context) => {
      // A page may end at a name that begins the next one.
      const names = Array.from({ length: 1_100 }, (_, at) => `page/${Math.floor(at / 3)}${'-'.repeat(at % 3)}`)
      for (let from = 0; from < names.length; from += 100)
        await Promise.all(names.slice(from, from + 100).map((rest) => context.put(rest, noise(1))))
      const seen = new Set<string>()
      for await (const batch of context.store.list(context.name('page/'))) {
        for (const { name } of batch) {
          assert.ok(!seen.has(name), `the list gave ${name} twice; it must give each blob exactly once`)
          seen.add(name)
        }
      }
      const missing = names.filter((rest) => !seen.has(context.name(rest)))
      assert.equal(missing.length, 0, `the list left out ${missing.length} of 1,100 blobs, such as ${missing[0]}`)
    },
  },
  {
    name: 'list: returns a stable blob exactly once while others come and go',
    check: async (context) => {
      const kept = Array.from({ length: 150 }, (_, at) => `k/${at}-kept`)
      await Promise.all(kept.map((rest) => context.put(rest, noise(1))))
      const seen: string[] = []
      let round = 0
      for await (const batch of context.store.list(context.name('k'))) {
        assert.ok(batch.length > 0, 'a batch is never empty')
        seen.push(...batch.map(({ name }) => name))
        await context.put(`k/${round++}-other`, noise(1))
        await context.store.remove([context.name(`k/${round - 2}-other`)].filter(() => round > 1))
      }
      for (const rest of kept) {
        const times = seen.filter((name) => name === context.name(rest)).length
        assert.ok(
          times === 1,
          `the list gave ${context.name(rest)} ${times} times; it must give each blob exactly once`,
        )
      }
    },
  },
  {
    name: 'list: stops on an early return, on an abort, and for a prefix that no name can have',
    check: async (context) => {
      await context.put('a', noise(1))
      for await (const batch of context.store.list(context.name(''))) if (batch.length > 0) break
      const reason = new Error('the caller went away')
      await assert.rejects(
        batchesOf(context.store.list(context.name(''), { signal: AbortSignal.abort(reason) })),
        (error) => error === reason,
      )
      for (const prefix of ['../', '/', 'a//', 'A', 'a\0', '..'])
        await rejects('RangeError', () => batchesOf(context.store.list(prefix)))
    },
  },
]

export const BLOB_CLOSING_RULES: readonly Rule<BlobContext>[] = [
  {
    name: 'close: waits for calls in flight, may be repeated, and rejects later calls',
    check: async (context) => {
      const { store } = context
      await context.put('a', noise(100))
      const calls = [store.put(context.name('b'), contentOf(noise(1_000_000))), store.read(context.name('a'), 0, 100)]
      await within(30_000, 'close', Promise.all([store.close(), store.close()]))
      await Promise.all(calls)
      await rejects('StorageClosedError', () => store.read(context.name('a'), 0, 1))
      await rejects('StorageClosedError', () => store.put(context.name('c'), contentOf(noise(1))))
      await rejects('StorageClosedError', () => store.remove([context.name('a')]))
      await rejects('StorageClosedError', () => batchesOf(store.list('')))
    },
  },
]

/** For stores that keep their contents when they are closed. */
export const BLOB_REOPENING_RULES: readonly Rule<BlobContext>[] = [
  {
    name: 'reopen: keeps whole blobs, without removed and failed ones',
    isForPersistent: true,
    check: async (context) => {
      const bytes = noise(1_500_000)
      await context.put('kept', bytes)
      await context.put('removed', noise(1_500_000))
      await context.store.remove([context.name('removed')])
      const failing = async function* (): AsyncGenerator<Uint8Array> {
        yield noise(1_500_000)
        throw new Error('the producer failed')
      }
      await assert.rejects(context.store.put(context.name('failed'), failing()))
      await context.reopen()
      same(await context.names(), ['kept'], 'the names after reopening')
      sameBytes(await context.store.read(context.name('kept'), 0, 1_500_000), bytes, 'the blob')
    },
  },
]
