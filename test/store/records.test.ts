import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { StowageError } from '../../src/errors.ts'
import { Bitmap } from '../../src/store/bytes/bitmap.ts'
import { ByteReader, ByteWriter } from '../../src/store/bytes/byte-codec.ts'
import {
  condemnedBlobKey,
  garbageKey,
  headKey,
  keyBounds,
  keyParts,
  mergeKey,
  objectKeyMaker,
  objectKeyParts,
  packKey,
  pendingKey,
  planKey,
  retiredContentKey,
} from '../../src/store/records/keys.ts'
import {
  decodeHead,
  decodeMark,
  decodeCondemnedBlob,
  decodeMerge,
  decodePlanRecord,
  encodeHead,
  encodeMark,
  encodeCondemnedBlob,
  encodeMerge,
  encodePlanRecord,
} from '../../src/store/records/records.ts'
import {
  decodeObjectRecord,
  encodeObjectRecord,
  type ObjectRecord,
  placeAt,
} from '../../src/store/records/object-record.ts'
import {
  decodePackRecord,
  encodePackRecord,
  isActive,
  newPackRecord,
  type PackRecord,
} from '../../src/store/records/pack-record.ts'
import { decodeRetiredContent, encodeRetiredContent } from '../../src/store/records/retired-content.ts'
import { seeded } from './graphs.ts'

const ID = '00112233445566778899aabbccddeeff'
const HEAD = { generation: 3, sequence: 2 ** 40, removed: false, layout: 2 ** 33 }
const OBJECT: ObjectRecord = {
  state: 'live',
  epoch: 2 ** 31,
  sequence: 2 ** 40 + 5,
  ordinal: 499_999,
  blockStart: 4_000_000_000,
  blockStoredBytes: 1_000,
  blockRawBytes: 16_000,
  lineStart: 15_000,
  textBytes: 2 ** 28,
  textCrc32: 0xdeadbeef,
  previous: undefined,
}
const MOVED: ObjectRecord = {
  ...OBJECT,
  state: 'condemned',
  previous: { fromLayout: 2 ** 34, sequence: 17, ordinal: 3 },
}
const PLAN = { planId: ID, planBytes: 2 ** 33, tablesStart: 2 ** 32 + 1, missing: 17, sequence: 2 ** 40, layout: 5 }
const PACK: PackRecord = newPackRecord({
  packId: ID,
  objects: 10,
  packBytes: 4_000_000_000,
  tablesStart: 3_999_999_000,
  epoch: 4_711,
  content: 'blob',
})

function some(...numbers: number[]): Bitmap {
  const bitmap = Bitmap.empty(10)
  for (const number of numbers) bitmap.add(number)
  return bitmap
}

const PACKS: readonly PackRecord[] = [
  PACK,
  { ...PACK, state: 'applied', owned: Bitmap.full(10) },
  { ...PACK, lastOrdinals: [0, 9] },
  { ...PACK, state: 'applied', owned: Bitmap.empty(10) },
  { ...PACK, state: 'applied', owned: some(0, 3, 9), condemned: some(1, 2), reached: some(3) },
  { ...PACK, state: 'merging', sources: [1, 2, 2 ** 40], activeAt: 2 ** 33 },
  { ...PACK, state: 'applied', owned: Bitmap.full(10), retiredAt: 7, movedTo: 9 },
  { ...PACK, state: 'applied', owned: some(1), content: Buffer.from('a whole small pack') },
  { ...PACK, state: 'applied', owned: some(1), condemned: some(2), retiredAt: 7, movedTo: 9, content: 'beside' },
]

const CONDEMNED = { epoch: 4_711, isRemoved: true }
const CONTENT = Buffer.from('a whole small pack')
const MERGE = { sequence: 2 ** 40, layout: 2 ** 33 }

interface Codec {
  readonly name: string
  readonly key: Uint8Array
  readonly value: Uint8Array
  decode(key: Uint8Array, value: Uint8Array): unknown
}

const key = Buffer.from(packKey('demo', 1, 2))
const OBJECT_KEY = objectKeyMaker('demo', 1)(Buffer.from('a'))
const PLAN_KEY = planKey('demo', 1, 'a', '')
const CONTENT_KEY = retiredContentKey('demo', 1, 2)
const MARK_KEY = condemnedBlobKey('demo', `folder/${ID}`)
const CODECS: readonly Codec[] = [
  { name: 'head', key: headKey('demo'), value: encodeHead(headKey('demo'), HEAD), decode: decodeHead },
  ...[OBJECT, MOVED].map((record, i) => ({
    name: `object ${i}`,
    key: OBJECT_KEY,
    value: encodeObjectRecord(OBJECT_KEY, record),
    decode: decodeObjectRecord,
  })),
  { name: 'plan', key: PLAN_KEY, value: encodePlanRecord(PLAN_KEY, PLAN), decode: decodePlanRecord },
  {
    name: 'condemned blob',
    key: MARK_KEY,
    value: encodeCondemnedBlob(MARK_KEY, CONDEMNED),
    decode: decodeCondemnedBlob,
  },
  {
    name: 'content of a retired pack',
    key: CONTENT_KEY,
    value: encodeRetiredContent(CONTENT_KEY, CONTENT),
    decode: decodeRetiredContent,
  },
  { name: 'merge', key: mergeKey('demo', 1), value: encodeMerge(mergeKey('demo', 1), MERGE), decode: decodeMerge },
  { name: 'pending', key: pendingKey('demo', 1, 2), value: encodeMark(pendingKey('demo', 1, 2)), decode: decodeMark },
  { name: 'garbage', key: garbageKey('demo', 1), value: encodeMark(garbageKey('demo', 1)), decode: decodeMark },
  ...PACKS.map((record, i) => ({
    name: `pack ${i}`,
    key,
    value: encodePackRecord(key, record),
    decode: decodePackRecord,
  })),
]

test('records decode to their written values', () => {
  assert.deepEqual(decodeHead(headKey('demo'), CODECS[0].value), HEAD)
  assert.deepEqual(decodeHead(key, encodeHead(key, { ...HEAD, removed: true })), { ...HEAD, removed: true })
  for (const record of [OBJECT, MOVED])
    assert.deepEqual(decodeObjectRecord(OBJECT_KEY, encodeObjectRecord(OBJECT_KEY, record)), record)
  assert.deepEqual(decodePlanRecord(PLAN_KEY, encodePlanRecord(PLAN_KEY, PLAN)), PLAN)
  assert.deepEqual(decodeCondemnedBlob(MARK_KEY, encodeCondemnedBlob(MARK_KEY, CONDEMNED)), CONDEMNED)
  assert.deepEqual(decodeRetiredContent(CONTENT_KEY, encodeRetiredContent(CONTENT_KEY, CONTENT)), CONTENT)
  assert.deepEqual(decodeMerge(key, encodeMerge(key, MERGE)), MERGE)
  for (const record of PACKS)
    assert.deepEqual(plain(decodePackRecord(key, encodePackRecord(key, record))), plain(record))
})

function plain(record: PackRecord): unknown {
  const [owned, condemned, reached] = [record.owned, record.condemned, record.reached].map(
    (bitmap) => bitmap && { count: bitmap.count, bytes: Buffer.from(bitmap.bytes) },
  )
  return {
    ...record,
    owned,
    condemned,
    reached,
    content: typeof record.content === 'string' ? record.content : Buffer.from(record.content),
  }
}

test('the bitmaps of the largest upload fit a record: what is rounded is looked up, and nothing is claimed', () => {
  const random = seeded(9)
  const objects = 500_000
  const [owned, condemned, reached] = [Bitmap.empty(objects), Bitmap.empty(objects), Bitmap.empty(objects)]
  for (let ordinal = 0; ordinal < objects; ordinal++) {
    // Some stretches are whole, others are not.
    const kind = ordinal % 10_000 < 5_000 ? 0 : random(3)
    if (kind === 0) owned.add(ordinal)
    if (kind === 1) condemned.add(ordinal)
    if (random(2) === 0) reached.add(ordinal)
  }
  const value = encodePackRecord(key, { ...PACK, state: 'applied', objects, owned, condemned, reached })
  assert.ok(value.length <= 65_536, `${value.length} bytes`)
  const read = decodePackRecord(key, value)
  for (let ordinal = 0; ordinal < objects; ordinal++) {
    const [isOwned, isAsked] = [read.owned?.has(ordinal) === true, read.condemned?.has(ordinal) === true]
    assert.ok(!(isOwned && isAsked))
    if (isOwned) assert.ok(owned.has(ordinal))
    if (owned.has(ordinal) || condemned.has(ordinal)) assert.ok(isOwned || isAsked)
    if (reached.has(ordinal)) assert.ok(read.reached?.has(ordinal))
  }
  assert.ok(read.owned !== undefined && read.owned.count >= 200_000, 'whole stretches stay owned')
})

test('a merge switches all of its objects at one layout', () => {
  const record: ObjectRecord = { ...OBJECT, previous: { fromLayout: 7, sequence: 2, ordinal: 9 } }
  assert.deepEqual(
    [6, 7, 8].map((layout) => placeAt(record, layout).sequence),
    [2, OBJECT.sequence, OBJECT.sequence],
  )
  const [source, merged] = [{ retiredAt: 7 }, { activeAt: 7 }].map((at) => ({
    ...PACK,
    state: 'applied' as const,
    ...at,
  }))
  assert.deepEqual(
    [6, 7].map((layout) => [isActive(source, layout), isActive(merged, layout)]),
    [
      [true, false],
      [false, true],
    ],
  )
})

test('every flipped bit of a value or a key, and every cut, is found', () => {
  for (const { name, key, value, decode } of CODECS) {
    assert.doesNotThrow(() => decode(key, value))
    const isCorrupt = (error: unknown): boolean => error instanceof StowageError && error.code === 'corrupt_data'
    for (let at = 0; at < value.length * 8; at++) {
      const damaged = Buffer.from(value)
      damaged[at >> 3] ^= 1 << (at & 7)
      assert.throws(() => decode(key, damaged), isCorrupt, `${name}: bit ${at} of the value`)
    }
    for (let at = 0; at < key.length * 8; at++) {
      const damaged = Buffer.from(key)
      damaged[at >> 3] ^= 1 << (at & 7)
      assert.throws(() => decode(damaged, value), isCorrupt, `${name}: bit ${at} of the key`)
    }
    for (let length = 0; length < value.length; length++)
      assert.throws(() => decode(key, value.subarray(0, length)), isCorrupt, `${name}: cut at ${length}`)
    assert.throws(() => decode(key, Buffer.concat([value, Buffer.of(0)])), isCorrupt, `${name}: longer`)
  }
})

function sealedAnew(key: Uint8Array, body: Buffer): Buffer {
  const sealed = Buffer.concat([body, Buffer.alloc(4)])
  sealed.writeUInt32LE(crc32(body, crc32(key)), body.length)
  return sealed
}

test('a later version is refused by its number', () => {
  for (const { value, key, decode } of CODECS) {
    const body = Buffer.from(value.subarray(0, -4))
    body[0] = 5
    assert.throws(() => decode(key, sealedAnew(key, body)), /version 5/)
  }
})

test('keys of different kinds never collide, and ranges contain exactly their own keys', () => {
  const projects = ['a', 'a ', 'ab', 'b', 'a\u{1f9f1}', '00000001', 'é', 'ÿ', 'p'.repeat(128)]
  const all: { readonly kind: string; readonly project: string; readonly generation?: number; readonly key: Buffer }[] =
    []
  for (const project of projects) {
    all.push({ kind: 'head', project, key: Buffer.from(headKey(project)) })
    for (const generation of [1, 2, 0xffffffff]) {
      const own = { project, generation }
      all.push({ kind: 'garbage', ...own, key: Buffer.from(garbageKey(project, generation)) })
      for (const sequence of [1, 255, 256, 2 ** 40]) {
        all.push({ kind: 'pack', ...own, key: Buffer.from(packKey(project, generation, sequence)) })
        all.push({ kind: 'retiredContent', ...own, key: Buffer.from(retiredContentKey(project, generation, sequence)) })
        all.push({ kind: 'pending', ...own, key: Buffer.from(pendingKey(project, generation, sequence)) })
      }
      for (const id of [
        'a',
        '0',
        'i'.repeat(512),
        'é',
        '0'.repeat(32),
        'f'.repeat(32),
        'F'.repeat(32),
        '0'.repeat(31),
      ]) {
        all.push({ kind: 'object', ...own, key: Buffer.from(objectKeyMaker(project, generation)(Buffer.from(id))) })
        for (const variant of ['', ID])
          all.push({ kind: 'plan', ...own, key: Buffer.from(planKey(project, generation, id, variant)) })
      }
    }
  }
  assert.equal(new Set(all.map(({ key }) => key.toString('latin1'))).size, all.length)
  assert.ok(all.every(({ key }) => key.length <= 1_000))
  const inside = (bounds: { gte: Uint8Array; lt: Uint8Array }): typeof all =>
    all.filter(({ key }) => Buffer.compare(key, bounds.gte) >= 0 && Buffer.compare(key, bounds.lt) < 0)
  for (const kind of ['head', 'object', 'pack', 'retiredContent', 'pending', 'plan', 'garbage'] as const) {
    assert.deepEqual(
      inside(keyBounds(kind)),
      all.filter((entry) => entry.kind === kind),
    )
    for (const project of projects) {
      assert.deepEqual(
        inside(keyBounds(kind, project)),
        all.filter((entry) => entry.kind === kind && entry.project === project),
      )
      if (kind === 'head' || kind === 'garbage') continue
      assert.deepEqual(
        inside(keyBounds(kind, project, 2)),
        all.filter((entry) => entry.kind === kind && entry.project === project && entry.generation === 2),
      )
    }
  }
  assert.deepEqual(keyParts(planKey('a', 1, 'id', 'v')), ['a', '00000001', 'id', 'v'])
})

test('the key of an object says its id, and has half of the bytes for an id of 32 hex digits', () => {
  for (const projectId of ['a', 'ÿé'])
    for (const [id, idBytes] of [
      ['00112233445566778899aabbccddeeff', 17],
      ['00000000000000000000000000000000', 17],
      ['00112233445566778899AABBCCDDEEFF', 33],
      ['00112233445566778899aabbccddeefg', 33],
      ['0', 2],
      ['\u0001é', 4],
    ] as const) {
      const key = objectKeyMaker(projectId, 258)(Buffer.from(id))
      assert.deepEqual(objectKeyParts(key), { projectId, generation: 258, id })
      assert.equal(
        key.length,
        `o.${projectId}.00000102.`.length + Buffer.byteLength(projectId) - projectId.length + idBytes,
      )
    }
  const [first, second] = ['0ff', '100'].map((end) => objectKeyMaker('a', 1)(Buffer.from(end.padStart(32, '0'))))
  assert.equal(Buffer.compare(first, second), -1, 'packed ids sort as their texts do')
  assert.equal(objectKeyParts(first.subarray(0, -1)).id, '', 'the key is damaged')
})

test('the record of a usual object has little more than its two checksums', () => {
  const usual: ObjectRecord = {
    state: 'live',
    epoch: 400,
    sequence: 2_300,
    ordinal: 430,
    blockStart: 400_000,
    blockStoredBytes: 6_000,
    blockRawBytes: 16_000,
    lineStart: 14_000,
    textBytes: 2_300,
    textCrc32: 0xffffffff,
  }
  assert.equal(encodeObjectRecord(OBJECT_KEY, usual).length, 27)
})

test('numbers of variable length come back, and one with too many bytes is refused', () => {
  const numbers = [0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 48, Number.MAX_SAFE_INTEGER]
  const writer = new ByteWriter(1)
  for (const number of numbers) writer.varint(number)
  const bytes = writer.finish()
  const reader = new ByteReader(bytes, 'a test')
  assert.deepEqual(
    numbers.map(() => reader.varint()),
    numbers,
  )
  assert.equal(reader.remaining, 0)
  assert.deepEqual([...new ByteWriter().varint(300).finish()], [0xac, 0x02])
  assert.throws(() => new ByteReader(Buffer.alloc(9, 0xff), 'a test').varint(), /a test has a number that is too large/)
  assert.throws(() => new ByteReader(Buffer.of(0x80), 'a test').varint(), /a test is cut short/)
})

test('packs sort by their number', () => {
  const numbers = [0, 1, 9, 10, 15, 16, 255, 4_096, 65_535, 2 ** 31, 2 ** 32, 2 ** 40]
  const keys = numbers.map((number) => Buffer.from(packKey('demo', 1, number)))
  assert.deepEqual(keys.toSorted(Buffer.compare), keys)
})

test('a bitmap counts, adds, removes and subtracts', () => {
  const random = seeded(4)
  for (const size of [0, 1, 7, 8, 9, 64, 1_000]) {
    const bitmap = Bitmap.empty(size)
    const oracle = new Set<number>()
    for (let i = 0; i < size; i++) {
      const number = random(size)
      assert.equal(bitmap.add(number), !oracle.has(number))
      oracle.add(number)
      if (random(4) > 0) continue
      const removed = random(size)
      bitmap.delete(removed)
      oracle.delete(removed)
    }
    assert.equal(bitmap.count, oracle.size)
    assert.equal(new Bitmap(bitmap.bytes).count, oracle.size)
    const full = Bitmap.full(size)
    assert.equal(full.count, size)
    assert.equal(new Bitmap(full.bytes).count, size)
    const rest = full.without(bitmap)
    for (let i = 0; i < size; i++) {
      assert.equal(bitmap.has(i), oracle.has(i))
      assert.equal(rest.has(i), !oracle.has(i))
      assert.equal(full.has(i), true)
    }
    for (let i = 0; i < 20; i++) {
      const start = random(size + 1)
      const end = start + random(size - start + 1)
      assert.equal(
        bitmap.countBetween(start, end),
        [...oracle].filter((number) => number >= start && number < end).length,
      )
    }
  }
})
