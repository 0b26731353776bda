import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { batchesOf, type Rule, same } from './case.ts'
import { bytesOf, type RecordContext } from './record-context.ts'

/** More messages than any of these calls needs. */
const MESSAGES_MAX = 500
const LARGE_VALUES = 320
const BATCH_BYTES_MAX = 16 * 1_048_576
const RETRY_MS = 100
const RESTARTS = 2

type Outcome = 'made' | 'rejected'

async function outcomeOf(call: Promise<unknown>): Promise<Outcome> {
  return call.then(
    () => 'made',
    () => 'rejected',
  )
}

/** Until the store works again: the connection of a call may have been cut before it was noticed. */
export async function untilItWorks<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch {
      // The time limit of the case ends this.
      await delay(RETRY_MS)
    }
  }
}

/** Runs `round` with the connection cut at the first message, at the second, and so on, until it needs fewer. */
export async function cutAtEach(
  { faults }: Pick<RecordContext, 'faults'>,
  round: (message: number) => Promise<void>,
): Promise<void> {
  for (let message = 1; message <= MESSAGES_MAX; message++) {
    const cut = faults.cutAt?.(message)
    await round(message)
    if (cut?.end() !== true) {
      assert.ok(message > 1, 'the connection must be cut at the first message')
      return
    }
  }
  assert.fail(`more than ${MESSAGES_MAX} messages passed`)
}

export const RECORD_FAULT_RULES: readonly Rule<RecordContext>[] = [
  {
    name: 'range: batches over large values have a bounded size',
    needs: 'thorough',
    check: async (context) => {
      const value = new Uint8Array(context.store.limits.valueBytesMax)
      const entries = context.entries(LARGE_VALUES).map(({ key }) => ({ key, value }))
      for (let from = 0; from < entries.length; from += 40)
        await context.store.insertMany(entries.slice(from, from + 40))
      let count = 0
      for await (const batch of context.store.range(context.all)) {
        const bytes = batch.reduce((sum, entry) => sum + entry.value.length, 0)
        assert.ok(bytes <= BATCH_BYTES_MAX, `a batch has ${bytes} bytes; it must have at most ${BATCH_BYTES_MAX}`)
        count += batch.length
      }
      same(count, LARGE_VALUES, 'the number of entries')
    },
  },
  {
    name: 'getMany: reads more large values than fit one answer',
    needs: 'thorough',
    check: async (context) => {
      const entries = context.entries(LARGE_VALUES).map(({ key }, at) => ({ key, value: Buffer.alloc(65_536, at) }))
      for (let from = 0; from < entries.length; from += 40)
        await context.store.insertMany(entries.slice(from, from + 40))
      const values = await context.store.getMany(entries.map(({ key }) => key))
      const wrong = entries.findIndex(({ value }, at) => Buffer.compare(values[at] ?? new Uint8Array(0), value) !== 0)
      same(wrong, -1, 'the index of a wrong value')
      const found = await context.store.insertMany(entries)
      same(found.filter((value) => value?.length === 65_536).length, LARGE_VALUES, 'the earlier values that came back')
    },
  },
  {
    name: 'a lost connection: a commit is made or not, never in part, and the store goes on',
    needs: 'cutAt',
    check: async (context) => {
      await cutAtEach(context, async (message) => {
        const [left, right] = [`left ${message}`, `right ${message}`]
        const change = {
          put: [context.entry(left), context.entry(right)],
          expect: [{ key: context.key(left), value: undefined }],
        }
        const outcome = await outcomeOf(context.store.commit(change))
        const [first, second] = await untilItWorks(() => context.store.getMany([context.key(left), context.key(right)]))
        same(
          first === undefined,
          second === undefined,
          `whether both keys are absent after a cut at message ${message}`,
        )
        if (outcome === 'made')
          same(first !== undefined, true, `whether an acknowledged commit is there (message ${message})`)
      })
    },
  },
  {
    name: 'a lost connection: inserts, reads and ranges reject or are complete, and the store goes on',
    needs: 'cutAt',
    check: async (context) => {
      const held = context.entries(30)
      await context.store.insertMany(held)
      await cutAtEach(context, async (message) => {
        const fresh = context.entry(`new ${message}`)
        const outcome = await outcomeOf(context.store.insertMany([fresh, ...held]))
        const values = await context.store.getMany(held.map(({ key }) => key)).catch(() => undefined)
        same(values?.every((value) => value !== undefined) ?? true, true, 'whether all values came')
        const bounds = { gte: context.key('0'), lt: context.key('1') }
        const listed = await batchesOf(context.store.range(bounds)).catch(() => undefined)
        same(listed?.length ?? held.length, held.length, 'the number of entries in a range')
        const [value] = await untilItWorks(() => context.store.getMany([fresh.key]))
        if (outcome === 'made')
          same(value !== undefined, true, `whether an acknowledged insert is there (message ${message})`)
      })
    },
  },
  {
    name: 'a restart of the engine: keeps everything that resolved, and the store goes on by itself',
    needs: 'restart',
    isForPersistent: true,
    check: async (context) => {
      const acknowledged: string[] = []
      for (let restart = 0; restart < RESTARTS; restart++) {
        let isOver = false
        const write = async (hand: number): Promise<void> => {
          for (let at = 0; !isOver; at++) {
            const suffix = `${restart}-${hand}-${at}`
            const entry = context.entry(suffix)
            const call =
              at % 2 === 0
                ? context.store.commit({ put: [entry], expect: [{ key: entry.key, value: undefined }] })
                : context.store.insertMany([entry])
            if ((await outcomeOf(call)) === 'made') acknowledged.push(suffix)
            else await delay(RETRY_MS)
          }
        }
        const before = acknowledged.length
        const writers = [0, 1, 2, 3].map(write)
        while (acknowledged.length < before + 40) await delay(1)
        await context.faults.restart?.()
        await untilItWorks(() => context.store.commit({ put: [context.entry('again', String(restart))] }))
        isOver = true
        await Promise.all(writers)
      }
      const values = await context.store.getMany(acknowledged.map((suffix) => context.key(suffix)))
      const lost = acknowledged.filter((_, at) => values[at] === undefined)
      same(lost, [], 'the acknowledged keys that are lost')
      same(Buffer.from(bytesOf(String(RESTARTS - 1))).toString(), await context.value('again'), 'the last value')
    },
  },
]
