import type { Environment } from '../../environment.ts'
import { inflateFragments } from '../../compression/inflate.ts'
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

/** Reads sections and trailer, which must be all of `bytes`. Throws `corrupt_data`. */
export async function decodeTables(bytes: Uint8Array, environment: Environment): Promise<PackTables> {
  const { sections, trailer } = divideTables(bytes)
  if ((trailer.features & DEFLATED_SECTIONS) === 0) return decodeSections(aligned(sections), trailer)
  const raw = await inflateFragments(sections, trailer.inflatedBytes, { environment })
  return decodeSections(new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength), trailer)
}

/** Tables are words of 4 bytes, which may lie anywhere in a record. */
function aligned(sections: Uint8Array): Uint8Array {
  return sections.byteOffset % 4 === 0 ? sections : new Uint8Array(sections)
}
