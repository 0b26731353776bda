import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { building } from '../../bench/model/building.ts'
import { buildModel, jsonArray, reachable, referencedIds } from './model.ts'

test('a model has exactly the requested objects, each id once, all reachable from the last', () => {
  for (const objects of [4, 5, 23, 24, 100, 1_001, 5_000]) {
    const model = buildModel({ objects })
    assert.equal(model.objects.length, objects)
    assert.equal(model.byId.size, objects)
    assert.equal(reachable(model).size, objects)
  }
})

test('ids are the hash of the object without its id, and children come before their parents', () => {
  const seen = new Set<string>()
  for (const { id, json } of buildModel({ objects: 2_000 }).objects) {
    const withoutId = json.replace(`"id":"${id}",`, '')
    assert.equal(createHash('sha256').update(withoutId).digest('hex').slice(0, 32), id)
    assert.equal(JSON.parse(json).id, id)
    for (const child of referencedIds(json)) assert.ok(seen.has(child))
    seen.add(id)
  }
})

test('a closure names every descendant with its smallest depth', () => {
  const model = buildModel({ objects: 1_500 })
  const root = JSON.parse(model.byId.get(model.rootId) ?? '') as {
    totalChildrenCount: number
    __closure: Record<string, number>
  }
  const depths = new Map([[model.rootId, 0]])
  for (const [id, depth] of depths) {
    for (const child of referencedIds(model.byId.get(id) ?? '')) if (!depths.has(child)) depths.set(child, depth + 1)
  }
  depths.delete(model.rootId)
  assert.deepEqual(new Map(Object.entries(root.__closure)), depths)
  assert.equal(root.totalChildrenCount, 1_499)
})

test('without closures at the root, groups keep theirs, and the option none removes all', () => {
  const rootLess = buildModel({ objects: 1_500, closure: 'root-less' })
  assert.ok(!rootLess.byId.get(rootLess.rootId)?.includes('__closure'))
  assert.ok(rootLess.objects.some(({ json }) => json.includes('"Zone 0.0"') && json.includes('__closure')))
  assert.ok(buildModel({ objects: 1_500, closure: false }).objects.every(({ json }) => !json.includes('__closure')))
  assert.throws(() => building({ objects: 300_000 }).next(), RangeError)
})

test('the same options give the same model, and another seed gives another', () => {
  assert.deepEqual(buildModel({ objects: 500, seed: 3 }), buildModel({ objects: 500, seed: 3 }))
  const other = buildModel({ objects: 500, seed: 4 })
  assert.notEqual(other.rootId, buildModel({ objects: 500, seed: 3 }).rootId)
})

test('a second version changes about 5 objects in 100, including the root', () => {
  const first = buildModel({ objects: 5_000, closure: 'root-less' })
  const second = buildModel({ objects: 5_000, closure: 'root-less', revision: 1 })
  const changed = second.objects.filter(({ id }) => !first.byId.has(id)).length / 5_000
  assert.ok(changed > 0.04 && changed < 0.065, `${changed} changed`)
  assert.ok(!first.byId.has(second.rootId))
  assert.equal(reachable(second).size, 5_000)
})

test('objects have the size and compress like those of real models', () => {
  const json = jsonArray(buildModel({ objects: 10_000 }).objects)
  const bytes = Buffer.byteLength(json)
  assert.ok(bytes / 10_000 > 1_100, `${bytes / 10_000} bytes an object`)
  const ratio = bytes / gzipSync(json).length
  assert.ok(ratio > 5 && ratio < 7, `ratio ${ratio}`)
})
