import { crc32 } from 'node:zlib'
import type { ProjectTotals } from '../../object/graph-store.ts'
import type { Pin } from '../../object/roots.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { ByteReader, ByteWriter, corrupt } from '../bytes/byte-codec.ts'

/**
 * Values of records: a version byte, the fields, and a CRC-32 over key and value, so that a value that is damaged, or
 * that sits under a damaged key, is an error and never a wrong answer.
 */
const VERSION = 1

function seal(key: Uint8Array, writer: ByteWriter): Uint8Array {
  const body = writer.finish()
  return writer.u32(crc32(body, crc32(key))).finish()
}

function open(key: Uint8Array, value: Uint8Array, what: string): ByteReader {
  const body = value.subarray(0, Math.max(0, value.length - 4))
  const stored = value.length < 5 ? -1 : Buffer.from(value.buffer, value.byteOffset + body.length, 4).readUInt32LE(0)
  if (stored !== crc32(body, crc32(key))) throw corrupt(`${what} does not match its CRC-32`)
  const reader = new ByteReader(body, what)
  const version = reader.u8()
  if (version !== VERSION) throw corrupt(`${what} has version ${version}; this release reads version ${VERSION}`)
  return reader
}

/** The place of an object, and enough facts of its text to tell whether another text is the same. */
export interface ObjectLocation {
  readonly sequence: number
  readonly ordinal: number
  readonly textBytes: number
  readonly textCrc32: number
}

export function encodeObjectRecord(key: Uint8Array, location: ObjectLocation): Uint8Array {
  const value = Buffer.allocUnsafe(23)
  value[0] = VERSION
  value.writeUIntLE(location.sequence, 1, 6)
  value.writeUInt32LE(location.ordinal, 7)
  value.writeUInt32LE(location.textBytes, 11)
  value.writeUInt32LE(location.textCrc32, 15)
  value.writeUInt32LE(crc32(value.subarray(0, 19), crc32(key)), 19)
  return value
}

export function decodeObjectRecord(key: Uint8Array, value: Uint8Array): ObjectLocation {
  const reader = open(key, value, 'an object record')
  return { sequence: reader.u48(), ordinal: reader.u32(), textBytes: reader.u32(), textCrc32: reader.u32() }
}

/** The value of a key whose existence is its meaning. */
export function encodeMark(key: Uint8Array): Uint8Array {
  return seal(key, new ByteWriter(8).u8(VERSION))
}

/** Throws `corrupt_data` unless the mark was made for this very key. */
export function decodeMark(key: Uint8Array, value: Uint8Array): void {
  open(key, value, 'a mark')
}

/** The store's own time: how many epochs it has been served for. */
export function encodeEpoch(key: Uint8Array, epoch: number): Uint8Array {
  return seal(key, new ByteWriter(16).u8(VERSION).u48(epoch))
}

export function decodeEpoch(key: Uint8Array, value: Uint8Array): number {
  return open(key, value, 'the epoch record').u48()
}

export function encodeTotals(key: Uint8Array, { objects, jsonBytes, storedBytes }: ProjectTotals): Uint8Array {
  return seal(key, new ByteWriter(32).u8(VERSION).u48(objects).u48(jsonBytes).u48(storedBytes))
}

export function decodeTotals(key: Uint8Array, value: Uint8Array): ProjectTotals {
  const reader = open(key, value, 'the totals of a project')
  return { objects: reader.u48(), jsonBytes: reader.u48(), storedBytes: reader.u48() }
}

/** Members are texts; an empty one stands for `null`. */
export function encodePin(key: Uint8Array, { id, rootObjectId, name, reason, createdAt, endsAt }: Pin): Uint8Array {
  const writer = new ByteWriter(256).u8(VERSION)
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
}

export function encodeHead(key: Uint8Array, head: ProjectHead): Uint8Array {
  return seal(
    key,
    new ByteWriter(32)
      .u8(VERSION)
      .u32(head.generation)
      .u48(head.sequence)
      .u8(head.removed ? 1 : 0),
  )
}

export function decodeHead(key: Uint8Array, value: Uint8Array): ProjectHead {
  const reader = open(key, value, 'a project record')
  return { generation: reader.u32(), sequence: reader.u48(), removed: reader.u8() === 1 }
}

/** `committed`: durable, ids not all written yet. `applied`: every id is written. `condemned`: to be collected. */
export const PACK_STATES = ['committed', 'applied', 'condemned'] as const
export type PackState = (typeof PACK_STATES)[number]

export interface PackRecord {
  readonly state: PackState
  /** 32 hex digits: 128 random bits. */
  readonly packId: string
  readonly objects: number
  /** Bytes of the whole pack, and the start of its tables. */
  readonly packBytes: number
  readonly tablesStart: number
  /** Set when `condemned`. */
  readonly condemnedAtMs: number
  /** Which of the pack's objects this pack owns; known once it is applied. */
  readonly owned: Bitmap | undefined
  /** The pack itself, if it is small enough to lie inside its record. */
  readonly inline: Uint8Array | undefined
}

export function encodePackRecord(key: Uint8Array, record: PackRecord): Uint8Array {
  const writer = new ByteWriter(256 + (record.inline?.length ?? 0))
  writer.u8(VERSION).u8(PACK_STATES.indexOf(record.state)).bytes(Buffer.from(record.packId, 'hex'))
  writer.u32(record.objects).u48(record.packBytes).u48(record.tablesStart).u48(record.condemnedAtMs)
  if (record.owned === undefined) writer.u8(0)
  else if (record.owned.count === record.objects) writer.u8(1)
  else writer.u8(2).sized(record.owned.bytes)
  if (record.inline === undefined) writer.u8(0)
  else writer.u8(1).sized(record.inline)
  return seal(key, writer)
}

export function decodePackRecord(key: Uint8Array, value: Uint8Array): PackRecord {
  const reader = open(key, value, 'a pack record')
  const state = PACK_STATES[reader.u8()]
  if (state === undefined) throw corrupt('a pack record has an unknown state')
  const packId = reader.bytes(16).toString('hex')
  const objects = reader.u32()
  const packBytes = reader.u48()
  const tablesStart = reader.u48()
  const condemnedAtMs = reader.u48()
  const ownership = reader.u8()
  const owned =
    ownership === 0 ? undefined : ownership === 1 ? Bitmap.full(objects) : new Bitmap(Uint8Array.from(reader.sized()))
  const inline = reader.u8() === 1 ? Uint8Array.from(reader.sized()) : undefined
  return { state, packId, objects, packBytes, tablesStart, condemnedAtMs, owned, inline }
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
}

export function encodePlanRecord(key: Uint8Array, record: PlanRecord): Uint8Array {
  const writer = new ByteWriter(64).u8(VERSION).bytes(Buffer.from(record.planId, 'hex'))
  return seal(key, writer.u48(record.planBytes).u48(record.tablesStart).u32(record.missing).u48(record.sequence))
}

export function decodePlanRecord(key: Uint8Array, value: Uint8Array): PlanRecord {
  const reader = open(key, value, 'a plan record')
  return {
    planId: reader.bytes(16).toString('hex'),
    planBytes: reader.u48(),
    tablesStart: reader.u48(),
    missing: reader.u32(),
    sequence: reader.u48(),
  }
}
