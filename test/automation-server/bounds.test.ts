import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { Annotations } from '../../src/automation-server/domain/annotations.ts'
import { NO_ANNOTATIONS } from '../../src/automation-server/domain/run-record.ts'
import { projectKey } from '../../src/automation-server/records/keys.ts'
import { AutomationStore } from '../../src/automation-server/records/store.ts'
import { KeyedMutex } from '../../src/async/keyed-mutex.ts'
import type { StorageBackend } from '../../src/index.ts'
import { hooked } from '../store/failures.ts'
import { running, type RunningFixture } from './support.ts'

function storeOn(backend: StorageBackend): AutomationStore {
  let ids = 0
  return new AutomationStore(backend, { clock: Date, newId: () => String(ids++) })
}

test('a page of a list has bounded bytes, and the pages together are the list', async () => {
  const store = storeOn(memoryBackend())
  const scope = await store.writingScope('p')
  const names = Array.from({ length: 150 }, (_, at) => at.toString(16).padStart(4, '0'))
  for (const name of names)
    await store.commit(scope, { put: [store.entry(projectKey(scope, 'model', name), 'x'.repeat(60_000))] })
  for (const newestFirst of [false, true]) {
    const seen: string[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const part: { readonly items: readonly { readonly name: string }[]; readonly cursor: string | null } =
        await store.page(projectKey(scope, 'model'), { limit: 1_000, cursor: cursor ?? undefined, newestFirst })
      assert.ok(part.items.length > 0 && part.items.length * 60_000 < 4.5 * 1_048_576, `${part.items.length} items`)
      seen.push(...part.items.map(({ name }) => name))
      cursor = part.cursor
    }
    assert.deepEqual(seen, newestFirst ? names.toReversed() : names)
  }
})

test('finding a rare level among very many small reports takes several pages, and none reads them all', async () => {
  let reads = 0
  const store = storeOn(
    hooked(memoryBackend(), (call, detail, work) => {
      if (call === 'getMany' && detail.includes('\0annotation\0')) reads++
      return work()
    }),
  )
  const scope = await store.writingScope('p')
  const annotationBatches = 2_500
  await store.records.insertMany(
    Array.from({ length: annotationBatches }, (_, at) => {
      const level = at === annotationBatches - 1 ? 'ERROR' : 'INFO'
      const items = [{ category: 'Fire', level, objectAppIds: {}, message: null, metadata: null }]
      return store.entry(projectKey(scope, 'annotation', 'run', at.toString(16).padStart(8, '0')), {
        counts: { ...NO_ANNOTATIONS, [level]: 1 },
        bytes: 90,
        items,
        blob: null,
      })
    }),
  )
  const run = { id: 'run', annotationBatches, annotationObjects: 0, annotationBytes: 0, annotations: NO_ANNOTATIONS }
  const annotations = new Annotations(store, { annotationObjectsMax: 1, annotationBytesMax: 1 })
  let found = 0
  let pages = 0
  for (let cursor: string | null | undefined; cursor !== null; pages++) {
    const before = reads
    const page: { readonly items: readonly unknown[]; readonly cursor: string | null } = await annotations.list(
      scope,
      run,
      { level: 'ERROR', ...(cursor === undefined ? {} : { cursor }) },
    )
    assert.ok(reads - before < annotationBatches, `${reads - before} records for a page`)
    found += page.items.length
    cursor = page.cursor
  }
  assert.deepEqual([found, reads], [1, annotationBatches])
  assert.ok(pages >= 2)
})

/** Requests whose body comes when it is finished. */
class SlowRequests {
  readonly sent: Promise<Response>[] = []
  readonly #bodies: ((text: string) => void)[] = []
  readonly #send: (body: ReadableStream<Uint8Array>) => Promise<Response>

  constructor({ service, id, token }: RunningFixture, path: string) {
    this.#send = (body) => {
      const init: RequestInit & { duplex: 'half' } = {
        method: 'POST',
        headers: { ...token, 'Content-Type': 'application/json' },
        body,
        duplex: 'half',
      }
      return service.fetch(new Request(`http://in.process/api/v1/projects/p/runs/${id}/${path}`, init))
    }
  }

  /** Resolves when the request is being read. */
  async begin(): Promise<void> {
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
      new Promise<void>((resolve) => {
        this.#bodies.push((text) => {
          controller.enqueue(Buffer.from(text))
          controller.close()
          resolve()
        })
      })
    const before = this.#bodies.length
    this.sent.push(this.#send(new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 })))
    while (this.#bodies.length === before) await new Promise((resolve) => setImmediate(resolve))
  }

  finish(at: number, text: string): Promise<Response> {
    this.#bodies[at](text)
    return this.sent[at]
  }
}

test('a run may send a bounded number of reports and files at once, and refused ones may be repeated', async (t) => {
  const fixture = await running(t, {
    limits: { artifactsMax: 2 },
    alone: 'each server bounds the requests that it reads',
  })
  for (const [path, most, textOf] of [
    [
      'report',
      4,
      (at: number) => JSON.stringify({ sequence: at + 1, logs: [{ atMs: 1, level: 'info', message: 'a line' }] }),
    ],
    ['artifacts?name=a.csv', 2, (at: number) => `file ${at}`],
  ] as const) {
    const requests = new SlowRequests(fixture, path)
    for (let at = 0; at < most; at++) await requests.begin()
    const refused = await fixture.ask('POST', `p/runs/${fixture.id}/${path}`, {}, fixture.token)
    assert.deepEqual(
      [refused.status, refused.json.code, refused.headers.get('retry-after')],
      [503, 'overloaded', '1'],
      path,
    )
    for (let at = 0; at < most; at++) assert.ok((await requests.finish(at, textOf(at))).ok, path)
  }
  assert.equal(
    (
      await fixture.ask(
        'POST',
        `p/runs/${fixture.id}/report`,
        { sequence: 5, status: 'succeeded', message: '' },
        fixture.token,
      )
    ).status,
    200,
  )
  const { artifacts } = await fixture.project.runs.get(fixture.id)
  assert.equal(artifacts.length, 2)
})

test('tasks of one key run in order, even after failures, and tasks of other keys run at once', async () => {
  const turns = new KeyedMutex()
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
