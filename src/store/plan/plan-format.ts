import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Environment, HashKey } from '../../environment.ts'
import { crc32Combine } from '../../compression/crc32-combine.ts'
import { Yielder } from '../../async/yielder.ts'
import { IdSet } from '../../object/id-set.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { ByteReader, ByteWriter, corrupt } from '../bytes/byte-codec.ts'
import type { Closure, PackSelection } from '../closure/closure.ts'
import type { Segment } from '../pack/segment.ts'

/**
 * The plan of an answer, one blob:
 *
 *     header | patch | tables | CRC-32 of the tables
 *
 * The patch holds, compressed once more, the lines of blocks of which only some lines belong. The tables hold the rows of the answer (byte ranges of
 * packs, and of the patch itself), in the order in which they are sent, and the closure that they stand for.
 */
const MAGIC = Buffer.from('STOWPLAN', 'latin1')
const FORMAT_VERSION = 1
/** Ids that are written or read between two checks of the clock: there can be a million. */
const STRETCH_IDS = 512
const ID_LENGTH_BYTES = 2
/** Of what is written once, and of a pack besides its bitmap. */
const FIXED_BYTES_MAX = 256
const PACK_BYTES_MAX = 32
/** Rows that are collected in one piece. */
const PIECE_ROWS_MIN = 16
const PIECE_ROWS_MAX = 4_096
/** The source number of rows that lie in the plan's own patch. */
export const PATCH_SOURCE = 0xffffffff

export function encodePlanHeader(planId: string, projectId: string): Uint8Array {
  return new ByteWriter().bytes(MAGIC).u16(FORMAT_VERSION).bytes(Buffer.from(planId, 'hex')).text(projectId).finish()
}

export const PLAN_COLUMNS = [
  'sources',
  'starts',
  'storedBytes',
  'rawBytes',
  'rawCrc32',
  'storedCrc32',
  'objects',
  'idBytes',
] as const

/** One entry for each row, in the order in which they are sent. `sources` numbers the packs of the plan. */
export type PlanRows = Readonly<Record<(typeof PLAN_COLUMNS)[number], Uint32Array>>

export interface PlanPack {
  readonly sequence: number
  readonly packId: string
  readonly isInline: boolean
}

export interface PlanTables {
  readonly rows: PlanRows
  /** The packs that rows refer to. */
  readonly packs: readonly PlanPack[]
  readonly closureDigest: string
  /**
   * The closure itself; only in the plan of a root without anything subtracted, since it serves to subtract it from
   * others.
   */
  readonly closure: Closure | undefined
  readonly missing: IdSet
  readonly absentClaims: IdSet
}

export interface PlanTotals {
  readonly objects: number
  readonly storedBytes: number
  readonly rawBytes: number
  readonly crc32: number
  readonly idBytes: number
}

/** Collects rows while a plan is made, in pieces: a list that grows in one piece leaves twice its size as garbage. */
export class PlanRowList {
  /** The fields of each row lie together, in the order of the columns. */
  readonly #pieces: Uint32Array[] = []
  #length = 0
  /** Rows that fit into the last piece. */
  #room = 0

  push(source: number, segment: Omit<Segment, 'source' | 'cut'>): void {
    if (this.#room === 0) this.#addPiece()
    const piece = this.#pieces[this.#pieces.length - 1]
    const at = piece.length - this.#room * PLAN_COLUMNS.length
    piece[at] = source
    piece[at + 1] = segment.start
    piece[at + 2] = segment.end - segment.start
    piece[at + 3] = segment.rawBytes
    piece[at + 4] = segment.rawCrc32
    piece[at + 5] = segment.storedCrc32
    piece[at + 6] = segment.objects
    piece[at + 7] = segment.idBytes
    this.#room--
    this.#length++
  }

  /** These rows, then those of `after`. */
  followedBy(after: PlanRowList): PlanRows {
    const columns = PLAN_COLUMNS.map((name, column) => {
      const values = new Uint32Array(this.#length + after.#length)
      after.#copy(column, values, this.#copy(column, values, 0))
      return [name, values] as const
    })
    return Object.fromEntries(columns) as unknown as PlanRows
  }

  #addPiece(): void {
    this.#room = Math.min(PIECE_ROWS_MAX, Math.max(PIECE_ROWS_MIN, this.#length))
    this.#pieces.push(new Uint32Array(this.#room * PLAN_COLUMNS.length))
  }

  /** Returns where the next value belongs. */
  #copy(column: number, to: Uint32Array, start: number): number {
    const end = start + this.#length
    let row = start
    for (const piece of this.#pieces)
      for (let at = column; at < piece.length && row < end; at += PLAN_COLUMNS.length) to[row++] = piece[at]
    return end
  }
}

export function totalsOf(rows: PlanRows): PlanTotals {
  const totals = { objects: 0, storedBytes: 0, rawBytes: 0, crc32: 0, idBytes: 0 }
  for (let row = 0; row < rows.sources.length; row++) {
    totals.objects += rows.objects[row]
    totals.storedBytes += rows.storedBytes[row]
    totals.rawBytes += rows.rawBytes[row]
    totals.idBytes += rows.idBytes[row]
    totals.crc32 = crc32Combine(totals.crc32, rows.rawCrc32[row], rows.rawBytes[row])
  }
  return totals
}

export async function encodePlanTables(tables: PlanTables, environment: Environment): Promise<Uint8Array> {
  const yielder = new Yielder(environment)
  const writer = new ByteWriter(encodedBytesMax(tables)).text(tables.closureDigest)
  writer.u32(tables.packs.length)
  for (const { sequence, packId, isInline } of tables.packs)
    writer
      .u48(sequence)
      .bytes(Buffer.from(packId, 'hex'))
      .u8(isInline ? 1 : 0)
  writer.u32(tables.rows.sources.length)
  for (const column of PLAN_COLUMNS) writer.bytes(bytesOf(tables.rows[column]))
  await writeIds(writer, tables.missing, yielder)
  await writeIds(writer, tables.absentClaims, yielder)
  if (tables.closure === undefined) writer.u8(0)
  else writeClosure(writer.u8(1), tables.closure)
  return writer.u32(crc32(writer.finish())).finish()
}

/** So that the writer, which may have megabytes, does not have to grow. */
function encodedBytesMax({ rows, packs, closure, missing, absentClaims }: PlanTables): number {
  let bytes = FIXED_BYTES_MAX + rows.sources.length * PLAN_COLUMNS.length * Uint32Array.BYTES_PER_ELEMENT
  bytes += (packs.length + (closure?.packs.length ?? 0)) * PACK_BYTES_MAX
  for (const { idBytes, size } of [missing, absentClaims]) bytes += idBytes + size * ID_LENGTH_BYTES
  for (const { wanted } of closure?.packs ?? []) bytes += wanted.bytes.length
  return bytes
}

/** Throws `corrupt_data`. */
export async function decodePlanTables(bytes: Uint8Array, environment: Environment): Promise<PlanTables> {
  const yielder = new Yielder(environment)
  const body = bytes.subarray(0, Math.max(0, bytes.length - 4))
  if (new ByteReader(bytes.subarray(body.length), 'a plan').u32() !== crc32(body))
    throw corrupt('a plan does not match its CRC-32')
  const reader = new ByteReader(body, 'a plan')
  const closureDigest = reader.text()
  const packs: PlanPack[] = []
  for (let left = reader.u32(); left > 0; left--) {
    packs.push({ sequence: reader.u48(), packId: reader.bytes(16).toString('hex'), isInline: reader.u8() === 1 })
  }
  const rowCount = reader.u32()
  const columns = PLAN_COLUMNS.map((column) => [column, wordsOf(reader.bytes(rowCount * 4))] as const)
  const rows = Object.fromEntries(columns) as unknown as PlanRows
  const missing = await readIds(reader, yielder, environment.hashKey)
  const absentClaims = await readIds(reader, yielder, environment.hashKey)
  const closure = reader.u8() === 1 ? readClosure(reader, { missing, absentClaims, digest: closureDigest }) : undefined
  return { rows, packs, closureDigest, closure, missing, absentClaims }
}

/** Hex digits that change whenever any byte of the answer would. */
export function planDigest(rows: PlanRows): string {
  const hash = createHash('sha256')
  for (const column of ['rawBytes', 'rawCrc32', 'storedBytes', 'storedCrc32'] as const)
    hash.update(bytesOf(rows[column]))
  return hash.digest('hex').slice(0, 32)
}

function writeClosure(writer: ByteWriter, { root, packs, sequence }: Closure): void {
  writer.u48(sequence).u48(root.sequence).u32(root.ordinal).u32(packs.length)
  for (const pack of packs) writer.u48(pack.sequence).bytes(Buffer.from(pack.packId, 'hex')).sized(pack.wanted.bytes)
}

function readClosure(reader: ByteReader, facts: Pick<Closure, 'missing' | 'absentClaims' | 'digest'>): Closure {
  const sequence = reader.u48()
  const root = { sequence: reader.u48(), ordinal: reader.u32() }
  const packs: PackSelection[] = []
  for (let left = reader.u32(); left > 0; left--) {
    packs.push({
      sequence: reader.u48(),
      packId: reader.bytes(16).toString('hex'),
      wanted: new Bitmap(Uint8Array.from(reader.sized())),
    })
  }
  return { ...facts, root, packs, sequence }
}

async function writeIds(writer: ByteWriter, ids: IdSet, yielder: Yielder): Promise<void> {
  const { bytes, ends } = ids.table()
  writer.u32(ends.length).reserve(bytes.length + ID_LENGTH_BYTES * ends.length)
  for (let i = 0, start = 0; i < ends.length; start = ends[i++]) {
    writer.u16(ends[i] - start).part(bytes, start, ends[i])
    if (i % STRETCH_IDS === 0) await yielder.due()
  }
}

async function readIds(reader: ByteReader, yielder: Yielder, key: HashKey): Promise<IdSet> {
  const count = reader.u32()
  const ids = new IdSet(count, undefined, key)
  for (let i = 0; i < count; i++) {
    ids.add(reader.bytes(reader.u16()))
    if (i % STRETCH_IDS === 0) await yielder.due()
  }
  return ids
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength)
}

function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(Uint8Array.from(bytes).buffer)
}
