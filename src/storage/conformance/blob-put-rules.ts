import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type BlobContext, contentOf, noise, WatchedContent } from './blob-context.ts'
import { isNamed, rejects, rejectsWithReason, type Rule, same, sameBytes, within } from './case.ts'

const SIZES = [0, 1, 65_536, 262_143, 262_144, 262_145, 1_048_575, 1_048_576, 1_048_577, 2_097_152, 3_000_000]
const CHUNK_BYTES = 65_536

/** After a put that failed: no blob, no name, and the name is free. */
async function isAbsent(context: BlobContext, rest: string): Promise<void> {
  await rejects('BlobNotFoundError', () => context.store.read(context.name(rest), 0, 0))
  same(await context.names(rest), [], 'the names after a failed put')
  await context.put(rest, noise(10))
  same(await context.names(rest), [rest], 'the names after a new put')
}

export const BLOB_PUT_RULES: readonly Rule<BlobContext>[] = [
  {
    name: 'put: stores blobs of every size byte for byte',
    check: async (context) => {
      for (const size of SIZES) {
        const bytes = noise(size)
        same(await context.store.put(context.name(`size-${size}`), contentOf(bytes)), { sizeBytes: size }, 'the result')
        sameBytes(await context.store.read(context.name(`size-${size}`), 0, size), bytes, `${size} bytes`)
      }
    },
  },
  {
    name: 'put: accepts content without chunks and ignores a wrong size hint',
    check: async (context) => {
      const empty = contentOf(new Uint8Array(0))
      same(await context.store.put(context.name('none'), empty), { sizeBytes: 0 }, 'the result without content')
      same(
        await context.store.put(context.name('hinted'), contentOf(noise(1_000)), { sizeHintBytes: 10 }),
        { sizeBytes: 1_000 },
        'the result with a wrong hint',
      )
      same(await context.names(), ['hinted', 'none'], 'the names')
    },
  },
  {
    name: 'put: copies each chunk before it asks for the next one, so a producer may reuse its buffer',
    check: async (context) => {
      const buffer = Buffer.alloc(100_000)
      const reused = async function* (): AsyncGenerator<Uint8Array> {
        for (let round = 0; round < 20; round++) yield buffer.fill(round)
      }
      await context.store.put(context.name('reused'), reused())
      const expected = Buffer.concat(Array.from({ length: 20 }, (_, round) => Buffer.alloc(100_000, round)))
      sameBytes(await context.store.read(context.name('reused'), 0, 2_000_000), expected, 'the blob')
    },
  },
  {
    name: 'put: rethrows an error of the content, early or late, and leaves no blob',
    check: async (context) => {
      for (const size of [0, 10, 3_000_000]) {
        const failure = new Error('the producer failed')
        const content = new WatchedContent(noise(size), () => Promise.reject(failure))
        await assert.rejects(context.store.put(context.name(`thrown-${size}`), content), (error) => error === failure)
        await isAbsent(context, `thrown-${size}`)
      }
    },
  },
  {
    name: 'put: an abort midway rejects with its reason, ends the content and leaves no blob',
    check: async (context) => {
      for (const size of [10, 3_000_000]) {
        const controller = new AbortController()
        const reason = new Error('the caller went away')
        const content = new WatchedContent(
          noise(size),
          () => new Promise(() => setImmediate(() => controller.abort(reason))),
        )
        const putting = context.store.put(context.name(`aborted-${size}`), content, { signal: controller.signal })
        await assert.rejects(
          within(30_000, 'a put that was aborted while its content hangs', putting),
          (error) => error === reason,
        )
        assert.ok(content.closed, 'the content must be ended by calling return() of its iterator')
        await isAbsent(context, `aborted-${size}`)
      }
    },
  },
  {
    name: 'put: rejects with the reason of a signal that is already aborted',
    check: async (context) => {
      const content = new WatchedContent(noise(10), async () => undefined)
      await rejectsWithReason((signal) => context.store.put(context.name('never'), content, { signal }))
      assert.ok(content.closed, 'the content must be ended by calling return() of its iterator')
      await isAbsent(context, 'never')
    },
  },
  {
    name: 'put: rejects an existing name, ends the content and leaves the blob unchanged',
    check: async (context) => {
      const bytes = noise(1_000)
      await context.put('taken', bytes)
      const content = new WatchedContent(noise(3_000_000), async () => undefined)
      await rejects('BlobExistsError', () => context.store.put(context.name('taken'), content))
      assert.ok(content.closed, 'the content must be ended by calling return() of its iterator')
      sameBytes(await context.store.read(context.name('taken'), 0, 1_000), bytes, 'the first blob')
    },
  },
  {
    name: 'put: exactly one of several concurrent puts of a name wins, and its bytes are complete',
    check: async (context) => {
      for (const size of [100, 1_500_000]) {
        const contents = Array.from({ length: 5 }, () => noise(size))
        const results = await Promise.allSettled(contents.map((bytes) => context.put(`race-${size}`, bytes)))
        const winners = [...results.keys()].filter((at) => results[at].status === 'fulfilled')
        same(winners.length, 1, 'the number of puts that resolved')
        for (const result of results) if (result.status === 'rejected') isNamed('BlobExistsError', result.reason)
        sameBytes(await context.store.read(context.name(`race-${size}`), 0, size), contents[winners[0]], 'the winner')
        same(await context.names(`race-${size}`), [`race-${size}`], 'the names')
      }
    },
  },
  {
    name: 'put: a blob stays invisible until it is complete',
    check: async (context) => {
      let look: () => void = () => undefined
      const looked = new Promise<void>((resolve) => (look = resolve))
      const putting = context.store.put(context.name('half'), new WatchedContent(noise(3_000_000), () => looked))
      await delay(20)
      await rejects('BlobNotFoundError', () => context.store.read(context.name('half'), 0, 10))
      same(await context.names(), [], 'the names before the put ends')
      look()
      await putting
      same(await context.names(), ['half'], 'the names after the put')
    },
  },
  {
    name: 'put: stores many blobs concurrently',
    check: async (context) => {
      const blobs = Array.from({ length: 40 }, (_, at) => noise(at * 2_000))
      await Promise.all(blobs.map((bytes, at) => context.put(`many/${at}`, bytes)))
      const read = await Promise.all(
        blobs.map((bytes, at) => context.store.read(context.name(`many/${at}`), 0, bytes.length)),
      )
      for (const [at, bytes] of read.entries()) sameBytes(bytes, blobs[at], `blob ${at}`)
    },
  },
  {
    name: 'put: rejects invalid names and ends the content',
    check: async (context) => {
      const hostile = [
        '',
        '/',
        '/a',
        'a/',
        'a//b',
        '.',
        '..',
        '../a',
        'a/../b',
        'a/./b',
        'A',
        'a.b',
        'a b',
        'a\\b',
        'a\0b',
        'c:',
        'é',
        'a\n',
        '~',
        '%2e',
        'a'.repeat(241),
      ]
      for (const name of hostile) {
        const content = new WatchedContent(noise(10), async () => undefined)
        await rejects('RangeError', () => context.store.put(name, content), JSON.stringify(name))
        assert.ok(content.closed, `the content must be ended for ${JSON.stringify(name)}`)
        await rejects('RangeError', () => context.store.read(name, 0, 0), JSON.stringify(name))
        await rejects('RangeError', () => context.store.remove([context.name('a'), name]), JSON.stringify(name))
      }
    },
  },
  {
    name: 'put: accepts the longest name, and a name that begins with another name',
    check: async (context) => {
      const longest = context.name('n'.repeat(240 - context.name('').length))
      await context.store.put(longest, contentOf(noise(5)))
      same((await context.store.read(longest, 0, 5)).length, 5, 'the number of bytes read')
      await context.put('a', noise(1))
      await context.put('a/b', noise(2))
      await context.put('a/b/c', noise(3))
      same(await context.names('a'), ['a', 'a/b', 'a/b/c'], 'the names')
      await context.store.remove([context.name('a/b')])
      same(await context.names('a'), ['a', 'a/b/c'], 'the names after a removal')
    },
  },
]

const HELD_BYTES_MAX = 24 * 1_048_576

/**
 * Node offers no other way, unless it was started with a flag. The memory of buffers that one collection found
 * dead is released by another thread at some later time; the next collection waits for it.
 */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  return () => {
    collect()
    collect()
  }
}

/** For stores on a medium of their own: streamed bytes must not pile up in memory. */
export const BLOB_MEMORY_RULES: readonly Rule<BlobContext>[] = [
  {
    name: 'put: streams a large blob in bounded memory',
    isForPersistent: true,
    check: async (context) => {
      const chunk = noise(CHUNK_BYTES)
      const chunks = 768
      const collectGarbage = garbageCollector()
      collectGarbage()
      const before = process.memoryUsage().arrayBuffers
      const held = (): number => process.memoryUsage().arrayBuffers - before
      let peak = 0
      const content = async function* (): AsyncGenerator<Uint8Array> {
        for (let at = 0; at < chunks; at++) {
          // Unreachable memory does not count, and is not always collected without a request.
          if (held() > HELD_BYTES_MAX) collectGarbage()
          peak = Math.max(peak, held())
          yield chunk
        }
      }
      same(await context.store.put(context.name('large'), content()), { sizeBytes: chunks * CHUNK_BYTES }, 'the result')
      assert.ok(peak <= HELD_BYTES_MAX, `${peak} bytes were held while ${chunks * CHUNK_BYTES} streamed through`)
      sameBytes(
        await context.store.read(context.name('large'), (chunks - 1) * CHUNK_BYTES, chunks * CHUNK_BYTES),
        chunk,
        'the last chunk',
      )
    },
  },
]
