import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Level } from 'level'
import { AbsentKeys } from '../../adapters/level/absent-keys.ts'
import { LevelRecords } from '../../adapters/level/level-records.ts'
import { LevelWriter } from '../../adapters/level/level-writer.ts'
import { RecordedLengths } from '../../adapters/level/recorded-lengths.ts'
import { SortedReader } from '../../adapters/level/sorted-reader.ts'
import { WriteGuard } from '../../adapters/common/write-guard.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { Semaphore } from '../../src/async/semaphore.ts'
import { folderInMemory } from '../support/folder.ts'

const folder = folderInMemory()
const none = (): Promise<undefined[]> => Promise.resolve([undefined])
const keysOf = (...names: readonly string[]): Uint8Array[] => names.map((name) => Buffer.from(name))

/** A read that finds neither of two keys, once it is told to end. */
class Held {
  end: () => void = () => undefined
  readonly values = new Promise<undefined[]>((resolve) => (this.end = () => resolve([undefined, undefined])))
}

test('a key that was not found is absent until it is written', async () => {
  const absent = new AbsentKeys()
  assert.equal(absent.has('key'), false)
  const values = await absent.noteAbsent(keysOf('key', 'held'), () => Promise.resolve([undefined, 'value']))
  assert.deepEqual(values, [undefined, 'value'])
  assert.equal(absent.has('key'), true)
  assert.equal(absent.has('held'), false)
  absent.beginWrite(new Set(['key']))
  assert.equal(absent.has('key'), false)
  absent.endWrite()
  assert.equal(absent.has('key'), false)
})

test('nothing is known of a key that is written while it is looked for', async () => {
  const absent = new AbsentKeys()
  const read = new Held()
  const search = absent.noteAbsent(keysOf('key', 'other'), () => read.values)
  assert.equal(absent.has('key'), false, 'as long as it is looked for')
  absent.beginWrite(new Set(['key']))
  absent.endWrite()
  read.end()
  await search
  assert.deepEqual([absent.has('key'), absent.has('other')], [false, true])
})

test('nothing is known of a key that is being written when the search begins', async () => {
  const absent = new AbsentKeys()
  absent.beginWrite(new Set(['key']))
  const search = absent.noteAbsent(keysOf('key'), none)
  absent.endWrite()
  await search
  assert.equal(absent.has('key'), false)
  await absent.noteAbsent(keysOf('key'), none)
  assert.equal(absent.has('key'), true)
})

test('a search that fails says nothing, and one that is slower than another keeps what the other one found', async () => {
  const absent = new AbsentKeys()
  await assert.rejects(
    absent.noteAbsent(keysOf('key'), () => Promise.reject(new Error('the disk is gone'))),
    /the disk is gone/,
  )
  assert.equal(absent.has('key'), false)
  const read = new Held()
  const slow = absent.noteAbsent(keysOf('key', 'other'), () => read.values)
  await absent.noteAbsent(keysOf('key'), none)
  absent.beginWrite(new Set(['key']))
  absent.endWrite()
  await absent.noteAbsent(keysOf('key'), none)
  assert.equal(absent.has('key'), true)
  read.end()
  await slow
  assert.equal(absent.has('key'), true)
})

test('a search during which many writes begin notes nothing', async () => {
  const absent = new AbsentKeys()
  for (const [writes, isNoted] of [
    [7, true],
    [8, false],
  ] as const) {
    const read = new Held()
    const search = absent.noteAbsent(keysOf(`key ${writes}`, `other ${writes}`), () => read.values)
    for (let write = 0; write < writes; write++) {
      absent.beginWrite(new Set([`written ${write}`]))
      absent.endWrite()
    }
    read.end()
    await search
    assert.equal(absent.has(`key ${writes}`), isNoted)
  }
})

test('the keys that were noted first are forgotten when there are many', async () => {
  const absent = new AbsentKeys()
  await absent.noteAbsent(keysOf('first'), none)
  const many = Array.from({ length: 16_383 }, (_, i) => `key ${i}`)
  await absent.noteAbsent(keysOf(...many), () => Promise.resolve(many.map(() => undefined)))
  assert.equal(absent.has('first'), true)
  await absent.noteAbsent(keysOf('one more'), none)
  assert.deepEqual([absent.has('first'), absent.has('key 0'), absent.has('one more')], [false, true, true])
})

test('records that were not found are inserted without another look, and once', async () => {
  class CountingReader extends SortedReader {
    looks = 0
    override getMany(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
      this.looks++
      return super.getMany(keys)
    }
  }
  const settings = { keyEncoding: 'buffer', valueEncoding: 'buffer' }
  const database = new Level<Uint8Array, Uint8Array>(join(folder, 'counting'), settings)
  await database.open()
  const reader = new CountingReader(database)
  const lengths = await RecordedLengths.start(database.location)
  const writer = new LevelWriter(
    { database, reader, lengths },
    { guard: new WriteGuard(folder), syncs: new Semaphore(2), sync: true },
  )
  const records = new LevelRecords({ database, reader, writer })
  const entries = Array.from({ length: 20 }, (_, i) => ({ key: Buffer.from(`key ${i}`), value: Buffer.from(`${i}`) }))
  const nothing = entries.map(() => undefined)
  const found = await records.getMany(
    entries.map(({ key }) => key),
    {},
  )
  assert.deepEqual(found, nothing)
  assert.equal(reader.looks, 1)
  assert.deepEqual(await records.insertMany(entries, {}), nothing)
  assert.equal(reader.looks, 1)
  const again = await records.insertMany(entries, {})
  assert.deepEqual(
    again.map((value) => Buffer.from(value as Uint8Array).toString()),
    entries.map((_, i) => String(i)),
  )
  assert.equal(reader.looks, 2)
  await database.close()
  await lengths.finish()
})

test('of many inserts of a record at once, between searches for it, one puts it', async () => {
  const backend = levelBackend({ path: join(folder, 'many-at-once') })
  const { records } = backend
  for (let round = 0; round < 40; round++) {
    const keys = Array.from({ length: 24 }, (_, i) => Buffer.from(`round ${round} key ${i}`))
    const put = keys.map(() => 0)
    const insert = async (name: string): Promise<void> => {
      const held = await records.insertMany(keys.map((key) => ({ key, value: Buffer.from(name) })))
      for (const [i, value] of held.entries()) if (value === undefined) put[i]++
    }
    const look = async (): Promise<void> => void (await records.getMany(keys))
    await Promise.all([look(), insert('a'), look(), look().then(() => insert('b')), look().then(look)])
    await Promise.all([insert('c'), look(), insert('d')])
    assert.deepEqual(
      put,
      keys.map(() => 1),
    )
  }
  await backend.close()
})
