import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StowageError } from '../../src/index.ts'
import { type EndpointName, OBJECT_ROUTES, objectResources } from '../../src/http/object-routes.ts'
import type { Operation } from '../../src/http/exchange.ts'
import { decodeParams, matchesPathEnd, type Match, normalizePrefix, RouteTable } from '../../src/http/router.ts'
import { splitTarget } from '../../src/http/target.ts'
import { bothCores, errorOf, idList, jsonUpload } from './served.ts'

const unused: Operation<unknown> = () => Promise.reject(new Error('only matched'))
const resources = objectResources({
  diff: unused,
  upload: unused,
  single: unused,
  list: unused,
  graph: unused,
  stream: unused,
})

function match(path: string, prefix = ''): Match<unknown> | undefined {
  return new RouteTable(Object.values(resources), prefix).match(path)
}

function route(path: string, prefix = ''): string | undefined {
  const found = match(path, prefix)?.resource.path
  return (Object.keys(OBJECT_ROUTES) as EndpointName[]).find((name) => OBJECT_ROUTES[name].path === found)
}

test('exactly the paths of the contract have a route', () => {
  assert.equal(route('/api/diff/p'), 'diff')
  assert.equal(route('/objects/p'), 'upload')
  assert.equal(route('/objects/p/o'), 'graph')
  assert.equal(route('/objects/p/o/single'), 'single')
  assert.equal(route('/objects/p/single'), 'graph')
  assert.equal(route('/objects/p/single/single'), 'single')
  assert.equal(route('/api/getobjects/p'), 'list')
  assert.equal(route('/api/v2/projects/p/object-stream'), 'stream')
  assert.equal(route('/api/v2/projects/p/object-stream/'), 'stream')
  const none = [
    '/',
    '',
    '/objects',
    '/objects/',
    '/objects/p/',
    '/objects//o',
    '/objects/p/o/',
    '/objects/p/o/single/',
    '/api/diff/p/',
    '/api/objects/p',
    '/OBJECTS/p',
    '/objects/p/o/twice',
    '//objects/p',
  ]
  for (const path of none) assert.equal(route(path), undefined, path)
})

test('a prefix is a whole number of segments', () => {
  assert.equal(normalizePrefix('models/'), '/models')
  assert.equal(normalizePrefix('/a/b'), '/a/b')
  assert.equal(normalizePrefix('/'), '')
  assert.throws(() => normalizePrefix('/a?b'), TypeError)
  assert.equal(route('/models/objects/p', '/models'), 'upload')
  assert.equal(route('/modelsobjects/p', '/models'), undefined)
  assert.equal(route('/objects/p', '/models'), undefined)
  assert.ok(matchesPathEnd('/any/where/objects/p', '/objects/:projectId'))
  assert.ok(!matchesPathEnd('/objects/p/o', '/objects/:projectId'))
})

test('segments are decoded once, after splitting', () => {
  const params = (path: string): unknown => {
    const found = match(path)
    assert.ok(found)
    const decoded = decodeParams(found)
    found.resource.check?.(decoded)
    return decoded
  }
  assert.deepEqual(params('/objects/p%2Fq/a%2Fb'), { projectId: 'p/q', objectId: 'a/b' })
  assert.deepEqual(params('/objects/p/%252F'), { projectId: 'p', objectId: '%2F' })
  for (const bad of ['/objects/p/%', '/objects/p/%zz', '/objects/p/%ff', '/objects/%E0%A4/o']) {
    assert.throws(
      () => params(bad),
      (error) => error instanceof StowageError && error.code === 'invalid_request',
      bad,
    )
  }
  for (const bad of [
    '/objects/p/%00',
    `/objects/p/${'x'.repeat(513)}`,
    `/objects/${'x'.repeat(129)}/o`,
    '/objects/p/%C2%85',
  ]) {
    assert.throws(
      () => params(bad),
      (error) => error instanceof StowageError && error.code === 'invalid_id',
      bad,
    )
  }
})

test('targets may be absolute and have a query', () => {
  assert.deepEqual(splitTarget('/a/b?c=d?e'), { path: '/a/b', query: 'c=d?e' })
  assert.deepEqual(splitTarget('http://host:80/a%2Fb?x'), { path: '/a%2Fb', query: 'x' })
  assert.deepEqual(splitTarget('*'), { path: '*', query: '' })
})

const HOSTILE = [
  'a/b',
  '%2F',
  '%252F',
  'single',
  '..',
  '../../etc',
  'C:\\x',
  '__proto__',
  'constructor',
  'a b+c',
  'q?x=1#y',
  '"\\',
  'ü€😀',
  'x'.repeat(512),
  '€'.repeat(170),
  '@1234567890abcdef',
  ' ',
  '|;,',
]

test('hostile ids survive a round trip over both cores', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    const created = await ask('/objects/p%2F1', jsonUpload(HOSTILE.map((id, n) => ({ id, n }))))
    assert.deepEqual(
      await created.json(),
      { objects: HOSTILE.length, created: HOSTILE.length, differing: 0, rewritten: 0, assigned: [], assignedCount: 0 },
      core,
    )
    for (const [n, id] of HOSTILE.entries()) {
      // The URL standard itself takes a segment "%2E%2E" for "..", before any server sees it.
      if (id === '..') continue
      const single = await ask(`/objects/p%2F1/${encodeURIComponent(id)}/single`)
      assert.deepEqual(await single.json(), { id, n }, `${core}: single ${id}`)
      const graph = await ask(`/objects/p%2F1/${encodeURIComponent(id)}`)
      assert.deepEqual(await graph.json(), [{ id, n }], `${core}: graph ${id}`)
    }
    const held = await (await ask('/api/diff/p%2F1', idList([...HOSTILE, 'absent', '']))).text()
    for (const id of HOSTILE) assert.ok(held.includes(`${JSON.stringify(id)}:true`), `${core}: diff ${id}`)
    assert.ok(held.includes('"absent":false') && held.includes('"":false'), core)
    assert.equal((await errorOf(await ask('/objects/p/%ff'))).code, 'invalid_request', core)
    assert.equal((await errorOf(await ask('/objects/p/%00/single'))).code, 'invalid_id', core)
  }
})

test('HEAD works wherever GET does, OPTIONS everywhere, and other methods get 405 with Allow', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await (await ask('/objects/p', jsonUpload([{ id: 'a' }]))).arrayBuffer()
    for (const path of ['/objects/p/a', '/objects/p/a/single']) {
      const head = await ask(path, { method: 'HEAD' })
      assert.equal(head.status, 200, core)
      assert.equal(await head.text(), '', core)
      const options = await ask(path, { method: 'OPTIONS' })
      assert.deepEqual([options.status, options.headers.get('allow')], [204, 'GET, HEAD, OPTIONS'], core)
      const wrong = await ask(path, { method: 'DELETE' })
      assert.equal(wrong.headers.get('allow'), 'GET, HEAD, OPTIONS', core)
      assert.deepEqual((await errorOf(wrong)).code, 'method_not_allowed', core)
    }
    for (const path of ['/objects/p', '/api/diff/p', '/api/getobjects/p', '/api/v2/projects/p/object-stream/']) {
      const options = await ask(path, { method: 'OPTIONS' })
      assert.deepEqual([options.status, options.headers.get('allow')], [204, 'POST, OPTIONS'], core)
      assert.equal((await errorOf(await ask(path))).status, 405, core)
    }
    assert.deepEqual((await errorOf(await ask('/nothing'))).code, 'route_not_found', core)
  }
})
