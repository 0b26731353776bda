import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import {
  createObjectService,
  type ObjectService,
  openAccess,
  type StorageBackend,
  type StowageError,
} from '../../src/index.ts'
import { BlobExistsError, BlobNotFoundError, BlobRangeError } from '../../src/storage/index.ts'

/* A storage may say which blob, folder or machine it is about. That is for the log; whoever asks over HTTP reads nothing of it. */

const SECRET = 'folder-4711/blob-4712'
const IDS = Array.from({ length: 300 }, (_, index) => `object-${index}`)

interface Failing {
  readonly service: ObjectService
  readonly errors: readonly unknown[]
  fail(error: Error): void
}

/** A service with more than fits into a record, on a storage that can be told to fail. */
async function failing(t: TestContext): Promise<Failing> {
  const inner = memoryBackend()
  let failure: Error | undefined
  const orFail = <T extends object>(half: T, methods: readonly string[]): T =>
    new Proxy(half, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== 'function') return method
        if (failure !== undefined && methods.includes(String(name))) return () => Promise.reject(failure)
        return method.bind(target) as unknown
      },
    })
  const backend: StorageBackend = { ...inner, blobs: orFail(inner.blobs, ['read', 'put']) }
  const errors: unknown[] = []
  const service = createObjectService({ backend, access: openAccess(), onError: (error) => void errors.push(error) })
  t.after(() => service.close({ graceMs: 100 }))
  await service.ready()
  assert.equal((await upload(service, IDS)).status, 200)
  return { service, errors, fail: (error) => (failure = error) }
}

/** An id of a request that is made at random may look like anything. */
const HEADERS = { 'X-Request-Id': 'chosen' }

function upload(service: ObjectService, ids: readonly string[]): Promise<Response> {
  const objects = ids.map((id) => ({ id, text: Array.from({ length: 40 }, () => Math.random()) }))
  const init = {
    method: 'POST',
    headers: { ...HEADERS, 'Content-Type': 'application/json' },
    body: JSON.stringify(objects),
  }
  return service.fetch(new Request('http://in.process/objects/demo', init))
}

for (const [error, code] of [
  [new BlobNotFoundError(SECRET), 'corrupt_data'],
  [new BlobRangeError(SECRET, 4_711, 12), 'corrupt_data'],
  [new BlobExistsError(SECRET), 'storage_unavailable'],
  [Object.assign(new Error(`EIO: i/o error, read ${SECRET}`), { code: 'EIO', path: SECRET }), undefined],
] as const) {
  test(`a storage message is logged and not sent: ${error.name} ${error.message.slice(0, 12)}`, async (t) => {
    const { service, errors, fail } = await failing(t)
    fail(error)
    const requests = [
      service.fetch(new Request(`http://in.process/objects/demo/${IDS[7]}/single`, { headers: HEADERS })),
      upload(
        service,
        IDS.map((id) => `new-${id}`),
      ),
    ]
    for (const response of await Promise.all(requests)) {
      const text = await response.text()
      assert.ok(response.status >= 500, text)
      assert.doesNotMatch(text + JSON.stringify([...response.headers]), /471\d|blob-|folder-/)
      if (code !== undefined) assert.equal((JSON.parse(text) as { code: string }).code, code)
    }
    assert.equal(errors.length, 2)
    for (const told of errors) assert.ok(chainOf(told).includes(error), String(told))
  })
}

function chainOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = []
  for (let at = error; at instanceof Error && chain.length < 10; at = (at as StowageError).cause) chain.push(at)
  return chain
}
