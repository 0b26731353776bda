import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'node:test'
import { EventLoopShare } from '../../src/async/event-loop-share.ts'
import type { ObjectStore, StoredObject } from '../../src/index.ts'
import { idList, openService } from '../http/served.ts'

const PIECE_MS = 1
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
  async function* work(): AsyncGenerator<number> {
    for (let n = 0; n < 5; n++) {
      watch.work()
      yield n
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
  async function* endless(): AsyncGenerator<number> {
    for (let n = 0; ; n++) yield n
  }
  const some = Array.from({ length: 20 }, async () => {
    for await (const n of share.paced(endless())) if (n === 50) return n
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
