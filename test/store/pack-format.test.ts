import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { DeflatePool } from '../../src/compression/deflate-pool.ts'
import { StowageError } from '../../src/errors.ts'
import { PackBuilder } from '../../src/store/pack/pack-builder.ts'
import { decodeSections } from '../../src/store/pack/decoded-sections.ts'
import {
  decodeHeader,
  decodeTrailer,
  divideTables,
  encodeHeader,
  encodeSections,
  type PackTables,
  tableEntry,
  TRAILER_BYTES,
} from '../../src/store/pack/pack-format.ts'
import {
  decodeTables,
  decodeTablesInto,
  deflateTables,
  encodeTables,
  giveBackTables,
} from '../../src/store/pack/stored-tables.ts'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import { countLent } from '../support/lent.ts'
import { batchesOf, type Made } from './support.ts'
import { referTo } from './graphs.ts'

const HEADER = {
  projectId: 'projekt/ä\u{1f9f1}',
  generation: 7,
  packId: '00112233445566778899aabbccddeeff',
  timeMs: 1_700_000_000_123,
}

async function tablesOf(objects: readonly Made[]): Promise<PackTables> {
  const builder = new PackBuilder(REAL_ENVIRONMENT, new BufferPool(0))
  for await (const batch of batchesOf(objects)) {
    for (let index = 0, start = 0; index < batch.count; start += batch.lineBytes[index++])
      await builder.add(batch, index, start, 1_000 + index)
  }
  builder.closeBlock()
  let offset = 64
  for (const block of builder.takeClosed()) {
    assert.ok('raw' in block)
    const { raw } = block
    builder.placed(raw, offset)
    offset += raw.length
  }
  return builder.tables()
}

const FEW: readonly Made[] = [
  { id: 'root', children: referTo(['a', 'b', 'gone']), __closure: { a: 1, b: 1, claimed: 2 } },
  { id: 'a', children: referTo(['b']) },
  { id: 'b'.repeat(512), name: 'ünïcödé' },
  { id: 'b' },
]

/** The tables, all of them read, with their ids unpacked. */
function plain(tables: PackTables): PackTables {
  const { objects, blocks, directory, lineBytes, textCrc32, references, claims, externals } = tables
  const { ends, bytes } = tables.ids
  return { objects, blocks, directory, lineBytes, textCrc32, ids: { ends, bytes }, references, claims, externals }
}

/** Sections and trailer in one buffer. */
async function encoded(tables: PackTables, sectionsStart: number): Promise<Uint8Array> {
  return Uint8Array.from(Buffer.concat(await encodeTables(tables, sectionsStart, REAL_ENVIRONMENT)))
}

function textAt(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8')
}

function assertCorrupt(read: () => unknown, where: string): void {
  assert.throws(read, (error) => error instanceof StowageError && error.code === 'corrupt_data', where)
}

/** The bytes with one bit of one of them flipped. */
function flipped(bytes: Uint8Array, at: number, bit: number): Uint8Array {
  const copy = Uint8Array.from(bytes)
  copy[at] ^= 1 << bit
  return copy
}

test('a header is decoded, regardless of the bytes after it', () => {
  const bytes = encodeHeader(HEADER)
  assert.deepEqual(decodeHeader(Buffer.concat([bytes, Buffer.from('blocks')])), {
    ...HEADER,
    headerBytes: bytes.length,
  })
  const longest = encodeHeader({ ...HEADER, projectId: 'p'.repeat(128) })
  assert.ok(longest.length <= 256)
  assert.equal(decodeHeader(longest).projectId.length, 128)
})

test('every flipped bit of a header is found', () => {
  const bytes = encodeHeader(HEADER)
  for (let at = 0; at < bytes.length; at++) {
    for (let bit = 0; bit < 8; bit++)
      assertCorrupt(() => decodeHeader(flipped(bytes, at, bit)), `byte ${at}, bit ${bit}`)
  }
  for (let length = 0; length < bytes.length; length++)
    assertCorrupt(() => decodeHeader(bytes.subarray(0, length)), `cut at ${length}`)
})

function decodePlain(bytes: Uint8Array): PackTables {
  const { sections, trailer } = divideTables(bytes)
  return plain(decodeSections(sections, trailer))
}

test('tables are decoded: objects, references, claims and ids outside the pack', async () => {
  const tables = await tablesOf(FEW)
  const read = decodePlain(await encoded(tables, 4_096))
  assert.deepEqual(read, tables)
  assert.equal(read.objects, 4)
  assert.deepEqual(
    FEW.map((_, i) => textAt(tableEntry(read.ids, i))),
    FEW.map(({ id }) => id),
  )
  const nameOf = (target: number): string =>
    textAt(target < read.objects ? tableEntry(read.ids, target) : tableEntry(read.externals, target - read.objects))
  const { references, claims } = read
  assert.deepEqual([...references.targets.subarray(0, references.ends[0])].map(nameOf), ['a', 'b', 'gone'])
  assert.deepEqual([...references.targets.subarray(references.ends[0], references.ends[1])].map(nameOf), ['b'])
  assert.deepEqual([...claims.targets.subarray(0, claims.ends[0])].map(nameOf), ['a', 'b', 'claimed'])
  assert.deepEqual([...claims.ends], [3, 3, 3, 3])
  assert.deepEqual(read.externals.ends.length, 2)
})

test('tables may begin anywhere in a buffer, and an empty pack has tables too', async () => {
  const empty = await tablesOf([])
  for (const tables of [await tablesOf(FEW), empty]) {
    const bytes = await encoded(tables, 64)
    for (let shift = 0; shift < 5; shift++) {
      const shifted = Uint8Array.from([...new Uint8Array(shift), ...bytes])
      assert.deepEqual(decodePlain(shifted.subarray(shift)), tables)
    }
  }
})

test('every flipped bit of tables and trailer is found or harmless', async () => {
  const tables = await tablesOf(FEW)
  const bytes = await encoded(tables, 4_096)
  let harmless = 0
  for (let at = 0; at < bytes.length; at++) {
    for (const bit of [0, 3, 7]) {
      const damaged = flipped(bytes, at, bit)
      try {
        assert.deepEqual(decodePlain(damaged), tables, `byte ${at}`)
        harmless++
      } catch (error) {
        assert.ok(error instanceof StowageError && error.code === 'corrupt_data', `byte ${at}: ${String(error)}`)
      }
    }
  }
  // Padding between sections, and counts that the number of objects repeats; the SHA-256 of `check` sees them.
  assert.ok(harmless < 3 * 50, `${harmless} flips were harmless`)
  const trailer = bytes.subarray(bytes.length - TRAILER_BYTES)
  for (let at = 0; at < TRAILER_BYTES; at++)
    for (let bit = 0; bit < 8; bit++)
      assertCorrupt(() => decodeTrailer(flipped(trailer, at, bit)), `trailer byte ${at}`)
})

test('cut or extended tables are refused', async () => {
  const bytes = await encoded(await tablesOf(FEW), 4_096)
  for (let start = 1; start <= bytes.length; start++)
    assertCorrupt(() => decodePlain(bytes.subarray(start)), `from ${start}`)
  for (let end = 0; end < bytes.length; end++) assertCorrupt(() => decodePlain(bytes.subarray(0, end)), `up to ${end}`)
  assertCorrupt(() => decodePlain(Buffer.concat([Buffer.alloc(4), bytes])), 'longer')
})

test('compressed tables are the same, smaller, and refused when they are damaged', async () => {
  const pool = new DeflatePool({ level: 6, concurrency: 1 })
  const objects = Array.from({ length: 200 }, (_, i): Made => ({
    id: `id-${i}`,
    next: { referencedId: `id-${i + 1}` },
  }))
  const tables = await tablesOf(objects)
  const stored = await encoded(tables, 4_096)
  const bytes = Buffer.concat(await deflateTables(tables, 4_096, (raw) => pool.deflate(raw), REAL_ENVIRONMENT))
  pool.close()
  assert.ok(bytes.length < stored.length / 2)
  assert.deepEqual(plain(await decodeTables(bytes, REAL_ENVIRONMENT)), tables)
  assert.deepEqual(plain(await decodeTables(stored, REAL_ENVIRONMENT)), tables)
  for (let at = 0; at < bytes.length; at += 3) {
    const damaged = flipped(bytes, at, at % 8)
    const read = await decodeTables(damaged, REAL_ENVIRONMENT).catch((error: unknown) => error)
    if (read instanceof Error) assert.ok(read instanceof StowageError && read.code === 'corrupt_data', `byte ${at}`)
    else assert.deepEqual(plain(read as PackTables), tables, `byte ${at}`)
  }
  await assert.rejects(decodeTables(bytes.subarray(4), REAL_ENVIRONMENT), { code: 'corrupt_data' })
})

test('compressed tables are inflated into memory that is lent', async (t) => {
  const pool = new DeflatePool({ level: 6, concurrency: 1 })
  const tables = await tablesOf(Array.from({ length: 2_000 }, (_, i): Made => ({ id: `object-${i}` })))
  const bytes = Buffer.concat(await deflateTables(tables, 4_096, (raw) => pool.deflate(raw), REAL_ENVIRONMENT))
  pool.close()
  const lent = countLent(t)
  const buffers = new BufferPool(1_000_000)
  for (let again = 0; again < 2; again++) {
    const decoded = await decodeTablesInto(buffers, bytes, REAL_ENVIRONMENT)
    assert.deepEqual(plain(decoded.tables), tables)
    assert.equal(lent.outBytes, decoded.memory.length)
    buffers.giveBack(decoded.memory)
    assert.equal(lent.outBytes, 0)
  }
  assert.ok(buffers.idleBytes > 0 && buffers.idleBytes < lent.bytes, 'the same memory both times')
})

test('ids of 32 hex digits are packed, and come back as they were, in memory that is lent', async (t) => {
  const pool = new DeflatePool({ level: 6, concurrency: 1 })
  t.after(() => pool.close())
  const made = async (ids: readonly string[]): Promise<PackTables> =>
    tablesOf(ids.map((id, i): Made => ({ id, next: { referencedId: ids[(i + 1) % ids.length] } })))
  const hexIds = (count: number): string[] =>
    Array.from({ length: count }, (_, i) => createHash('md5').update(String(i)).digest('hex'))
  const ways = {
    stored: { features: 0, encode: (tables: PackTables) => encoded(tables, 0) },
    compressed: {
      features: 1,
      encode: async (tables: PackTables) =>
        Buffer.concat(await deflateTables(tables, 0, (raw) => pool.deflate(raw), REAL_ENVIRONMENT)),
    },
  }
  for (const [name, { features, encode }] of Object.entries(ways)) {
    for (const count of [1, 2, 3, 5, 1_000]) {
      const tables = await made(hexIds(count))
      const bytes = await encode(tables)
      assert.equal(decodeTrailer(bytes.subarray(-TRAILER_BYTES)).features, features | 2, `${name}, ${count} ids`)
      assert.deepEqual(plain(await decodeTables(bytes, REAL_ENVIRONMENT)), tables, `${name}, ${count} ids`)
      const lent = countLent(t)
      const buffers = new BufferPool(1_000_000)
      const decoded = await decodeTablesInto(buffers, bytes, REAL_ENVIRONMENT)
      assert.equal(decoded.tables.ids.packed?.length, 16 * count)
      assert.deepEqual(plain(decoded.tables), tables)
      const inflatedBytes = features === 1 ? decoded.memory.length : 0
      assert.ok(count < 1_000 || lent.outBytes === inflatedBytes + count * 36)
      giveBackTables(buffers, decoded)
      assert.equal(lent.outBytes, 0)
    }
    for (const other of ['f'.repeat(31), 'F'.repeat(32), 'g'.repeat(32)]) {
      const tables = await made([...hexIds(3), other])
      const bytes = await encode(tables)
      assert.equal(decodeTrailer(bytes.subarray(-TRAILER_BYTES)).features, features, `${name}, ${other}`)
      assert.deepEqual(plain(await decodeTables(bytes, REAL_ENVIRONMENT)), tables, `${name}, ${other}`)
    }
  }
})

test('damaged tables with packed ids are refused, and so are those with more or fewer of them', async () => {
  const pool = new DeflatePool({ level: 6, concurrency: 1 })
  const tables = await tablesOf(Array.from({ length: 200 }, (_, i): Made => ({ id: i.toString(16).padStart(32, '0') })))
  const bytes = Buffer.concat(await deflateTables(tables, 0, (raw) => pool.deflate(raw), REAL_ENVIRONMENT))
  pool.close()
  for (let at = 0; at < bytes.length; at++) {
    const read = await decodeTables(flipped(bytes, at, at % 8), REAL_ENVIRONMENT).catch((error: unknown) => error)
    if (read instanceof Error) assert.ok(read instanceof StowageError && read.code === 'corrupt_data', `byte ${at}`)
    else assert.deepEqual(plain(read as PackTables), tables, `byte ${at}`)
  }
  const { blocks, objects } = tables
  for (const [count, isRight] of [
    [objects, true],
    [objects - 1, false],
    [objects + 1, false],
  ] as const) {
    const sections = Buffer.concat(encodeSections(tables, Buffer.alloc(count * 16)))
    const decode = (): PackTables => decodeSections(sections, { blocks, objects, features: 3 })
    if (isRight) assert.equal(decode().ids.bytes.length, objects * 32)
    else assertCorrupt(decode, `${count} ids`)
  }
})

test('versions and features of later releases are refused by name', async () => {
  const reseal = (bytes: Buffer, crcAt: number): Buffer => {
    bytes.writeUInt32LE(crc32(bytes.subarray(0, crcAt)), crcAt)
    return bytes
  }
  const header = Buffer.from(encodeHeader(HEADER))
  const changedHeader = (change: (bytes: Buffer) => void): Buffer => {
    const copy = Buffer.from(header)
    change(copy)
    return reseal(copy, copy.length - 4)
  }
  assert.throws(() => decodeHeader(changedHeader((bytes) => bytes.writeUInt16LE(3, 8))), /version 3/)
  assert.throws(() => decodeHeader(changedHeader((bytes) => bytes.writeUInt32LE(0x10, 10))), /features 0x10/)
  const whole = await encoded(await tablesOf(FEW), 4_096)
  const trailer = whole.subarray(whole.length - TRAILER_BYTES)
  const changedTrailer = (change: (bytes: Buffer) => void): Buffer => {
    const copy = Buffer.from(trailer)
    change(copy)
    return reseal(copy, TRAILER_BYTES - 12)
  }
  assert.doesNotThrow(() => decodeTrailer(changedTrailer(() => undefined)))
  assert.throws(() => decodeTrailer(changedTrailer((bytes) => bytes.writeUInt16LE(3, 52))), /version 3/)
  assert.throws(() => decodeTrailer(changedTrailer((bytes) => bytes.writeUInt32LE(4, 54))), /features 0x4/)
})
