import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { test, type TestContext } from 'node:test'
import { mirrorProject, type ProjectAddress } from '../../src/archive/index.ts'
import { createClient } from '../../src/client/index.ts'
import { building, furnish, linesOf, PROJECT, site } from './support.ts'
import { listenUntilEnd } from '../support/listen.ts'

test('a mirror between two Stowage servers copies everything, then only new data', async (t) => {
  const [source, target] = [site(t), site(t)]
  const { models, modelId, runId } = await furnish(source)
  const first = await mirrorProject(source.address, target.address)
  const [house, copy] = [source, target].map(({ extension }) => extension.project(PROJECT))
  for (const { rootId } of models)
    assert.deepEqual(await linesOf(target.project, rootId), await linesOf(source.project, rootId))
  assert.deepEqual(await copy.versions.list(modelId), await house.versions.list(modelId))
  assert.deepEqual(await copy.runs.annotations(runId), await house.runs.annotations(runId))
  assert.notEqual(await target.project.get('loose'), undefined)
  assert.equal(first.sent, first.objects)

  const { rootId, objects } = building(2)
  const { sent } = await source.project.upload(objects.map(({ id, json }) => ({ id, json })))
  await house.versions.create(modelId, { rootObjectId: rootId, message: 'third' })
  await source.extension.idle()
  const second = await mirrorProject(source.address, target.address)
  assert.deepEqual([second.objects, second.sent], [sent, sent])
  assert.deepEqual(await linesOf(target.project, rootId), await linesOf(source.project, rootId))
  assert.deepEqual(await copy.versions.list(modelId), await house.versions.list(modelId))
})

test('a mirror restarts if the source was removed and filled again', async (t) => {
  const [source, target] = [site(t), site(t)]
  await furnish(source)
  await mirrorProject(source.address, target.address)
  await source.service.project(PROJECT).remove()
  const { models } = await furnish(source)
  await mirrorProject(source.address, target.address)
  for (const { rootId } of models)
    assert.deepEqual(await linesOf(target.project, rootId), await linesOf(source.project, rootId))
})

test('a mirror of a server with only the contract copies the named roots, then only what the target lacks', async (t) => {
  const [first, second] = [building(0), building(1)]
  for (const closure of [true, false]) {
    const target = site(t)
    const source = await contractServer(t, closure)
    source.put([...first.objects, ...second.objects])
    const whole = await mirrorProject(source.address, target.address, { roots: [first.rootId] })
    assert.equal(whole.sent, first.objects.length)
    source.sentIds.clear()
    await mirrorProject(source.address, target.address, { roots: [first.rootId, second.rootId] })
    const lines = (await linesOf(target.project, second.rootId)).map((line) => line.split('\t')[0])
    assert.deepEqual(lines, second.objects.map(({ id }) => id).sort())
    if (closure) assert.ok(source.sentIds.size < second.objects.length / 2, `${source.sentIds.size} were sent`)
    await assert.rejects(mirrorProject(source.address, target.address), { code: 'invalid_request' })
    await assert.rejects(mirrorProject(source.address, target.address, { roots: ['nobody'] }), { code: 'not_found' })
  }
})

test('a mirror to a server with only the contract copies objects', async (t) => {
  const source = site(t)
  const { models } = await furnish(source)
  const target = await contractServer(t, true)
  const { rootId } = models[1]
  await mirrorProject(source.address, target.address, { roots: [rootId] })
  const held = createClient(target.address).project(PROJECT)
  assert.deepEqual(await linesOf(held, rootId), await linesOf(source.project, rootId))
  const { records } = await mirrorProject(source.address, target.address)
  assert.equal(records, undefined)
  assert.notEqual(await held.get('loose'), undefined)
})

interface ContractServer {
  readonly address: ProjectAddress
  readonly put: (objects: readonly { readonly id: string; readonly json: string }[]) => void
  /** Ids of the objects that were sent. */
  readonly sentIds: Set<string>
}

/** The five endpoints of the contract over a map, and nothing else: no HEAD, no ranges, no headers of ours. */
async function contractServer(t: TestContext, withClosure: boolean): Promise<ContractServer> {
  const held = new Map<string, string>()
  const sentIds = new Set<string>()
  const put: ContractServer['put'] = (objects) => {
    for (const { id, json } of objects) held.set(id, withClosure ? json : json.replace(/,"__closure":\{[^}]*\}/, ''))
  }
  const line = (id: string): string => {
    sentIds.add(id)
    return `${id}\t${held.get(id)}\n`
  }
  const below = (root: string): string[] => {
    const seen = new Set([root])
    for (const id of seen)
      for (const [, child] of (held.get(id) ?? '').matchAll(/"referencedId":"([^"]+)"/g)) seen.add(child)
    return [...seen]
  }
  const answer = (method: string, path: string, body: Buffer): readonly [number, string, string] => {
    const [, , , id = '', single] = path.split('?')[0].split('/').map(decodeURIComponent)
    const ids = (): string[] => JSON.parse((JSON.parse(body.toString()) as { objects: string }).objects) as string[]
    if (method === 'POST' && path.startsWith('/api/diff/'))
      return [200, 'application/json', JSON.stringify(Object.fromEntries(ids().map((one) => [one, held.has(one)])))]
    if (method === 'POST' && path.startsWith('/api/getobjects/'))
      return [
        200,
        'text/plain',
        ids()
          .filter((one) => held.has(one))
          .map(line)
          .join(''),
      ]
    if (method === 'POST' && path.startsWith('/objects/')) {
      const objects = JSON.parse(gunzipSync(body).toString()) as { id: string }[]
      put(objects.map((object) => ({ id: object.id, json: JSON.stringify(object) })))
      return [200, 'application/json', '{}']
    }
    if (method !== 'GET' || !path.startsWith('/objects/')) return [404, 'text/plain', 'no such page']
    if (!held.has(id)) return [404, 'application/json', '{"message":"object not found","statusCode":404}']
    if (single === 'single') return [200, 'application/json', line(id).slice(id.length + 1, -1)]
    return [200, 'text/plain', below(id).map(line).join('')]
  }
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const [status, type, text] = answer(req.method ?? '', req.url ?? '', Buffer.concat(chunks))
      res.writeHead(status, { 'Content-Type': type }).end(text)
    })
  })
  const { url } = await listenUntilEnd(t, server)
  const address = { url, token: 'token', projectId: PROJECT, retry: false } as const
  return { address, put, sentIds }
}
