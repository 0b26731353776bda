import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QuickReads } from '../../adapters/common/quick-reads.ts'
import { SortedReader } from '../../adapters/level/sorted-reader.ts'

test('keys are read as the database has them, forwards and backwards in turn, and answered in their own order', async () => {
  const asked: string[][] = []
  const database = {
    getMany: (keys: readonly Uint8Array[]) => {
      const texts = keys.map((key) => Buffer.from(key).toString('utf8'))
      asked.push(texts)
      return Promise.resolve(texts.map((text) => (text === 'of-none' ? undefined : Buffer.from(`value ${text}`))))
    },
  }
  const reader = new SortedReader(database as never)
  for (let call = 1; call <= 3; call++) {
    const values = await reader.getMany(['of-c', 'of-a', 'of-none', 'of-b'].map((key) => Buffer.from(key)))
    assert.deepEqual(
      values.map((value) => value && Buffer.from(value).toString('utf8')),
      ['value of-c', 'value of-a', undefined, 'value of-b'],
    )
  }
  const sorted = ['of-a', 'of-b', 'of-c', 'of-none']
  assert.deepEqual(asked, [sorted, sorted.toReversed(), sorted])
  assert.deepEqual(await reader.getMany([]), [])
})

test('a few keys are read at once, and more in the thread pool', () => {
  const held = new Map([['key 1', Buffer.from('value 1')]])
  const database = { getSync: (key: Uint8Array) => held.get(Buffer.from(key).toString('utf8')) }
  // With a clock of its own: a machine that is busy for some milliseconds would send the second call to the thread pool.
  const reader = new SortedReader(database as never, new QuickReads(() => 0))
  const keys = Array.from({ length: 9 }, (_, i) => Buffer.from(`key ${i}`))
  assert.deepEqual(reader.getNow(keys.slice(0, 3)), [undefined, held.get('key 1'), undefined])
  assert.deepEqual(reader.getNow([]), [])
  assert.equal(reader.getNow(keys), undefined)
})
