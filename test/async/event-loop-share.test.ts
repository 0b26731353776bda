import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { EventLoopShare } from '../../src/async/event-loop-share.ts'
import type { ObjectStore, StoredObject } from '../../src/index.ts'
import { idList, openService } from '../http/served.ts'

const PIECE_MS = 1
const CHUNK = new Uint8Array(10)
/** A share of 4 ms holds so many pieces of 1 ms, and the one in which it is used up. */
const PIECES_IN_TURN_MAX = 6

/** Counts the pieces of work that are done between two looks at the event loop. */
class TurnWatch {
  mostInTurn = 0
  turns = 0
  #inTurn = 0
  #isOver = false

  work(): void {
    const untilMs = performance.now() + PIECE_MS
    while (performance.now() < untilMs);
    this.mostInTurn = Math.max(this.mostInTurn, ++this.#inTurn)
  }

  async watch(): Promise<void> {
    while (!this.#isOver) {
      await nextTurn()
      this.turns++
      this.#inTurn = 0
    }
  }

  end(): void {
    this.#isOver = true
  }
}

async function drained(chunks: AsyncIterable<unknown>): Promise<number> {
  let count = 0
  for await (const _ of chunks) count++
  return count
}

test('many concurrent tasks keep turns of the event loop short, and each progresses', async () => {
  const share = new EventLoopShare()
  const watch = new TurnWatch()
  async function* work(): AsyncGenerator<Uint8Array> {
    for (let n = 0; n < 5; n++) {
      watch.work()
      yield CHUNK
    }
  }
  const watching = watch.watch()
  const counts = await Promise.all(Array.from({ length: 60 }, () => drained(share.paced(work()))))
  watch.end()
  await watching
  assert.deepEqual(new Set(counts), new Set([5]))
  assert.ok(watch.mostInTurn <= PIECES_IN_TURN_MAX, `${watch.mostInTurn} pieces in one turn`)
})

test('a task that stops midway blocks no other', async () => {
  const share = new EventLoopShare()
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield CHUNK
  }
  const some = Array.from({ length: 20 }, async () => {
    let count = 0
    for await (const _ of share.paced(endless())) if (++count === 50) return count
    return undefined
  })
  assert.deepEqual(new Set(await Promise.all(some)), new Set([50]))
})

/** Each object costs a millisecond to get. */
function costlyStore(watch: TurnWatch, bytes: number): ObjectStore {
  const json = (id: string): Uint8Array => Buffer.from(JSON.stringify({ id, text: 'x'.repeat(bytes) }))
  return {
    put: () => Promise.resolve({ inserted: 0 }),
    has: (_project, ids) => Promise.resolve(ids.map(() => true)),
    async *get(_project, ids): AsyncGenerator<readonly StoredObject[]> {
      for (const id of ids) {
        watch.work()
        yield [{ id, json: json(id) }]
      }
    },
  }
}

test('responses of a service share the event loop', async (t) => {
  const watch = new TurnWatch()
  const service = openService({ store: costlyStore(watch, 150_000) })
  t.after(() => service.close({ graceMs: 0 }))
  const ids = Array.from({ length: 4 }, (_, n) => `o${n}`)
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => service.fetch(new Request('http://in.process/api/getobjects/p', idList(ids)))),
  )
  const watching = watch.watch()
  await Promise.all(answers.map((answer) => answer.arrayBuffer()))
  watch.end()
  await watching
  assert.ok(watch.mostInTurn <= 2 * PIECES_IN_TURN_MAX, `${watch.mostInTurn} pieces in one turn`)
})

const MB = 1_048_576

const OTHERS = 200

/** Takes chunks until it has so many bytes or they end; calls `took` with each. */
async function take(
  chunks: AsyncIterator<Uint8Array, undefined>,
  bytesMin: number,
  took: (bytes: number) => void = () => undefined,
): Promise<void> {
  for (let bytes = 0; bytes < bytesMin;) {
    const { value } = await chunks.next()
    if (value === undefined) return
    bytes += value.length
    took(value.length)
  }
}

async function* large(): AsyncGenerator<Uint8Array> {
  const chunk = new Uint8Array(40_960)
  for (;;) yield chunk
}

/** Time stands still, so that nobody pauses. */
function timeless(): EventLoopShare {
  return new EventLoopShare({ ...REAL_ENVIRONMENT, monotonicMs: () => 0 })
}

test('a client that reads on comes before hundreds that may have stopped, and these progress too', async () => {
  const share = timeless()
  const reading = share.paced(large())
  await take(reading, 9 * MB)
  let othersBytes = 0
  const others = Array.from({ length: OTHERS }, () => share.paced(large()))
  const taking = others.map(async (chunks) => await take(chunks, MB, (bytes) => (othersBytes += bytes)))
  await take(reading, 32 * MB)
  assert.ok(othersBytes >= 2 * MB && othersBytes <= 8 * MB, `${othersBytes} bytes beside 32 MB`)
  await Promise.all(taking)
  await Promise.all([reading, ...others].map(async (chunks) => await chunks.return?.()))
})

test('a client that comes last proves that it reads on before hundreds of others do', async () => {
  const share = timeless()
  let othersBytes = 0
  const others = Array.from({ length: OTHERS }, () => share.paced(large()))
  const taking = others.map(async (chunks) => await take(chunks, MB, (bytes) => (othersBytes += bytes)))
  const newest = share.paced(large())
  await take(newest, 8 * MB)
  assert.ok(othersBytes < 16 * MB, `${othersBytes} bytes beside 8 MB`)
  await Promise.all(taking)
  await Promise.all([newest, ...others].map(async (chunks) => await chunks.return?.()))
})

/** As files are read: each chunk comes in a later turn than it was asked for. */
async function* read(chunkBytes: number): AsyncGenerator<Uint8Array> {
  const chunk = new Uint8Array(chunkBytes)
  for (;;) {
    await nextTurn()
    yield chunk
  }
}

/** Hundreds of clients that take small chunks and begin now; `bytes` counts them. */
function beginOthers(t: TestContext, share: EventLoopShare): { bytes: number } {
  const counted = { bytes: 0 }
  const others = Array.from({ length: OTHERS }, () => share.paced(read(40_960)))
  for (const chunks of others) void take(chunks, Infinity, (bytes) => (counted.bytes += bytes))
  t.after(async () => await Promise.all(others.map(async (chunks) => await chunks.return?.())))
  return counted
}

test('a client that reads on finds short turns among hundreds of others', async (t) => {
  const share = timeless()
  const reading = share.paced(read(MB))
  await take(reading, 9 * MB)
  const others = beginOthers(t, share)
  await take(reading, 32 * MB)
  assert.ok(others.bytes > 0 && others.bytes < 12 * MB, `${others.bytes} bytes beside 32 MB`)
})

test('a client that comes last finds short turns before it has proved that it reads on', async (t) => {
  const share = timeless()
  const others = beginOthers(t, share)
  await take(share.paced(read(40_960)), 8 * MB)
  assert.ok(others.bytes < 24 * MB, `${others.bytes} bytes beside 8 MB`)
})

test('among few clients each has its turn, however much it has read', async () => {
  const share = timeless()
  const reading = share.paced(large())
  await take(reading, 9 * MB)
  let othersBytes = 0
  const others = Array.from({ length: 10 }, () => share.paced(large()))
  const taking = others.map(async (chunks) => await take(chunks, MB, (bytes) => (othersBytes += bytes)))
  await take(reading, MB)
  assert.ok(othersBytes > 8 * MB, `${othersBytes} bytes beside 1 MB`)
  await Promise.all(taking)
  await Promise.all([reading, ...others].map(async (chunks) => await chunks.return?.()))
})
