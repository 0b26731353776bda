import type { ProjectTotals } from '../../object/graph-store.ts'
import type { StoreEpoch } from '../../object/epochs.ts'
import type { Pin } from '../../object/roots.ts'
import { ByteWriter } from '../bytes/byte-codec.ts'
import { open, RECORD_VERSION, seal } from './seal.ts'

/** The value of a key whose existence is its meaning. */
export function encodeMark(key: Uint8Array): Uint8Array {
  return seal(key, new ByteWriter(8).u8(RECORD_VERSION))
}

/** The value of a mark that differs from one made before. `nonce`: 8 random bytes. */
export function encodeMarkAgain(key: Uint8Array, nonce: Uint8Array): Uint8Array {
  return seal(key, new ByteWriter(16).u8(RECORD_VERSION).bytes(nonce))
}

/** Throws `corrupt_data` unless the mark was made for this very key. */
export function decodeMark(key: Uint8Array, value: Uint8Array): void {
  open(key, value, 'a mark')
}

/** The store's own time: how many epochs it has been served for. */
export function encodeEpoch(key: Uint8Array, epoch: number): Uint8Array {
  return seal(key, new ByteWriter(16).u8(RECORD_VERSION).u48(epoch))
}

export function decodeEpoch(key: Uint8Array, value: Uint8Array): number {
  return open(key, value, 'the epoch record').u48()
}

/** The store's epoch, for a commit that expects it. */
export function asEpoch(key: Uint8Array, value: Uint8Array | undefined): StoreEpoch {
  return { number: value === undefined ? 0 : decodeEpoch(key, value), expectation: { key, value } }
}

/** `id` is random: no two holders have the same. */
export function encodeLeaseHolder(key: Uint8Array, id: string): Uint8Array {
  return seal(key, new ByteWriter(48).u8(RECORD_VERSION).text(id))
}

export function encodeLeaseBeat(key: Uint8Array, beat: number): Uint8Array {
  return seal(key, new ByteWriter(16).u8(RECORD_VERSION).u48(beat))
}

/** Throws `corrupt_data` for a damaged record of a lease. */
export function checkLease(key: Uint8Array, value: Uint8Array): void {
  open(key, value, 'the record of a lease')
}

export function encodeTotals(key: Uint8Array, { objects, jsonBytes, storedBytes }: ProjectTotals): Uint8Array {
  return seal(key, new ByteWriter(32).u8(RECORD_VERSION).u48(objects).u48(jsonBytes).u48(storedBytes))
}

export function decodeTotals(key: Uint8Array, value: Uint8Array): ProjectTotals {
  const reader = open(key, value, 'the totals of a project')
  return { objects: reader.u48(), jsonBytes: reader.u48(), storedBytes: reader.u48() }
}

/** Members are texts; an empty one stands for `null`. */
export function encodePin(key: Uint8Array, { id, rootObjectId, name, reason, createdAt, endsAt }: Pin): Uint8Array {
  const writer = new ByteWriter(256).u8(RECORD_VERSION)
  for (const text of [id, rootObjectId, name ?? '', reason ?? '', createdAt, endsAt ?? '']) writer.text(text)
  return seal(key, writer)
}

export function decodePin(key: Uint8Array, value: Uint8Array): Pin {
  const reader = open(key, value, 'a pin')
  const [id, rootObjectId, name, reason, createdAt, endsAt] = Array.from({ length: 6 }, () => reader.text())
  return {
    id,
    rootObjectId,
    name: name === '' ? null : name,
    reason: reason === '' ? null : reason,
    createdAt,
    endsAt: endsAt === '' ? null : endsAt,
  }
}

/** A project. `sequence` is the number that its next pack gets. */
export interface ProjectHead {
  readonly generation: number
  readonly sequence: number
  readonly removed: boolean
  /** Rises whenever objects move, or are condemned, or packs go, so that readers know what they have read before. */
  readonly layout: number
}

export function encodeHead(key: Uint8Array, head: ProjectHead): Uint8Array {
  return seal(
    key,
    new ByteWriter(32)
      .u8(RECORD_VERSION)
      .u32(head.generation)
      .u48(head.sequence)
      .u8(head.removed ? 1 : 0)
      .u48(head.layout),
  )
}

export function decodeHead(key: Uint8Array, value: Uint8Array): ProjectHead {
  const reader = open(key, value, 'a project record')
  return { generation: reader.u32(), sequence: reader.u48(), removed: reader.u8() === 1, layout: reader.u48() }
}

/**
 * Points to a plan's blob. A plan of an incomplete closure is valid while the project's sequence does not change or its
 * absent ids stay absent.
 */
export interface PlanRecord {
  readonly planId: string
  readonly planBytes: number
  readonly tablesStart: number
  readonly missing: number
  readonly sequence: number
  /** The layout of the project for which it names packs. */
  readonly layout: number
}

export function encodePlanRecord(key: Uint8Array, record: PlanRecord): Uint8Array {
  const writer = new ByteWriter(64).u8(RECORD_VERSION).bytes(Buffer.from(record.planId, 'hex'))
  return seal(
    key,
    writer.u48(record.planBytes).u48(record.tablesStart).u32(record.missing).u48(record.sequence).u48(record.layout),
  )
}

export function decodePlanRecord(key: Uint8Array, value: Uint8Array): PlanRecord {
  const reader = open(key, value, 'a plan record')
  return {
    planId: reader.bytes(16).toString('hex'),
    planBytes: reader.u48(),
    tablesStart: reader.u48(),
    missing: reader.u32(),
    sequence: reader.u48(),
    layout: reader.u48(),
  }
}

/** A blob that is to go: a pack that another replaced, a plan that is not used any more, or what no record names. */
export interface CondemnedBlob {
  /** Since when; once the blob is removed, since then. */
  readonly epoch: number
  /** The mark outlives its blob, so that no upload that slept through all of it commits a pack without a blob. */
  readonly isRemoved: boolean
}

export function encodeCondemnedBlob(key: Uint8Array, { epoch, isRemoved }: CondemnedBlob): Uint8Array {
  return seal(
    key,
    new ByteWriter(16)
      .u8(RECORD_VERSION)
      .u32(epoch)
      .u8(isRemoved ? 1 : 0),
  )
}

export function decodeCondemnedBlob(key: Uint8Array, value: Uint8Array): CondemnedBlob {
  const reader = open(key, value, 'the mark of a condemned blob')
  return { epoch: reader.u32(), isRemoved: reader.u8() === 1 }
}

/** The merge that is under way in a project. */
export interface MergeRecord {
  /** The merged pack. */
  readonly sequence: number
  /** The layout at which it takes the place of its sources. */
  readonly layout: number
}

export function encodeMerge(key: Uint8Array, { sequence, layout }: MergeRecord): Uint8Array {
  return seal(key, new ByteWriter(32).u8(RECORD_VERSION).u48(sequence).u48(layout))
}

export function decodeMerge(key: Uint8Array, value: Uint8Array): MergeRecord {
  const reader = open(key, value, 'the record of a merge')
  return { sequence: reader.u48(), layout: reader.u48() }
}

/** The random id of a collection, 32 hex digits. */
export function encodeCollection(key: Uint8Array, id: string): Uint8Array {
  return seal(key, new ByteWriter(32).u8(RECORD_VERSION).bytes(Buffer.from(id, 'hex')))
}

export function decodeCollection(key: Uint8Array, value: Uint8Array): string {
  return open(key, value, 'the record of a collection').bytes(16).toString('hex')
}
