import assert from 'node:assert/strict'
import { test } from 'node:test'
import { relayed, type RelayHooks } from '../../src/async/relay.ts'

interface Noted {
  readonly log: string[]
  readonly hooks: RelayHooks<number>
}

function noted(): Noted {
  const log: string[] = []
  return {
    log,
    hooks: {
      before: () => void log.push('before'),
      each: (item) => void log.push(`each ${item}`),
      completed: () => void log.push('completed'),
      ended: () => void log.push('ended'),
    },
  }
}

function source(log: string[], items: number, error?: Error): () => AsyncGenerator<number> {
  return async function* () {
    try {
      for (let item = 0; item < items; item++) yield item
      if (error !== undefined) throw error
    } finally {
      log.push('source closed')
    }
  }
}

async function taken(items: AsyncIterable<number>, most = Infinity): Promise<number[]> {
  const got: number[] = []
  for await (const item of items) if (got.push(item) >= most) break
  return got
}

test('a relay passes every item on, with its hooks around them', async () => {
  const { log, hooks } = noted()
  assert.deepEqual(await taken(relayed(source(log, 2), hooks)), [0, 1])
  assert.deepEqual(log, ['before', 'each 0', 'before', 'each 1', 'before', 'source closed', 'completed', 'ended'])
})

test('a consumer that stops early closes the source, and one that never began opens none', async () => {
  const { log, hooks } = noted()
  assert.deepEqual(await taken(relayed(source(log, 9), hooks), 1), [0])
  assert.deepEqual(log, ['before', 'each 0', 'source closed', 'ended'])
  log.length = 0
  const unused = relayed(source(log, 9), hooks)
  await unused.return?.()
  await unused.return?.()
  assert.deepEqual(await taken(unused), [])
  assert.deepEqual(log, ['ended'])
})

async function wrapped(cause: unknown): Promise<Error> {
  await Promise.resolve()
  return new Error('why', { cause })
}

test('the error of a source is told as its reason, and one of a hook closes the source', async () => {
  const { log, hooks } = noted()
  const failing = relayed(source(log, 0, new Error('broken')), {
    ...hooks,
    reasonOf: async (cause) => await wrapped(cause),
  })
  await assert.rejects(
    taken(failing),
    (error: Error) => error.message === 'why' && String(error.cause).includes('broken'),
  )
  assert.deepEqual(log, ['before', 'source closed', 'ended'])
  log.length = 0
  const refusing = relayed(source(log, 9), {
    ...hooks,
    each: () => {
      throw new Error('refused')
    },
  })
  await assert.rejects(taken(refusing), /refused/)
  assert.deepEqual(log, ['before', 'source closed', 'ended'])
})
