import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createObjectService, openAccess, type StorageBackend, type StoredObject } from '../../src/index.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { errorOf, jsonUpload, openService, served } from './served.ts'
import { eventually } from '../support/patience.ts'

class SlowStore extends PlainObjectStore {
  closed = 0
  waiting = 0
  letGo: () => void = () => undefined

  override async *get(
    projectId: string,
    ids: readonly string[],
    options: { readonly signal: AbortSignal },
  ): AsyncGenerator<readonly StoredObject[]> {
    this.waiting++
    await Promise.race([once(options.signal, 'abort'), new Promise<void>((resolve) => (this.letGo = resolve))])
    yield* super.get(projectId, ids, options)
  }

  async close(): Promise<void> {
    this.closed++
  }
}

async function waiting(store: SlowStore): Promise<void> {
  await eventually(() => store.waiting > 0, 'a request is under way')
}

test('closing answers 503 to new requests, waits for those in flight, then closes the store', async (t) => {
  const store = new SlowStore()
  const { service, url } = await served(t, { store })
  await (await fetch(`${url}/objects/p`, jsonUpload([{ id: 'a' }]))).arrayBuffer()
  const single = fetch(`${url}/objects/p/a/single`)
  await waiting(store)
  const closed = service.close()
  assert.equal(service.close(), closed)
  const refused = await fetch(`${url}/objects/p/a/single`)
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal((await errorOf(refused)).code, 'closing')
  await assert.rejects(service.project('p').has(['a']), { code: 'closing' })
  assert.equal(store.closed, 0)
  store.letGo()
  assert.deepEqual(await (await single).json(), { id: 'a' })
  await closed
  assert.equal(store.closed, 1)
})

test('a request that exceeds the grace period is aborted and gets 503', async (t) => {
  const store = new SlowStore()
  const { service, url } = await served(t, { store })
  await (await fetch(`${url}/objects/p`, jsonUpload([{ id: 'a' }]))).arrayBuffer()
  const single = fetch(`${url}/objects/p/a/single`)
  await waiting(store)
  await service.close({ graceMs: 20 })
  assert.equal((await errorOf(await single)).code, 'closing')
  assert.equal(store.closed, 1)
})

test('a backend belongs to one service', async () => {
  const backend = memoryBackend()
  const service = createObjectService({ backend, access: openAccess() })
  assert.throws(() => createObjectService({ backend, access: openAccess() }), /another service/)
  await service[Symbol.asyncDispose]()
})

test('ready opens the store once and rejects with the cause, and requests fail meanwhile', async () => {
  const cause = new Error('the folder holds another format')
  let opened = 0
  const backend: StorageBackend = {
    ...memoryBackend(),
    ready: () => {
      opened++
      return Promise.reject(cause)
    },
  }
  const service = openService({ backend })
  assert.equal(opened, 0)
  await assert.rejects(service.ready(), (error) => error === cause || (error as Error).cause === cause)
  await assert.rejects(service.ready())
  const answer = await errorOf(await service.fetch(new Request('http://x/objects/p/a')))
  assert.ok(answer.status >= 500 && !answer.message.includes('folder'))
  assert.equal(opened, 1)
  await service.close()
})
