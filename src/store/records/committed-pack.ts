import type { Entry, RecordStore } from '../../storage/backend.ts'
import { keyParts, packKey, parseHex } from './keys.ts'
import { decodePackRecord, type PackRecord } from './pack-record.ts'
import { decodeMark } from './records.ts'

/** A pack whose commit point is behind it. */
export interface CommittedPack {
  readonly projectId: string
  readonly generation: number
  readonly sequence: number
  readonly record: PackRecord
}

/**
 * The pack for which a mark stands; `undefined` if it was swept, since its upload took too long. Throws `corrupt_data`
 * if the mark or the record of the pack is damaged.
 */
export async function markedPack(records: RecordStore, { key, value }: Entry): Promise<CommittedPack | undefined> {
  decodeMark(key, value)
  const [projectId, generationHex, sequenceHex] = keyParts(key)
  const generation = parseHex(generationHex)
  const sequence = parseHex(sequenceHex)
  const recordKey = packKey(projectId, generation, sequence)
  const [recordValue] = await records.getMany([recordKey])
  if (recordValue === undefined) return undefined
  return { projectId, generation, sequence, record: decodePackRecord(recordKey, recordValue) }
}
