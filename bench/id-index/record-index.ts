import { crc32 } from 'node:zlib'
import type { RecordStore } from '../../src/storage/backend.ts'
import { objectKeyMaker } from '../../src/store/records/keys.ts'
import { LOOKUP_KEYS, readObjects } from '../../src/store/records/locator.ts'
import { encodeObjectRecord, type ObjectPlace } from '../../src/store/records/object-record.ts'
import { type IdIndex, placeOf } from './id-index.ts'
import { idOf } from './synthetic-ids.ts'

const PROJECT = { projectId: 'id-index', generation: 1 }
const TEXT_BYTES = 1_300
const BLOCK_LINES = 12

/** Today's way: a record for each object, in the store that is given. */
export class RecordIndex implements IdIndex {
  readonly #records: RecordStore
  readonly #measure: () => Promise<number>

  constructor(records: RecordStore, measureBytes: () => Promise<number>) {
    this.#records = records
    this.#measure = measureBytes
  }

  async build(objects: number): Promise<void> {
    const keyOf = objectKeyMaker(PROJECT.projectId, PROJECT.generation)
    await this.#records.ready?.()
    for (let from = 0; from < objects; from += LOOKUP_KEYS) {
      const entries = Array.from({ length: Math.min(LOOKUP_KEYS, objects - from) }, (_, i) => {
        const key = keyOf(idOf(from + i))
        return { key, value: recordOf(from + i, key) }
      })
      await this.#records.insertMany(entries)
    }
  }

  async find(ids: readonly Uint8Array[]): Promise<readonly (ObjectPlace | undefined)[]> {
    return readObjects(this.#records, PROJECT, ids)
  }

  sizeBytes(): Promise<number> {
    return this.#measure()
  }

  close(): Promise<void> {
    return this.#records.close()
  }
}

function recordOf(object: number, key: Uint8Array): Uint8Array {
  const { sequence, ordinal } = placeOf(object)
  const block = Math.floor(ordinal / BLOCK_LINES)
  return encodeObjectRecord(key, {
    state: 'live',
    epoch: 1,
    sequence,
    ordinal,
    blockStart: block * 4_000,
    blockStoredBytes: 4_000,
    blockRawBytes: BLOCK_LINES * TEXT_BYTES,
    lineStart: (ordinal % BLOCK_LINES) * TEXT_BYTES,
    textBytes: TEXT_BYTES,
    textCrc32: crc32(key),
  })
}
