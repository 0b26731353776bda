import type { RecordStore } from '../../storage/backend.ts'
import { ByteWriter } from '../bytes/byte-codec.ts'
import type { ByteSource } from '../pack/segment.ts'
import { packBlobName, retiredContentKey } from './keys.ts'
import type { PackRecord } from './pack-record.ts'
import { open, RECORD_VERSION, seal } from './seal.ts'

/** A pack with its number and its record. */
export interface RecordedPack {
  readonly projectId: string
  readonly generation: number
  readonly sequence: number
  readonly record: PackRecord
}

export function encodeRetiredContent(key: Uint8Array, content: Uint8Array): Uint8Array {
  return seal(key, new ByteWriter(16 + content.length).u8(RECORD_VERSION).bytes(content))
}

export function decodeRetiredContent(key: Uint8Array, value: Uint8Array): Uint8Array {
  const reader = open(key, value, 'the content of a retired pack')
  return reader.bytes(reader.remaining)
}

/** Where the bytes of a pack are. `undefined` if they lay beside its record and are gone: both go in one commit. */
export async function sourceOf(
  records: RecordStore,
  { projectId, generation, sequence, record: { packId, content } }: RecordedPack,
): Promise<ByteSource | undefined> {
  if (content === 'blob') return { blob: packBlobName(projectId, packId) }
  if (content !== 'beside') return { bytes: content }
  const key = retiredContentKey(projectId, generation, sequence)
  const [value] = await records.getMany([key])
  return value === undefined ? undefined : { bytes: decodeRetiredContent(key, value) }
}
