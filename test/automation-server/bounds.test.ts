import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory.ts'
import { Results } from '../../src/automation-server/domain/results.ts'
import { NO_ANNOTATIONS } from '../../src/automation-server/domain/run-record.ts'
import { projectKey } from '../../src/automation-server/records/keys.ts'
import { AutomationStore } from '../../src/automation-server/records/store.ts'
import { Turns } from '../../src/automation-server/turns.ts'
import type { StorageBackend } from '../../src/index.ts'
import { hooked } from '../store/failures.ts'
import { running } from './support.ts'

function storeOn(backend: StorageBackend): AutomationStore {
  let ids = 0
  return new AutomationStore(backend, { clock: Date, newId: () => String(ids++) })
}

test('a part of a list has a bounded number of bytes, and the parts together are the list', async () => {
  const store = storeOn(memoryBackend())
  const scope = await store.writingScope('p')
  const names = Array.from({ length: 150 }, (_, at) => at.toString(16).padStart(4, '0'))
  for (const name of names) await store.commit(scope, { put: [store.entry(projectKey(scope, 'model', name), 'x'.repeat(60_000))] })
  for (const newestFirst of [false, true]) {
    const seen: string[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const part: { readonly items: readonly { readonly name: string }[]; readonly cursor: string | null } = await store.page(projectKey(scope, 'model'), { limit: 1_000, cursor: cursor ?? undefined, newestFirst })
      assert.ok(part.items.length > 0 && part.items.length * 60_000 < 4.5 * 1_048_576, `${part.items.length} items`)
      seen.push(...part.items.map(({ name }) => name))
      cursor = part.cursor
    }
    assert.deepEqual(seen, newestFirst ? names.toReversed() : names)
  }
})

test('a level that hardly occurs among very many small reports takes several pages, and none reads them all', async () => {
  let reads = 0
  const store = storeOn(hooked(memoryBackend(), (call, detail, work) => {
    if (call === 'getMany' && detail.includes('\0result\0')) reads++
    return work()
  }))
  const scope = await store.writingScope('p')
  const resultBatches = 5_000
  await store.records.insertMany(Array.from({ length: resultBatches }, (_, at) => {
    const level = at === resultBatches - 1 ? 'ERROR' : 'INFO'
    const items = [{ category: 'Fire', level, objectAppIds: {}, message: null, metadata: null }]
    return store.entry(projectKey(scope, 'result', 'run', at.toString(16).padStart(8, '0')), { counts: { ...NO_ANNOTATIONS, [level]: 1 }, bytes: 90, items, blob: null })
  }))
  const run = { id: 'run', resultBatches, resultObjects: 0, resultBytes: 0, annotations: NO_ANNOTATIONS }
  const results = new Results(store, { resultObjectsMax: 1, resultBytesMax: 1 })
  let found = 0
  let pages = 0
  for (let cursor: string | null | undefined; cursor !== null; pages++) {
    const before = reads
    const page: { readonly items: readonly unknown[]; readonly cursor: string | null } = await results.list(scope, run, { level: 'ERROR', ...(cursor === undefined ? {} : { cursor }) })
    assert.ok(reads - before < resultBatches, `${reads - before} records for a page`)
    found += page.items.length
    cursor = page.cursor
  }
  assert.deepEqual([found, reads], [1, resultBatches])
  assert.ok(pages >= 2)
})

test('of one run only so many reports are read at a time: further ones are refused before their body has come, and may come again', async (t) => {
  const { service, id, token, ask } = await running(t)
  const finish: (() => void)[] = []
  const send = (sequence: number): Promise<Response> => {
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => new Promise<void>((resolve) => {
        finish.push(() => {
          controller.enqueue(Buffer.from(JSON.stringify({ sequence, logs: [{ atMs: 1, level: 'info', message: `line ${sequence}` }] })))
          controller.close()
          resolve()
        })
      }),
    }, { highWaterMark: 0 })
    const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers: { ...token, 'Content-Type': 'application/json' }, body, duplex: 'half' }
    return service.fetch(new Request(`http://in.process/api/v1/projects/p/runs/${id}/report`, init))
  }
  const waiting: Promise<Response>[] = []
  while (finish.length < 4) {
    const before = finish.length
    waiting.push(send(waiting.length + 1))
    while (finish.length === before) await new Promise((resolve) => setImmediate(resolve))
  }
  const refused = await send(5)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
  assert.equal(((await refused.json()) as { readonly code: string }).code, 'overloaded')
  for (const [at, sent] of waiting.entries()) {
    finish[at]()
    assert.equal((await sent).status, 200)
  }
  assert.equal((await ask('POST', `p/runs/${id}/report`, { sequence: 5, logs: [{ atMs: 1, level: 'info', message: 'line 5' }] }, token)).status, 200)
})

test('work of one key is done in turn, also after some that failed, and that of others at once', async () => {
  const turns = new Turns()
  const log: string[] = []
  let free: () => void = () => undefined
  const held = turns.run('a', () => new Promise<void>((resolve) => (free = resolve)))
  const failing = turns.run('a', async () => Promise.reject(new Error('broken')))
  const last = turns.run('a', async () => void log.push('a'))
  await turns.run('b', async () => void log.push('b'))
  free()
  await held
  await assert.rejects(failing, /broken/)
  await last
  assert.deepEqual(log, ['b', 'a'])
})
