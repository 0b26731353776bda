import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { ObjectRecord } from '../../src/index.ts'
import { closesByItself } from '../support/patience.ts'
import { openService } from './served.ts'

async function* source(...pieces: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece)
}

const idsOf = async (batches: AsyncIterable<readonly ObjectRecord[]>): Promise<string[]> => {
  const ids: string[] = []
  for await (const records of batches) for (const { id } of records) ids.push(id)
  return ids
}

test('a project in process does the same as HTTP', async (t) => {
  const service = openService()
  t.after(() => service.close())
  const project = service.project('p/1')
  const text = '[{"id":"root","a":{"referencedId":"leaf"}},{"id":"leaf","n":1.0},{"m":2}]'
  const summary = await project.upload(source(text.slice(0, 30), text.slice(30)), 'application/json')
  assert.deepEqual([summary.objects, summary.created, summary.assigned.length], [3, 3, 1])
  assert.equal((await project.upload(source(gzipSync(text)), 'application/gzip')).created, 0)
  assert.deepEqual(await project.has(['leaf', 'none', 'leaf']), new Set(['leaf']))
  const root = await project.get('root')
  assert.deepEqual(
    [root?.id, root?.references, Buffer.from(root?.json ?? []).toString()],
    ['root', ['leaf'], '{"id":"root","a":{"referencedId":"leaf"}}'],
  )
  assert.equal(await project.get('none'), undefined)
  assert.deepEqual(await idsOf(project.graph('root')), ['root', 'leaf'])
  await assert.rejects(idsOf(project.graph('none')), { code: 'not_found' })
  await assert.rejects(project.has(['']), { code: 'invalid_id' })
  assert.throws(() => service.project('x'.repeat(129)), { code: 'invalid_id' })
  const projects: string[] = []
  for await (const batch of service.projects()) projects.push(...batch)
  assert.deepEqual(projects, ['p/1'])
  await project.remove()
  assert.equal(await project.get('root'), undefined)
})

test('calls in process can be aborted and leave nothing', async (t) => {
  const service = openService()
  t.after(() => service.close())
  const project = service.project('p')
  const controller = new AbortController()
  const stalled = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from('[{"id":"a"},')
    controller.abort(new Error('changed my mind'))
    await new Promise(() => undefined)
  }
  const upload = project.upload(stalled(), 'application/json', { signal: controller.signal })
  await assert.rejects(upload)
  assert.equal((await project.has(['a'])).size, 0)
  await project.upload(source('[{"id":"a"}]'), 'application/json')
  for await (const _ of project.graph('a')) break
  await assert.rejects(project.has(['a'], { signal: AbortSignal.abort(new Error('before')) }))
  await closesByItself(service)
})
