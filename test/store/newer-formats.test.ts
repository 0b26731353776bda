import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { crc32 } from 'node:zlib'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { decodeRecord, encodeRecord } from '../../src/automation-server/records/codec.ts'
import { createObjectService, openAccess, type StowageError } from '../../src/index.ts'
import { decodeHeader, decodeTrailer, encodeHeader, TRAILER_BYTES } from '../../src/store/pack/pack-format.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { decodeMark, encodeMark } from '../../src/store/records/records.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { reindexStore } from '../../src/store/upkeep/reindex.ts'
import { jsonUpload } from '../http/served.ts'
import { collected } from './support.ts'

/* What another release wrote in another format is refused with what to do, and never misread (docs/versioning.md). */

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
    () => decodeMark(KEY, ofVersion(KEY, encodeMark(KEY), 5)),
    /^a mark has version 5; this release reads version 4$/,
  )
  refused(
    () => decodeRecord(KEY, ofVersion(KEY, encodeRecord(KEY, { name: 'a' }), 2)),
    /^a record of automation has version 2; this release reads version 1$/,
  )
  decodeMark(KEY, ofVersion(KEY, encodeMark(KEY), 4))
})

test('packs of a newer release are refused by their header and by their trailer', () => {
  const header = Buffer.from(
    encodeHeader({ projectId: 'p', generation: 1, packId: '00112233445566778899aabbccddeeff', timeMs: 1 }),
  )
  const newer = Buffer.from(header)
  newer.writeUInt16LE(3, 8)
  refused(() => decodeHeader(newer), /^a pack has format version 3; this release reads version 2$/)
  const feature = Buffer.from(header)
  feature.writeUInt32LE(0x8000_0000, 10)
  refused(() => decodeHeader(feature), /^a pack needs features 0x80000000 that this release does not know$/)
  assert.equal(decodeHeader(header).projectId, 'p')

  const trailer = Buffer.alloc(TRAILER_BYTES)
  trailer.writeUInt16LE(3, 52)
  trailer.write('STOWTAIL', TRAILER_BYTES - 8, 'latin1')
  trailer.writeUInt32LE(crc32(trailer.subarray(0, TRAILER_BYTES - 12)), TRAILER_BYTES - 12)
  refused(() => decodeTrailer(trailer), /^a pack has format version 3; this release reads version 2$/)
})

interface Written {
  readonly backend: StorageBackend
  readonly records: readonly { readonly key: Uint8Array; readonly value: Uint8Array }[]
}

const PATH = 'http://in.process/objects/demo'

/** A storage in which every record has this version. */
async function writtenIn(version: number): Promise<Written> {
  const backend = memoryBackend()
  const service = createObjectService({ backend, access: openAccess() })
  assert.equal((await service.fetch(new Request(PATH, jsonUpload([{ id: 'a' }])))).status, 200)
  const records: { key: Uint8Array; value: Uint8Array }[] = []
  for await (const batch of backend.records.range({ gte: new Uint8Array([0]), lt: new Uint8Array([255, 255]) }))
    records.push(...batch.map(({ key, value }) => ({ key, value: ofVersion(key, value, version) })))
  assert.ok(records.length > 1)
  await backend.records.commit({ put: records })
  return { backend, records }
}

async function assertUntouched({ backend, records }: Written): Promise<void> {
  const held = await backend.records.getMany(records.map(({ key }) => key))
  assert.deepEqual(
    held.map((value) => value && Buffer.from(value).toString('hex')),
    records.map(({ value }) => Buffer.from(value).toString('hex')),
  )
}

const REFUSALS = [
  [
    3,
    /this storage was written by an older release: its records have version 3; this release reads version 4\. Nothing was changed\. Serve it with the release that wrote it, export its projects \("stowage export"\) and import them into a new folder/,
  ],
  [5, /this storage was written by a newer release: its records have version 5; this release reads version 4/],
] as const

for (const [version, message] of REFUSALS) {
  test(`a service refuses a storage of version ${version}, says what to do, and changes nothing`, async (t) => {
    const written = await writtenIn(version)
    const errors: StowageError[] = []
    const service = createObjectService({
      backend: { ...written.backend },
      access: openAccess(),
      onError: (error) => errors.push(error),
    })
    t.after(() => service.close({ graceMs: 0 }))
    await assert.rejects(service.ready(), message)
    for (const request of [new Request(`${PATH}/a`), new Request(PATH, jsonUpload([{ id: 'b' }]))]) {
      const response = await service.fetch(request)
      assert.equal(response.status, 500)
      assert.equal(((await response.json()) as { readonly code: string }).code, 'corrupt_data')
    }
    assert.ok(errors.length >= 2)
    for (const error of errors) assert.match(inspect(error), message)
    await assertUntouched(written)
  })

  test(`check and reindex refuse a storage of version ${version}, and change nothing`, async () => {
    const written = await writtenIn(version)
    const backend = asGuarded(written.backend)
    await assert.rejects(collected(checkStore(backend)), message)
    await assert.rejects(collected(reindexStore(backend)), message)
    await assertUntouched(written)
  })
}
