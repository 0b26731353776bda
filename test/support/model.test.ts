import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { building } from '../../bench/model/building.ts'
import { buildModel, reachable, referencedIds } from './model.ts'

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

test('objects have the size of real ones, and compress as their profile says', () => {
  const lines = (profile: 'building' | 'geometry'): Buffer =>
    Buffer.from(
      buildModel({ objects: 5_000, closure: 'root-less', profile })
        .objects.map(({ id, json }) => `${id}\t${json}\n`)
        .join(''),
    )
  for (const [profile, ratioMin, ratioMax] of [
    ['building', 7, 9],
    ['geometry', 2.4, 2.6],
  ] as const) {
    const text = lines(profile)
    assert.ok(text.length / 5_000 > 1_800 && text.length / 5_000 < 2_500, `${text.length / 5_000} bytes an object`)
    const ratio = text.length / gzipSync(text, { level: 6 }).length
    assert.ok(ratio > ratioMin && ratio < ratioMax, `${profile}: ${ratio} : 1`)
  }
})

test('a shape can differ from its profile in depth, width, sharing and size, with exactly as many objects', () => {
  const shape = { nesting: 3, groupElements: 10, sharing: 0.9, parameters: 12 }
  const [plain, shaped] = [buildModel({ objects: 2_000 }), buildModel({ objects: 2_000, shape })]
  assert.equal(reachable(shaped).size, 2_000)
  const groups = (objects: readonly { json: string }[], name: string): number =>
    objects.filter(({ json }) => json.includes('"collectionType":"zone"') && json.includes(name)).length
  assert.equal(groups(plain.objects, 'around it'), 0)
  assert.ok(groups(shaped.objects, 'around it 3') > 0)
  assert.equal(groups(shaped.objects, 'around it 1'), groups(shaped.objects, 'around it 3'))
  const elements = ({ objects }: typeof plain): readonly string[] =>
    objects.flatMap(({ json }) => (json.includes('"Objects.Data.DataObject"') ? [json] : []))
  assert.ok(elements(shaped).length > 1.2 * elements(plain).length, 'shared meshes leave room for more elements')
  assert.ok(elements(shaped)[0].length < 0.6 * elements(plain)[0].length, 'fewer parameters make smaller elements')
})

test('wrong closures leave out descendants and name objects that do not exist', () => {
  const model = buildModel({ objects: 1_000, closure: 'wrong' })
  assert.equal(reachable(model).size, 1_000)
  const claims = model.objects.flatMap(({ id, json }) => {
    const closure = (JSON.parse(json) as { __closure?: Record<string, number> }).__closure
    return closure === undefined ? [] : [{ claimed: Object.keys(closure), below: reachable(model, id) }]
  })
  assert.ok(claims.length > 100)
  for (const { claimed, below } of claims) {
    assert.ok(claimed.some((id) => !model.byId.has(id)))
    assert.ok(claimed.filter((id) => below.has(id)).length <= below.size / 2)
  }
})
