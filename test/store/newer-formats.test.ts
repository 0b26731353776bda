import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { crc32 } from 'node:zlib'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { decodeRecord, encodeRecord } from '../../src/automation-server/records/codec.ts'
import { createObjectService, openAccess, type StowageError } from '../../src/index.ts'
import { decodeHeader, decodeTrailer, encodeHeader, TRAILER_BYTES } from '../../src/store/pack/pack-format.ts'
import { decodeMark, encodeMark } from '../../src/store/records/records.ts'
import { jsonUpload } from '../http/served.ts'

/* What a newer release wrote is refused with the format that this one reads, and never misread (docs/versioning.md). */

const KEY = Buffer.from('a key')

/** A record with a version byte of its own and the right checksum, as a newer release would write it. */
function ofVersion(key: Uint8Array, value: Uint8Array, version: number): Uint8Array {
  const changed = Buffer.from(value)
  changed[0] = version
  const body = changed.subarray(0, changed.length - 4)
  changed.writeUInt32LE(crc32(body, crc32(key)), body.length)
  return changed
}

function refused(read: () => unknown, message: RegExp): void {
  assert.throws(read, (error: StowageError) => error.code === 'corrupt_data' && message.test(error.message))
}

test('records of a newer release are refused, with the version that this release reads', () => {
  refused(
    () => decodeMark(KEY, ofVersion(KEY, encodeMark(KEY), 2)),
    /^a mark has version 2; this release reads version 1$/,
  )
  refused(
    () => decodeRecord(KEY, ofVersion(KEY, encodeRecord(KEY, { name: 'a' }), 2)),
    /^a record of automation has version 2; this release reads version 1$/,
  )
  decodeMark(KEY, ofVersion(KEY, encodeMark(KEY), 1))
})

test('packs of a newer release are refused by their header and by their trailer', () => {
  const header = Buffer.from(
    encodeHeader({ projectId: 'p', generation: 1, packId: '00112233445566778899aabbccddeeff', timeMs: 1 }),
  )
  const newer = Buffer.from(header)
  newer.writeUInt16LE(2, 8)
  refused(() => decodeHeader(newer), /^a pack has format version 2; this release reads version 1$/)
  const feature = Buffer.from(header)
  feature.writeUInt32LE(0x8000_0000, 10)
  refused(() => decodeHeader(feature), /^a pack needs features 0x80000000 that this release does not know$/)
  assert.equal(decodeHeader(header).projectId, 'p')

  const trailer = Buffer.alloc(TRAILER_BYTES)
  trailer.writeUInt16LE(2, 52)
  trailer.write('STOWTAIL', TRAILER_BYTES - 8, 'latin1')
  trailer.writeUInt32LE(crc32(trailer.subarray(0, TRAILER_BYTES - 12)), TRAILER_BYTES - 12)
  refused(() => decodeTrailer(trailer), /^a pack has format version 2; this release reads version 1$/)
})

test('a service names its format and changes nothing if a newer release wrote the data', async (t) => {
  const backend = memoryBackend()
  const path = 'http://in.process/objects/demo'
  const first = createObjectService({ backend, access: openAccess() })
  assert.equal((await first.fetch(new Request(path, jsonUpload([{ id: 'a' }])))).status, 200)
  const entries: { key: Uint8Array; value: Uint8Array }[] = []
  for await (const batch of backend.records.range({ gte: new Uint8Array([0]), lt: new Uint8Array([255, 255]) }))
    entries.push(...batch.map(({ key, value }) => ({ key, value })))
  assert.ok(entries.length > 1)
  const put = entries.map(({ key, value }) => ({ key, value: ofVersion(key, value, 2) }))
  await backend.records.commit({ put })

  const errors: StowageError[] = []
  const service = createObjectService({
    backend: { ...backend },
    access: openAccess(),
    onError: (error) => errors.push(error),
  })
  t.after(() => service.close({ graceMs: 0 }))
  for (const request of [new Request(`${path}/a`), new Request(path, jsonUpload([{ id: 'b' }]))]) {
    const response = await service.fetch(request)
    assert.equal(response.status, 500)
    assert.equal(((await response.json()) as { readonly code: string }).code, 'corrupt_data')
  }
  assert.ok(errors.length >= 2)
  for (const error of errors) assert.match(inspect(error), /has version 2; this release reads version 1/)
  const held = await backend.records.getMany(put.map(({ key }) => key))
  assert.deepEqual(
    held.map((value) => value && Buffer.from(value).toString('hex')),
    put.map(({ value }) => Buffer.from(value).toString('hex')),
  )
})
