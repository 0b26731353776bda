import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { StowageError } from '../../src/errors.ts'
import type { BlobStore, Entry, RecordStore, StorageBackend } from '../../src/storage/backend.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import {
  BlobExistsError,
  BlobNotFoundError,
  StoragePoisonedError,
  storageError,
} from '../../src/storage/storage-errors.ts'

const key: Uint8Array = Buffer.from('key')
const after: Uint8Array = Buffer.from('kez')

async function* content(...chunks: string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

async function drained(items: AsyncIterable<unknown>): Promise<void> {
  for await (const item of items) assert.ok(item)
}

function system(code: string): Error {
  return Object.assign(new Error(`${code}: the system says so`), { code })
}

/** A storage in which every method fails in this way. */
function failing(fail: () => never): StorageBackend {
  const { records, blobs } = memoryBackend()
  const rejecting = (): Promise<never> => Promise.resolve().then(fail)
  const items = async function* (): AsyncGenerator<never> {
    yield await rejecting()
  }
  return {
    records: {
      limits: records.limits,
      getMany: rejecting,
      range: items,
      insertMany: rejecting,
      commit: rejecting,
      close: rejecting,
    },
    blobs: {
      readBytesPreferred: blobs.readBytesPreferred,
      put: rejecting,
      read: rejecting,
      remove: rejecting,
      list: items,
      close: rejecting,
    },
    close: rejecting,
  }
}

/** The same, but the throw comes before there is a promise. */
function failingAtOnce(fail: () => never): StorageBackend {
  const { records, blobs } = memoryBackend()
  return {
    records: { limits: records.limits, getMany: fail, range: fail, insertMany: fail, commit: fail, close: fail },
    blobs: {
      readBytesPreferred: blobs.readBytesPreferred,
      put: fail,
      read: fail,
      remove: fail,
      list: fail,
      close: fail,
    },
    close: fail,
  }
}

function everyCall(records: RecordStore, blobs: BlobStore, signal?: AbortSignal): (() => Promise<unknown>)[] {
  return [
    () => records.getMany([key], { signal }),
    () => drained(records.range({ gte: key, lt: after }, { signal })),
    () => records.insertMany([], { signal }),
    () => records.commit({}, { signal }),
    () => blobs.put('a', content('x'), { signal }),
    () => blobs.read('a', 0, 1, { signal }),
    () => drained(blobs.list('', { signal })),
  ]
}

test('every thrown engine error becomes a Stowage error with its cause', async () => {
  const raw = new Error('engine trouble, with secrets in it')
  const fail = (): never => {
    throw raw
  }
  for (const backend of [failing(fail), failingAtOnce(fail)]) {
    const { records, blobs } = asGuarded(backend)
    for (const call of [...everyCall(records, blobs), () => blobs.remove(['a'])]) {
      await assert.rejects(call, (error) => {
        assert.ok(error instanceof StowageError)
        assert.equal(error.code, 'storage_unavailable')
        assert.equal(error.cause, raw)
        assert.equal(error.isRetryable, true)
        assert.ok('Retry-After' in error.headers)
        assert.doesNotMatch(error.message, /secret/)
        return true
      })
    }
  }
})

test('errors have the meaning of their codes, even if a database wraps them', () => {
  const codeOf = (error: unknown): string => (storageError(error) as StowageError).code
  for (const code of ['ENOSPC', 'EDQUOT', 'EFBIG']) assert.equal(codeOf(system(code)), 'storage_full')
  assert.equal(
    codeOf(new Error('write failed', { cause: new Error('batch', { cause: system('ENOSPC') }) })),
    'storage_full',
  )
  assert.equal(codeOf(new Error('IO error: /x/000005.log: No space left on device')), 'storage_full')
  assert.equal(codeOf(new StoragePoisonedError(system('EIO'))), 'storage_unavailable')
  assert.equal(codeOf(new BlobNotFoundError('a')), 'corrupt_data')
  assert.equal(codeOf(new BlobExistsError('a')), 'storage_unavailable')
  for (const other of [system('EMFILE'), new RangeError('no'), 'text', undefined, null])
    assert.equal(codeOf(other), 'storage_unavailable')
})

test('Stowage errors pass unchanged', async () => {
  const ours = new StowageError('corrupt_data', 'it is damaged')
  const { records, blobs } = asGuarded(
    failing(() => {
      throw ours
    }),
  )
  for (const call of everyCall(records, blobs)) await assert.rejects(call, (error) => error === ours)
})

test('errors of another copy of the package are recognized by name and code', () => {
  const foreign = (name: string, code: string): Error => Object.assign(new Error('told elsewhere'), { name, code })
  const removed = foreign('StowageError', 'project_removed')
  const poisoned = storageError(foreign('StoragePoisonedError', 'storage_unavailable')) as StowageError
  assert.deepEqual(
    [poisoned.name, poisoned.code, poisoned.statusCode],
    ['StoragePoisonedError', 'storage_unavailable', 503],
  )
  const missing = storageError(foreign('BlobNotFoundError', 'anything')) as StowageError
  assert.deepEqual(
    [missing.name, missing.code, missing instanceof StowageError],
    ['BlobNotFoundError', 'corrupt_data', true],
  )
  const ours = storageError(removed) as StowageError
  assert.deepEqual([ours.code, ours.statusCode, ours.cause], ['project_removed', 409, removed])
})

test('only an abort passes unchanged as an abort', async () => {
  const controller = new AbortController()
  const abortError = Object.assign(new Error('aborted'), { name: 'AbortError' })
  const { records, blobs } = asGuarded(
    failing(() => {
      throw abortError
    }),
  )
  for (const call of everyCall(records, blobs, controller.signal))
    await assert.rejects(call, { code: 'storage_unavailable' })
  controller.abort(new Error('the client left'))
  for (const call of everyCall(records, blobs, controller.signal))
    await assert.rejects(call, (error) => error === controller.signal.reason)
  const memory = asGuarded(memoryBackend())
  await assert.rejects(memory.records.getMany([key], { signal: controller.signal }), /the client left/)
})

test('an error of the content of a blob is not a storage error', async () => {
  const { blobs } = asGuarded(memoryBackend())
  const broken = new Error('bad upload')
  const source = async function* (): AsyncGenerator<Uint8Array> {
    yield key
    throw broken
  }
  await assert.rejects(blobs.put('a', source()), (error) => error === broken)
  await assert.rejects(blobs.read('a', 0, 1), { code: 'corrupt_data' })
})

test('a read that returns too few bytes is reported as damage', async () => {
  const { blobs } = asGuarded(memoryBackend())
  await blobs.put('a', content('four'))
  await assert.rejects(blobs.read('a', 2, 5), { code: 'corrupt_data', isRetryable: false })
})

test('a refused commit must name the expectations that failed', async () => {
  const { records, ...rest } = memoryBackend()
  const expect = [{ key, value: key }]
  for (const conflicts of [[], [{ index: 1, value: undefined }], [0 as never]]) {
    const backend = asGuarded({ ...rest, records: { ...records, commit: async () => ({ ok: false, conflicts }) } })
    await assert.rejects(backend.records.commit({ expect }), {
      code: 'internal',
      message: /must be \{ index, value \}/,
    })
  }
})

test('successful calls pass through, with limits and early returns', async () => {
  const inner = memoryBackend()
  const backend = asGuarded(inner)
  const { records, blobs } = backend
  assert.equal(records.limits, inner.records.limits)
  assert.equal(blobs.readBytesPreferred, inner.blobs.readBytesPreferred)
  assert.deepEqual(await records.commit({ put: [{ key, value: key }] }), { ok: true })
  assert.deepEqual((await records.getMany([key])).map(String), [String(key)])
  assert.deepEqual(await blobs.put('a', content('one', 'two')), { sizeBytes: 6 })
  assert.equal(Buffer.from(await blobs.read('a', 2, 5)).toString(), 'etw')
  let isClosed = false
  const endless = async function* (): AsyncGenerator<readonly Entry[]> {
    try {
      for (;;) yield [{ key, value: key }]
    } finally {
      isClosed = true
    }
  }
  const watched = asGuarded({ ...inner, records: { ...inner.records, range: endless } })
  for await (const batch of watched.records.range({ gte: key, lt: after })) {
    assert.ok(batch)
    break
  }
  assert.equal(isClosed, true)
  await backend.close()
  await assert.rejects(records.getMany([key]), { code: 'storage_unavailable' })
})
