import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createObjectService, openAccess, type ServiceEvent, type ServiceQuota } from '../../src/index.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { behindPort, errorOf, jsonUpload, rawExchange } from './served.ts'

function limited(
  t: TestContext,
  quota: ServiceQuota,
): {
  readonly service: ReturnType<typeof createObjectService>
  readonly events: ServiceEvent[]
  readonly errors: unknown[]
} {
  const events: ServiceEvent[] = []
  const errors: unknown[] = []
  const service = createObjectService({
    backend: memoryBackend(),
    access: openAccess(),
    quota,
    onEvent: (event) => events.push(event),
    logger: { error: (fields) => errors.push(fields) },
  })
  t.after(() => service.close({ graceMs: 0 }))
  return { service, events, errors }
}

test('an upload whose length alone exceeds the quota is refused unread', async (t) => {
  const { service, events, errors } = limited(t, { jsonBytesMax: 1_000 })
  const { port } = await behindPort(t, service)
  const head = 'POST /objects/p HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n'
  const answer = await rawExchange(port, [`${head}Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n`])
  assert.match(answer, /^HTTP\/1\.1 507 /, 'the body was not even asked for')
  assert.match(answer, /"code":"quota_exceeded"/)
  assert.match(answer, /the project may hold at most 1000 bytes of JSON, and holds 0; this upload has 5000/)
  assert.ok(events.some((event) => event.type === 'limit' && event.limit === 'quota'))
  assert.deepEqual(errors, [], 'a full project is no fault of the server')
})

test('each project can have its own quota, over HTTP and in process', async (t) => {
  const { service } = limited(t, (projectId) => (projectId === 'small' ? { objectsMax: 1 } : undefined))
  const objects = [{ id: 'a' }, { id: 'b' }]
  const refused = await service.fetch(new Request('http://x/objects/small', jsonUpload(objects)))
  assert.deepEqual((({ status, code }) => [status, code])(await errorOf(refused)), [507, 'quota_exceeded'])
  assert.equal((await service.fetch(new Request('http://x/objects/large', jsonUpload(objects)))).status, 200)
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from(JSON.stringify(objects))
  }
  await assert.rejects(service.project('small').upload(bytes(), 'application/json'), { code: 'quota_exceeded' })
})

test('an invalid quota is refused', () => {
  const access = openAccess()
  assert.throws(
    () => createObjectService({ backend: memoryBackend(), access, quota: { objectsMax: -1 } }),
    /quota\.objectsMax is -1; it must be an integer of 0 or more/,
  )
  assert.throws(
    () => createObjectService({ store: new PlainObjectStore(), access, quota: { objectsMax: 1 } }),
    /quotas need a storage backend/,
  )
})
