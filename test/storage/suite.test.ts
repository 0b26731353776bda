import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import {
  blobStoreConformance,
  type ConformanceCase,
  recordStoreConformance,
} from '../../src/storage/conformance/index.ts'
import type { BlobStore, RecordStore } from '../../src/storage/index.ts'

/** The same store with other methods. */
function changed<S extends object>(store: S, methods: Partial<S>): S {
  return new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(name in methods ? methods : target, name, target)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

function find(cases: readonly ConformanceCase[], name: RegExp): ConformanceCase {
  const found = cases.find((one) => name.test(one.name))
  assert.ok(found, `there is a case ${name.source}`)
  return found
}

function recordsWith(methods: Partial<RecordStore>, name: RegExp, timeoutMs?: number): ConformanceCase {
  return find(
    recordStoreConformance(() => changed(memoryBackend().records, methods), { timeoutMs }),
    name,
  )
}

test('a failing case names the expected and the actual value, and the arguments', async () => {
  const overwriting = recordsWith(
    { insertMany: async (entries) => entries.map(() => undefined) },
    /^insertMany: a repeated call/,
  )
  await assert.rejects(overwriting.run(), (error: Error) => {
    assert.match(error.message, /result 0 of the repeated call: must be 1 byte "0", but is undefined/)
    assert.match(error.message, /insertMany\(\[\{ key: 22 bytes "[0-9a-f]{16}000000", value: 1 byte "0" \}/)
    return true
  })
  const unchecked = recordsWith(
    { getMany: async (keys) => keys.map(() => undefined) },
    /^getMany: rejects an empty key/,
  )
  await assert.rejects(unchecked.run(), /must reject with RangeError, but it resolved[^]*getMany\(\[0 bytes ""\]\)/)
})

test('errors are recognized by name, so a backend may use another copy of the package', async () => {
  const methods: Partial<BlobStore> = {
    read: () => Promise.reject(Object.assign(new Error('elsewhere'), { name: 'BlobNotFoundError' })),
  }
  await find(
    blobStoreConformance(() => changed(memoryBackend().blobs, methods)),
    /^read: rejects an absent blob/,
  ).run()
})

test('a store whose conflicts lack their values fails', async () => {
  const store = (): RecordStore => {
    const { records } = memoryBackend()
    return changed(records, {
      commit: async (change, options) => {
        const result = await records.commit(change, options)
        if (result.ok) return result
        return { ok: false, conflicts: result.conflicts.map(({ index }) => ({ index, value: undefined })) }
      },
    })
  }
  for (const name of [
    /^commit: a failed expectation/,
    /^commit: checks expectations without/,
    /^commit: the values of/,
  ])
    await assert.rejects(find(recordStoreConformance(store), name).run(), /^Error: (the conflicts|the result)/)
})

test('a case that hangs ends by its own time limit', async () => {
  const hanging = recordsWith(
    { insertMany: () => new Promise(() => undefined) },
    /^getMany: returns an empty value/,
    50,
  )
  await assert.rejects(hanging.run(), /the case did not end within 50 ms[^]*insertMany\(/)
  const unclosable = recordsWith({ close: () => new Promise(() => undefined) }, /^getMany: returns an empty list/, 50)
  await assert.rejects(unclosable.run(), /close did not end within 50 ms/)
})

test('a volatile store is not reopened', async () => {
  for (const { run } of recordStoreConformance(() => memoryBackend().records).filter(({ name }) =>
    name.startsWith('reopen'),
  ))
    await run()
  const forgetful = recordsWith({ isPersistent: true }, /^reopen/)
  await assert.rejects(forgetful.run(), /suffixes|0 !== 2500|last calls/)
})
