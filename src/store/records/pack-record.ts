import { CORE_RECORD_LIMITS } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { type ByteReader, ByteWriter, corrupt } from '../bytes/byte-codec.ts'
import { open, RECORD_VERSION, seal } from './seal.ts'

/**
 * `committed`: durable, ids not all written yet. `applied`: every id is written. `merging`: a merged pack whose objects
 * are being moved to it; it holds nothing before its layout.
 */
export const PACK_STATES = ['committed', 'applied', 'merging'] as const
export type PackState = (typeof PACK_STATES)[number]

/**
 * The pack itself if it is small and lies inside its record, or the place where it is. Once a small pack is retired, it
 * lies beside its record, in one of its own (`retired-content.ts`): it stays for a day, and each scan of pack records
 * would read it.
 */
export type PackContent = 'blob' | 'beside' | Uint8Array

/** Packs that one merge replaces. */
export const MERGE_SOURCES_MAX = 256

/** Their records are in one commit with that of the pack, also where a commit takes 25 entries. */
export const LAST_ORDINALS_MAX = 8

export interface PackRecord {
  readonly state: PackState
  /** 32 hex digits: 128 random bits. */
  readonly packId: string
  readonly objects: number
  /** Bytes of the whole pack, and the start of its tables. */
  readonly packBytes: number
  readonly tablesStart: number
  /** When it was committed. */
  readonly epoch: number
  /** Objects that are certainly this pack's; known once it is applied. */
  readonly owned: Bitmap | undefined
  /** Objects that are or were condemned, none of them in `owned`: their own records tell what became of them. */
  readonly condemned: Bitmap | undefined
  /** Objects that a root reached when the project was last collected. */
  readonly reached: Bitmap | undefined
  /**
   * Objects that became visible in one commit, after everything that was uploaded before and all others of the pack:
   * who saw one of them could see all of that. Those to which no other of the pack refers, and at most `LAST_ORDINALS_MAX`.
   */
  readonly lastOrdinals: readonly number[]
  /** The packs that this merged pack replaces; empty for an upload's. */
  readonly sources: readonly number[]
  /** The layout from which a merged pack holds its objects; 0 for an upload's. */
  readonly activeAt: number
  /** The layout from which the pack holds nothing, because another holds its objects; 0 for a pack in use. */
  readonly retiredAt: number
  /** That other pack; 0 for a pack in use. */
  readonly movedTo: number
  readonly content: PackContent
}

/** The record of a pack that an upload has just written. */
export function newPackRecord(
  facts: Pick<PackRecord, 'packId' | 'objects' | 'packBytes' | 'tablesStart' | 'content' | 'epoch'>,
): PackRecord {
  return {
    ...facts,
    state: 'committed',
    owned: undefined,
    condemned: undefined,
    reached: undefined,
    lastOrdinals: [],
    sources: [],
    activeAt: 0,
    retiredAt: 0,
    movedTo: 0,
  }
}

/** Whether the pack holds objects for readers of this layout, all of whose ids are written. */
export function isActive({ state, activeAt, retiredAt }: PackRecord, layout: number): boolean {
  return state === 'applied' && layout >= activeAt && !isRetired({ retiredAt }, layout)
}

/** Whether another pack holds its objects, for readers of this layout. */
export function isRetired({ retiredAt }: Pick<PackRecord, 'retiredAt'>, layout: number): boolean {
  return retiredAt !== 0 && layout >= retiredAt
}

export function encodePackRecord(key: Uint8Array, record: PackRecord): Uint8Array {
  const writer = new ByteWriter(256 + (typeof record.content === 'string' ? 0 : record.content.length))
  writer.u8(RECORD_VERSION).u8(PACK_STATES.indexOf(record.state)).bytes(Buffer.from(record.packId, 'hex'))
  writer.u32(record.objects).u48(record.packBytes).u48(record.tablesStart).u32(record.epoch)
  writer.u48(record.activeAt).u48(record.retiredAt).u48(record.movedTo).u16(record.sources.length)
  for (const sequence of record.sources) writer.u48(sequence)
  writer.u8(record.lastOrdinals.length)
  for (const ordinal of record.lastOrdinals) writer.u32(ordinal)
  writeContent(writer, record.content)
  writeOwnership(writer, record)
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
  const epoch = reader.u32()
  const [activeAt, retiredAt, movedTo] = [reader.u48(), reader.u48(), reader.u48()]
  const sources = Array.from({ length: reader.u16() }, () => reader.u48())
  const lastOrdinals = Array.from({ length: reader.u8() }, () => reader.u32())
  const content = readContent(reader)
  const { owned, condemned, reached } = readOwnership(reader, objects)
  return {
    state,
    packId,
    objects,
    packBytes,
    tablesStart,
    epoch,
    owned,
    condemned,
    reached,
    lastOrdinals,
    sources,
    activeAt,
    retiredAt,
    movedTo,
    content,
  }
}

const IN_BLOB = 0
const INSIDE = 1
const BESIDE = 2

function writeContent(writer: ByteWriter, content: PackContent): void {
  if (content === 'blob') writer.u8(IN_BLOB)
  else if (content === 'beside') writer.u8(BESIDE)
  else writer.u8(INSIDE).sized(content)
}

function readContent(reader: ByteReader): PackContent {
  const place = reader.u8()
  if (place === IN_BLOB) return 'blob'
  if (place === BESIDE) return 'beside'
  if (place !== INSIDE) throw corrupt('a pack record has its pack in an unknown place')
  // Not copied: it is most of the value, and records of packs are read often.
  return reader.sized()
}

type Ownership = Pick<PackRecord, 'owned' | 'condemned' | 'reached'>

const ABSENT = 0
const FULL = 1
const EMPTY = 2
const EXPLICIT = 3
const CHECKSUM_BYTES = 4

/**
 * The bitmaps of the largest uploads do not fit the smallest record store. Then one bit stands for two objects, four,
 * or more: a group that the pack owns in part counts as condemned, so that the records of its objects are asked.
 */
function writeOwnership(writer: ByteWriter, record: PackRecord): void {
  const before = writer.finish().length
  for (let shift = 0; ; shift++) {
    const encoded = encodedOwnership(shift === 0 ? record : coarsened(record, shift), shift, record.objects)
    if (before + encoded.length + CHECKSUM_BYTES > CORE_RECORD_LIMITS.valueBytesMax && record.objects >> shift > 0)
      continue
    writer.bytes(encoded)
    return
  }
}

function encodedOwnership({ owned, condemned, reached }: Ownership, shift: number, objects: number): Uint8Array {
  const writer = new ByteWriter(64).u8(shift)
  const groups = groupsOf(objects, shift)
  for (const bitmap of [owned, condemned, reached]) {
    if (bitmap === undefined) writer.u8(ABSENT)
    else if (bitmap.count === groups) writer.u8(FULL)
    else if (bitmap.count === 0) writer.u8(EMPTY)
    else writer.u8(EXPLICIT).sized(bitmap.bytes)
  }
  return writer.finish()
}

function readOwnership(reader: ByteReader, objects: number): Ownership {
  const shift = reader.u8()
  const [owned, condemned, reached] = [0, 1, 2].map(() => readBitmap(reader, groupsOf(objects, shift)))
  if (shift === 0) return { owned, condemned, reached }
  return {
    owned: expanded(owned, shift, objects),
    condemned: expanded(condemned, shift, objects),
    reached: expanded(reached, shift, objects),
  }
}

function readBitmap(reader: ByteReader, size: number): Bitmap | undefined {
  const kind = reader.u8()
  if (kind === ABSENT) return undefined
  if (kind === FULL) return Bitmap.full(size)
  return kind === EMPTY ? Bitmap.empty(size) : new Bitmap(Uint8Array.from(reader.sized()))
}

function groupsOf(objects: number, shift: number): number {
  return Math.ceil(objects / 2 ** shift)
}

/** One bit for each group of objects. */
function coarsened({ objects, owned, condemned, reached }: PackRecord, shift: number): Ownership {
  const groups = groupsOf(objects, shift)
  const coarse = { owned: Bitmap.empty(groups), condemned: Bitmap.empty(groups), reached: Bitmap.empty(groups) }
  for (let group = 0; group < groups; group++) {
    const start = group * 2 ** shift
    const end = Math.min(objects, start + 2 ** shift)
    const ownedCount = owned?.countBetween(start, end) ?? 0
    if (ownedCount === end - start) coarse.owned.add(group)
    else if (ownedCount > 0 || (condemned?.countBetween(start, end) ?? 0) > 0) coarse.condemned.add(group)
    if ((reached?.countBetween(start, end) ?? 0) > 0) coarse.reached.add(group)
  }
  return { owned: owned && coarse.owned, condemned: coarse.condemned, reached: reached && coarse.reached }
}

function expanded(coarse: Bitmap | undefined, shift: number, objects: number): Bitmap | undefined {
  if (coarse === undefined) return undefined
  const bitmap = Bitmap.empty(objects)
  for (let ordinal = 0; ordinal < objects; ordinal++) if (coarse.has(ordinal >> shift)) bitmap.add(ordinal)
  return bitmap
}
