import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  contentId,
  deserialize,
  type ObjectText,
  Origins,
  serialize,
  type SerializeOptions,
} from '../../src/client/index.ts'
import { buildModel } from '../support/model.ts'
import { byId, collect, serviceAndClient } from './support.ts'

type Members = Record<string, unknown>

/** The objects of a value, parsed, the value's own last. */
async function objectsOf(value: object, options?: SerializeOptions): Promise<Members[]> {
  return (await collect(serialize(value, options))).map(({ json }) => JSON.parse(json) as Members)
}

async function roundTrip<T extends object>(value: T): Promise<T> {
  const texts = await collect(serialize(value))
  return deserialize<T>([texts], texts[texts.length - 1].id, { keepIds: false })
}

const VALUE = {
  speckle_type: 'Base',
  name: 'ü\u2028',
  empty: {},
  none: null,
  list: [1, [2, { deep: true }], []],
  '@wall': { name: 'wall', inline: { '@window': { name: 'window', '@(2)vertices': [1, 2, 3, 4, 5] } } },
  '@elements': [{ n: 1 }, 7, null, [{ n: 2 }]],
  '@(3)points': [{ x: 1, '@tag': { t: 'tag' } }, { x: 2 }, { x: 3 }, { x: 4 }],
  '@(2)none': [],
  '@text': 'plain',
}

test('a serialized value comes back unchanged', async () => {
  assert.deepEqual(await roundTrip(VALUE), VALUE)
  for (const value of [
    {},
    { a: 1 },
    { '@a': {} },
    { '@': { b: 1 } },
    { '@()a': [1, 2] },
    JSON.parse('{"__proto__":{"a":1},"@x":{"__proto__":[{"@y":{}}]},"constructor":1}') as object,
  ]) {
    assert.deepEqual(await roundTrip(value), value)
  }
})

test('names decide which values become objects, ids are hashes, and closures have the smallest depths', async () => {
  const objects = await objectsOf(VALUE)
  const find = (matches: (object: Members) => boolean): Members => objects.find(matches) ?? assert.fail()
  const root = objects[objects.length - 1]
  const [wall, window, tag] = [
    find((o) => o.name === 'wall'),
    find((o) => o.name === 'window'),
    find((o) => o.t === 'tag'),
  ]
  const chunks = objects.filter((o) => o.speckle_type === 'Speckle.Core.Models.DataChunk')
  assert.deepEqual(new Set(chunks.map(({ data }) => JSON.stringify(data))).size, 5)
  assert.ok(chunks.every(({ data }) => (data as unknown[]).length <= 3))
  assert.equal(objects.length, 3 + chunks.length + 2 + 1)
  assert.deepEqual(root['@wall'], { speckle_type: 'reference', referencedId: wall.id })
  const vertices = window['@(2)vertices'] as { referencedId: string }[]
  assert.equal(vertices.length, 3)
  assert.deepEqual(wall.__closure, {
    [window.id as string]: 1,
    ...Object.fromEntries(vertices.map(({ referencedId }) => [referencedId, 2])),
  })
  assert.equal(wall.totalChildrenCount, 4)
  assert.equal(root.totalChildrenCount, objects.length - 1)
  assert.equal((root.__closure as Record<string, number>)[tag.id as string], 2)
  assert.deepEqual([tag.totalChildrenCount, '__closure' in tag], [0, false])
  for (const { id, json } of await collect(serialize(VALUE)))
    assert.equal(await contentId(json.replace(`"id":"${id}",`, '')), id)
})

test('closures contain the shortest depth, and shared children are written once', async () => {
  const leaf = { name: 'leaf' }
  const middle = { '@leaf': leaf }
  const value = { '@far': { '@middle': middle }, '@near': leaf, '@again': [middle, leaf], '@equal': { name: 'leaf' } }
  const objects = await objectsOf(value)
  assert.equal(objects.length, 4)
  const root = objects[3]
  const leafId = objects.find(({ name }) => name === 'leaf')?.id as string
  assert.equal((root.__closure as Record<string, number>)[leafId], 1)
  const texts = await collect(serialize(value))
  const back = await deserialize<{ '@far': { '@middle': { '@leaf': object } }; '@near': object }>([texts], texts[3].id)
  assert.equal(back['@far']['@middle']['@leaf'], back['@near'])
})

test('the id of a part does not depend on other parts', async () => {
  const part = (): object => ({
    '@a': { '@x': { n: 1 }, '@y': { n: 2 } },
    '@b': { n: 2 },
    '@c': [{ n: 3 }, { '@d': { n: 1 } }],
  })
  const alone = await objectsOf(part())
  const many = await objectsOf({
    '@before': Array.from({ length: 700 }, (_, n) => ({ n: { n } })),
    '@part': part(),
    '@x': { n: 2, '@more': { n: 3 } },
  })
  const ids = new Set(many.map(({ id }) => id))
  for (const { id } of alone) assert.ok(ids.has(id))
})

test('cycles and values that JSON cannot hold are errors that name the place', async () => {
  const inline: Members = { a: {} }
  inline.a = { b: [inline] }
  const detached: Members = { '@a': {} }
  detached['@a'] = { list: [{ '@b': detached }] }
  const deep = JSON.parse(`${'{"a":'.repeat(1_001)}1${'}'.repeat(1_001)}`) as object
  for (const [value, message] of [
    [inline, /a\.b\[0\].*cycle/],
    [detached, /@a\.list\[0\]\.@b.*cycle/],
    [{ '@a': [{ x: Number.NaN }] }, /@a\[0\]\.x" is NaN/],
    [{ a: 1n }, /"a" is of type bigint/],
    [{ a: new Map() }, /"a" is a Map/],
    [{ a: [undefined] }, /a\[0\]" is of type undefined/],
    [{ a: () => 1 }, /function/],
    [deep, /deeper than 1000 levels/],
    [{ '@(0)a': [1] }, /pieces of 0 items/],
    [{ '@a': { text: 'x'.repeat(11_000_000) } }, /"@a" makes an object of more than 10485760 bytes/],
  ] as [object, RegExp][]) {
    await assert.rejects(
      collect(serialize(value)),
      (error: Error & { code?: string }) => error.code === 'invalid_value' && message.test(error.message),
      String(message),
    )
  }
  for (const value of [[], { speckle_type: 'reference', referencedId: 'x' }])
    await assert.rejects(collect(serialize(value)), { code: 'invalid_value' })
})

test('values that JSON drops are refused, wrapped primitives become primitives, and toJSON also applies to the root', async () => {
  for (const [value, message] of [
    [new Date(Number.NaN), /an invalid date/],
    [/x/, /a RegExp/],
    [new TypeError('x'), /an? TypeError/],
    [new WeakSet(), /a WeakSet/],
    [new Blob([]), /a Blob/],
    [new DataView(new ArrayBuffer(1)), /a DataView/],
    [{ speckle_type: 'reference', referencedId: 'x', n: 1n }, /"at\.n" is of type bigint/],
    [Object(1n), /of type bigint/],
  ] as [unknown, RegExp][]) {
    await assert.rejects(
      collect(serialize({ at: value })),
      (error: Error & { code?: string }) => error.code === 'invalid_value' && message.test(error.message),
      String(message),
    )
  }
  const boxed = { a: Object(5) as unknown, b: Object('text') as unknown, c: [Object(true) as unknown] }
  assert.deepEqual(await roundTrip(boxed), { a: 5, b: 'text', c: [true] })
  class Wall {
    readonly height = 3
    toJSON(): object {
      return { kind: 'wall', height: this.height }
    }
  }
  assert.deepEqual(await roundTrip(new Wall()), { kind: 'wall', height: 3 })
  await assert.rejects(collect(serialize(new Date())), { code: 'invalid_value' })
})

test('nested chunks stay as they are at any depth, and repeated arrays of one chunk end', async () => {
  const piece = (id: string, data: readonly unknown[]): ObjectText => ({
    id,
    json: JSON.stringify({ id, speckle_type: 'Speckle.Core.Models.DataChunk', data }),
  })
  const reference = (referencedId: string): object => ({ speckle_type: 'reference', referencedId })
  const root = {
    id: 'root',
    json: JSON.stringify({ id: 'root', list: Array.from({ length: 10 }, () => reference('p-20000')) }),
  }
  const pieces = Array.from({ length: 20_001 }, (_, n) =>
    piece(`p-${n}`, n === 0 ? [1, 2] : Array.from({ length: n < 30 ? 10 : 1 }, () => reference(`p-${n - 1}`))),
  )
  const value = await deserialize<{ list: { id: string }[] }>([[root, ...pieces]], 'root')
  assert.deepEqual(
    value.list.map(({ id }) => id),
    Array.from({ length: 10 }, () => 'p-19999'),
  )
  const long = [{ ...root, json: root.json.replaceAll('p-20000', 'p-0') }, pieces[0]]
  assert.equal((await deserialize<{ list: number[] }>([long], 'root', { joinedItemsMax: 20 })).list.length, 20)
  await assert.rejects(deserialize([long], 'root', { joinedItemsMax: 19 }), {
    code: 'invalid_answer',
    message: /more than 19 items/,
  })
})

test('graphs may be deeper than the call stack, and closures have a limit', async () => {
  let chain: Members = { n: 0 }
  for (let n = 1; n < 1_100; n++) chain = { n, '@next': chain }
  const texts = await collect(serialize(chain, { closureIdsMax: 10 }))
  assert.equal(texts.length, 1_100)
  assert.ok(texts[10].json.includes('__closure') && !texts[11].json.includes('__closure'))
  assert.ok(texts[1_099].json.includes('"totalChildrenCount":1099'))
  let depth = 0
  for (
    let link: unknown = await deserialize([texts], texts[1_099].id);
    link !== undefined;
    link = (link as Members)['@next']
  )
    depth += 1
  assert.equal(depth, 1_100)
})

test('dates become texts, typed arrays become lists, undefined is dropped, and type and reference names are configurable', async () => {
  const value = { at: new Date(0), gone: undefined, '@(2)list': new Float32Array([1, 2, 3]), '@x': { kind: 'X' } }
  const objects = await objectsOf(value, {
    typeField: 'kind',
    chunkType: 'Piece',
    newId: (text) => `id-${text.length}-${text.at(-20)}`,
  })
  const root = objects[objects.length - 1]
  assert.equal(root.at, '1970-01-01T00:00:00.000Z')
  assert.ok(!('gone' in root) && (root.id as string).startsWith('id-'))
  assert.equal((root['@x'] as Members).kind, 'reference')
  const texts = await collect(serialize(value, { typeField: 'kind', chunkType: 'Piece' }))
  const back = await deserialize<{ '@(2)list': number[] }>([texts], texts[texts.length - 1].id, {
    typeField: 'kind',
    chunkType: 'Piece',
  })
  assert.deepEqual(back['@(2)list'], [1, 2, 3])
})

test('references without their object are an error or are kept, and count as children', async () => {
  const value = { '@known': { speckle_type: 'reference', referencedId: 'elsewhere' } }
  const texts = await collect(serialize(value))
  assert.deepEqual((JSON.parse(texts[0].json) as Members).__closure, { elsewhere: 1 })
  await assert.rejects(deserialize([texts], texts[0].id), { code: 'objects_missing', ids: ['elsewhere'] })
  assert.deepEqual(await deserialize([texts], texts[0].id, { missing: 'keep', keepIds: false }), value)
  await assert.rejects(deserialize([texts], 'nobody'), { code: 'not_found' })
  await assert.rejects(deserialize([[{ id: 'a', json: '[1]' }]], 'a'), { code: 'invalid_answer' })
})

test('a received model is sent under the same ids, and a change renews only its ancestors', async (t) => {
  const { project } = await serviceAndClient(t)
  const model = buildModel({ objects: 800 })
  await project.upload(foreign(model.objects))
  const root = `x${model.rootId}`
  interface Element {
    name: string
    displayValue: { vertices: number[] }[]
  }
  const value = await project.receive<{ elements: { elements: { elements: Element[] }[] }[] }>(root)
  const unchanged = await project.send(value)
  assert.deepEqual([unchanged.root, unchanged.sent, unchanged.held], [root, 0, 800])

  const group = value.elements[0].elements[0]
  group.elements[0].name = 'another'
  group.elements[1] = { ...group.elements[1], name: 'copied' }
  group.elements[2].displayValue[0].vertices[0] += 1
  group.elements[3].displayValue[0].vertices = group.elements[3].displayValue[0].vertices.map((number) => number * 2)
  const again = await project.send(value)
  const chunksOf = (element: Element): number => Math.ceil(element.displayValue[0].vertices.length / 100)
  assert.ok(
    again.sent >= 4 + 2 + 2 + 3 &&
      again.sent <= 4 + 4 + 3 + 2 * chunksOf(group.elements[3]) + 2 * chunksOf(group.elements[2]),
    `${again.sent} objects were new`,
  )
  assert.notEqual(again.root, root)
  const back = await project.receive<typeof value>(again.root)
  assert.deepEqual(withoutMeta(back), withoutMeta(value))
})

test('an inline value stays inline beside changed ones, and a new value is detached where its siblings were', async () => {
  const reference = (referencedId: string): object => ({ speckle_type: 'reference', referencedId })
  const texts = [
    { id: 'leaf', n: 1 },
    { id: 'piece', speckle_type: 'Speckle.Core.Models.DataChunk', data: [{ '@inside': { n: 2 } }] },
    {
      id: 'root',
      list: [{ inline: 1 }, reference('leaf')],
      holder: { deep: { of: [reference('leaf')], '@plain': { n: 3 } } },
      '@named': { inline: 2 },
      '@mixed': [[{ inline: 3 }], reference('leaf')],
      pieces: [reference('piece')],
      '@data': { x: 1 },
    },
  ].map((object) => ({ id: object.id, json: JSON.stringify(object) }))
  interface Root {
    list: Members[]
    holder: { deep: { of: Members[] } }
    '@named': Members
    moved?: Members
  }
  const received = async (): Promise<[Root, Origins]> => {
    const origins = new Origins()
    return [await deserialize<Root>([texts], 'root', { origins }), origins]
  }
  const [value, origins] = await received()
  assert.deepEqual((await collect(serialize(value, { origins }))).map(({ id }) => id).toSorted(), [
    'leaf',
    'piece',
    'root',
  ])
  const [changed, known] = await received()
  changed.list.push({ n: 'new in a list' })
  changed.holder.deep.of[0] = { n: 'new further in' }
  const objects = (await collect(serialize(changed, { origins: known }))).map(({ json }) => JSON.parse(json) as Members)
  assert.deepEqual(
    objects
      .map(({ n }) => n)
      .filter((n) => typeof n === 'string')
      .toSorted(),
    ['new further in', 'new in a list'],
  )
  const root = objects.at(-1) as unknown as Root
  assert.deepEqual([root.list[0], root['@named']], [{ inline: 1 }, { inline: 2 }])
  const [moving, moved] = await received()
  const [inline] = moving.list
  Object.assign(moving, { '@elsewhere': inline })
  assert.equal(
    (await collect(serialize(moving, { origins: moved }))).length,
    4,
    'under another name with "@" it stands by itself',
  )
})

test('an array of one chunk or an empty chunk grows in chunks of a sensible size', async () => {
  const piece = (id: string, data: readonly number[]): ObjectText => ({
    id,
    json: JSON.stringify({ id, speckle_type: 'Speckle.Core.Models.DataChunk', data }),
  })
  const texts = [
    piece('empty', []),
    piece('three', [1, 2, 3]),
    {
      id: 'root',
      json: JSON.stringify({
        id: 'root',
        ...Object.fromEntries(
          [
            ['none', 'empty'],
            ['@(50)named', 'three'],
            ['few', 'three'],
          ].map(([name, referencedId]) => [name, [{ speckle_type: 'reference', referencedId }]]),
        ),
      }),
    },
  ]
  for (const replaces of [false, true]) {
    const origins = new Origins()
    const value = await deserialize<Record<string, number[]>>([texts], 'root', { origins })
    assert.deepEqual((await collect(serialize(value, { origins }))).map(({ id }) => id).toSorted(), [
      'empty',
      'root',
      'three',
    ])
    for (const name of ['none', '@(50)named', 'few']) {
      if (replaces) value[name] = [...value[name]]
      value[name].push(...Array.from({ length: 500 }, (_, n) => n))
    }
    const objects = (await collect(serialize(value, { origins }))).map(
      ({ json }) => JSON.parse(json) as Record<string, readonly unknown[]>,
    )
    const root = objects.at(-1) as Record<string, readonly unknown[]>
    assert.deepEqual([root.none.length, root['@(50)named'].length, root.few.length], replaces ? [1, 11, 1] : [2, 11, 2])
  }
})

test('a client can send a model that another client received to another project, under the same ids', async (t) => {
  const [from, to] = [await serviceAndClient(t), await serviceAndClient(t)]
  const model = buildModel({ objects: 300 })
  await from.project.upload(foreign(model.objects))
  const origins = new Origins()
  const value = await from.withOptions({ origins }).receive(`x${model.rootId}`)
  const { root, created } = await to.withOptions({ origins }).send(value)
  assert.deepEqual([root, created], [`x${model.rootId}`, 300])
  assert.deepEqual(await to.project.receive(root), value)
})

test('a model survives a round trip through a service', async (t) => {
  const { project } = await serviceAndClient(t)
  const { root, created } = await project.send(VALUE)
  assert.ok(created > 5)
  assert.deepEqual(await project.receive(root, { keepIds: false }), VALUE)
  assert.equal((await project.receive(root)).id, root)
  assert.equal(byId(await collect(project.graphTexts(root, { verifyIds: true }))).size, created)
  assert.equal((await project.send(VALUE)).sent, 0)
})

test('another client forgets origins, and ids that are hashes stay the same', async () => {
  const texts = await collect(serialize(VALUE))
  const root = texts[texts.length - 1].id
  const value = await deserialize([texts], root)
  assert.equal((await collect(serialize(value))).at(-1)?.id, root)
  const origins = new Origins()
  const named: ObjectText[] = [{ id: 'mine', json: '{"b":1.0,"id":"mine","a":{"x":[]}}' }]
  const mine = await deserialize<Members>([named], 'mine', { origins })
  assert.equal((await collect(serialize(mine, { origins })))[0].id, 'mine')
  mine.b = 2
  assert.notEqual((await collect(serialize(mine, { origins })))[0].id, 'mine')
})

/**
 * The same objects as somebody else would have made them: other ids, `id` last, other spellings of references and
 * numbers.
 */
function foreign(objects: readonly ObjectText[]): ObjectText[] {
  return objects.map(({ id, json }) => {
    const renamed = json
      .replace(`{"id":"${id}",`, '{')
      .replace(/"__closure":\{[^}]*\}/, (closure) => closure.replace(/"([0-9a-f]{32})"/g, '"x$1"'))
      .replace(
        /\{"speckle_type":"reference","referencedId":"([0-9a-f]{32})"\}/g,
        '{"referencedId":"x$1","__closure":null,"speckle_type":"reference"}',
      )
    return { id: `x${id}`, json: `${renamed.slice(0, -1)},"revision":1.0,"id":"x${id}"}` }
  })
}

function withoutMeta(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, inner: unknown) => (key === 'id' || key === 'totalChildrenCount' ? undefined : inner)),
  )
}
