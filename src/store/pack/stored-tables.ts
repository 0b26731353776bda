import { ByteWriter } from '../bytes/byte-codec.ts'
import { Yielder } from '../../async/yielder.ts'
import type { Environment } from '../../environment.ts'
import { INFLATED_SPARE_BYTES, inflateFragments } from '../../compression/inflate.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import { decodeSections } from './decoded-sections.ts'
import {
  DEFLATED_SECTIONS,
  divideTables,
  encodeSections,
  PACKED_IDS,
  type PackTables,
  withTrailer,
} from './pack-format.ts'
import { packedIds, StoredIds, UNPACKED_BYTES } from './stored-ids.ts'

/**
 * The tables as they lie at the end of a pack, trailer included. `sectionsStart` is their future start in the pack. Ids of
 * 32 hex digits are packed: most readers go through the tables of many packs, and need no digits.
 */
export async function encodeTables(
  tables: PackTables,
  sectionsStart: number,
  environment: Environment,
): Promise<Uint8Array[]> {
  const packed = await packedIds(tables.ids, new Yielder(environment))
  const features = packed === undefined ? 0 : PACKED_IDS
  return withTrailer(tables, encodeSections(tables, packed), { sectionsStart, features, inflatedBytes: 0 })
}

/**
 * The same with the sections compressed: for packs that are written once and kept. They take less than half, and reading
 * them for the first time takes longer. To inflate digits of ids, which hardly compress, would take longer than
 * everything else.
 */
export async function deflateTables(
  tables: PackTables,
  sectionsStart: number,
  deflate: (raw: Uint8Array) => Promise<Uint8Array>,
  environment: Environment,
): Promise<Uint8Array[]> {
  const packed = await packedIds(tables.ids, new Yielder(environment))
  const sections = encodeSections(tables, packed)
  const writer = new ByteWriter(sections.reduce((sum, { length }) => sum + length, 0))
  for (const section of sections) writer.bytes(section)
  const raw = writer.finish()
  const features = DEFLATED_SECTIONS | (packed === undefined ? 0 : PACKED_IDS)
  return withTrailer(tables, [await deflate(raw)], { sectionsStart, features, inflatedBytes: raw.length })
}

/** Tables, and the memory that they are views of. */
export interface DecodedTables {
  readonly tables: PackTables
  readonly memory: Uint8Array
}

/** Reads sections and trailer, which must be all of `bytes`. Throws `corrupt_data`. */
export async function decodeTables(bytes: Uint8Array, environment: Environment): Promise<PackTables> {
  return (await decodeTablesInto(undefined, bytes, environment)).tables
}

/** The same in memory that `buffers` lends, if they are compressed; otherwise they may be views of `bytes`. */
export async function decodeTablesInto(
  buffers: BufferPool | undefined,
  bytes: Uint8Array,
  environment: Environment,
): Promise<DecodedTables> {
  const { sections, trailer } = divideTables(bytes)
  if ((trailer.features & DEFLATED_SECTIONS) === 0) {
    const memory = aligned(sections)
    return { tables: decodeSections(memory, trailer, buffers), memory }
  }
  const into = buffers?.take(trailer.inflatedBytes + INFLATED_SPARE_BYTES)
  const raw = await inflateFragments(sections, trailer.inflatedBytes, { environment, into })
  const isInto = into !== undefined && into.buffer === raw.buffer
  if (into !== undefined && !isInto) buffers?.giveBack(into)
  const tables = decodeSections(new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength), trailer, buffers)
  return { tables, memory: isInto ? into : raw }
}

/** Gives back the memory of tables: there must be no view of them any more. */
export function giveBackTables(buffers: BufferPool, { tables, memory }: DecodedTables): void {
  buffers.giveBack(memory)
  if (tables.ids instanceof StoredIds) tables.ids.giveBack()
}

/** The memory of tables, with ids that are not unpacked yet. */
export function tablesBytes({ tables, memory }: DecodedTables): number {
  const { ids, objects } = tables
  return memory.buffer.byteLength + (ids instanceof StoredIds ? objects * UNPACKED_BYTES : 0)
}

/** Tables are words of 4 bytes, which may lie anywhere in a record. */
function aligned(sections: Uint8Array): Uint8Array {
  return sections.byteOffset % 4 === 0 ? sections : new Uint8Array(sections)
}
