import assert from 'node:assert/strict'
import { CORE_RECORD_LIMITS } from '../backend.ts'
import { rejects, rejectsWithReason, type Rule, same, sameBytes } from './case.ts'
import { bytesOf, type RecordContext } from './record-context.ts'

export const RECORD_READ_RULES: readonly Rule<RecordContext>[] = [
  {
    name: 'limits: are at least those that the core needs',
    check: async ({ store }) => {
      for (const [name, needed] of Object.entries(CORE_RECORD_LIMITS)) {
        assert.ok(
          store.limits[name as keyof typeof CORE_RECORD_LIMITS] >= needed,
          `limits.${name} must be at least ${needed}`,
        )
      }
    },
  },
  {
    name: 'getMany: returns values in the order of the keys, repeats duplicates, and undefined for missing keys',
    check: async (context) => {
      await context.store.insertMany([context.entry('a'), context.entry('b'), context.entry('c')])
      const asked = ['c', 'missing', 'a', 'c', 'b', 'missing']
      const values = await context.store.getMany(asked.map((suffix) => context.key(suffix)))
      same(values.length, asked.length, 'the number of values')
      for (const [at, suffix] of asked.entries())
        sameBytes(values[at], suffix === 'missing' ? undefined : bytesOf(`value of ${suffix}`), `value ${at}`)
    },
  },
  {
    name: 'getMany: returns an empty list for no keys',
    check: async ({ store }) => same(await store.getMany([]), [], 'the result for no keys'),
  },
  {
    name: 'getMany: accepts thousands of keys in one call',
    check: async (context) => {
      const entries = context.entries(2_500)
      await context.store.insertMany(entries)
      const backwards = entries.toReversed()
      const values = await context.store.getMany(backwards.map((entry) => entry.key))
      same(values.length, backwards.length, 'the number of values')
      for (const [at, entry] of backwards.entries()) sameBytes(values[at], entry.value, `value ${at}`)
    },
  },
  {
    name: 'getMany: the caller owns each returned buffer',
    check: async (context) => {
      await context.store.insertMany([context.entry('a')])
      const [first, second] = await context.store.getMany([context.key('a'), context.key('a')])
      first?.fill(0)
      sameBytes(second, bytesOf('value of a'), 'the other value of the same call')
      same(await context.value('a'), 'value of a', 'the stored value')
    },
  },
  {
    name: 'getMany: returns an empty value as a value',
    check: async (context) => {
      await context.store.insertMany([context.entry('empty', '')])
      sameBytes((await context.store.getMany([context.key('empty')]))[0], new Uint8Array(0), 'the empty value')
    },
  },
  {
    name: 'getMany: tells keys apart by their bytes, not by their text',
    check: async (context) => {
      const suffixes = [
        [0xc3, 0xa9],
        [0x65, 0xcc, 0x81],
        [0xe9],
        [0xed, 0xa0, 0x80],
        [0xef, 0xbf, 0xbd],
        [0],
        [0, 0],
        [],
      ]
      const entries = suffixes.map((suffix, at) => ({ key: context.key(suffix), value: Uint8Array.of(at) }))
      await context.store.insertMany(entries)
      const values = await context.store.getMany(entries.map((entry) => entry.key))
      for (const at of entries.keys()) sameBytes(values[at], Uint8Array.of(at), `the value of key ${at}`)
    },
  },
  {
    name: 'getMany: accepts keys and values that are views of larger buffers',
    check: async (context) => {
      const { key, value } = context.entry('view')
      const around = Buffer.concat([bytesOf('before'), key, value, bytesOf('after')])
      const keyView = new Uint8Array(around.buffer, around.byteOffset + 6, key.length)
      const valueView = new Uint8Array(around.buffer, around.byteOffset + 6 + key.length, value.length)
      await context.store.insertMany([{ key: keyView, value: valueView }])
      sameBytes((await context.store.getMany([key]))[0], value, 'the value')
    },
  },
  {
    name: 'getMany: returns every write that has resolved',
    check: async (context) => {
      for (let round = 0; round < 20; round++) {
        await context.store.commit({ put: [context.entry('round', String(round))] })
        same(await context.value('round'), String(round), 'the value after a commit')
      }
      await context.store.commit({ remove: [context.key('round')] })
      same(await context.value('round'), undefined, 'the value after its removal')
    },
  },
  {
    name: 'getMany: rejects an empty key and one that is too long',
    check: async (context) => {
      const { store } = context
      await store.getMany([context.longKey(store.limits.keyBytesMax)])
      await rejects('RangeError', () => store.getMany([new Uint8Array(0)]))
      await rejects('RangeError', () =>
        store.getMany([context.key('a'), context.longKey(store.limits.keyBytesMax + 1)]),
      )
    },
  },
  {
    name: 'getMany: an abort rejects with its reason',
    check: async (context) => rejectsWithReason((signal) => context.store.getMany([context.key('a')], { signal })),
  },
]
