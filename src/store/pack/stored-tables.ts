import type { Environment } from '../../environment.ts'
import { INFLATED_SPARE_BYTES, inflateFragments } from '../../compression/inflate.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import {
  decodeSections,
  DEFLATED_SECTIONS,
  divideTables,
  encodeSections,
  type PackTables,
  withTrailer,
} from './pack-format.ts'

/**
 * As `encodeTables`, with the sections compressed: for packs that are written once and kept. They take about a third,
 * and reading them for the first time takes longer.
 */
export async function deflateTables(
  tables: PackTables,
  sectionsStart: number,
  deflate: (raw: Uint8Array) => Promise<Uint8Array>,
): Promise<Uint8Array[]> {
  const raw = Buffer.concat(encodeSections(tables))
  return withTrailer(tables, [await deflate(raw)], {
    sectionsStart,
    features: DEFLATED_SECTIONS,
    inflatedBytes: raw.length,
  })
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
    return { tables: decodeSections(memory, trailer), memory }
  }
  const into = buffers?.take(trailer.inflatedBytes + INFLATED_SPARE_BYTES)
  const raw = await inflateFragments(sections, trailer.inflatedBytes, { environment, into })
  const isInto = into !== undefined && into.buffer === raw.buffer
  if (into !== undefined && !isInto) buffers?.giveBack(into)
  const tables = decodeSections(new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength), trailer)
  return { tables, memory: isInto ? into : raw }
}

/** Tables are words of 4 bytes, which may lie anywhere in a record. */
function aligned(sections: Uint8Array): Uint8Array {
  return sections.byteOffset % 4 === 0 ? sections : new Uint8Array(sections)
}
