import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import { linePartsOf } from '../../object/line.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { type PackTables, tableEntry } from '../pack/pack-format.ts'
import { type Segment, segmentsOf } from '../pack/segment.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
import type { ObjectPlace } from '../records/object-record.ts'

/** An object of a pack whose tables are there. */
export interface PlacedObject {
  readonly pack: Pack
  readonly tables: PackTables
  readonly ordinal: number
}

export async function placeObject(
  catalog: PackCatalog,
  project: ProjectView,
  { sequence, ordinal }: ObjectPlace,
): Promise<PlacedObject> {
  const pack = await catalog.pack(project, sequence)
  return { pack, tables: await catalog.tables(pack), ordinal }
}

/** A view. */
export function idOf({ tables, ordinal }: PlacedObject): Uint8Array {
  return tableEntry(tables.ids, ordinal)
}

export function lineBytesOf({ tables, ordinal }: PlacedObject): number {
  return tables.lineBytes[ordinal]
}

/** The texts of objects by their ids as `latin1` strings of UTF-8. Neighbours of a pack are read together. */
export async function readTexts(
  reader: SegmentReader,
  objects: readonly PlacedObject[],
  reading: { readonly signal: AbortSignal; readonly buffers: AnswerBuffers },
): Promise<ReadonlyMap<string, Uint8Array>> {
  const texts = new Map<string, Uint8Array>()
  for await (const lines of reader.lines([...segmentsByPack(objects)], reading)) {
    for (const { id, json } of linePartsOf(lines)) texts.set(id.toString('latin1'), json)
  }
  return texts
}

function* segmentsByPack(objects: readonly PlacedObject[]): Generator<readonly Segment[]> {
  const wantedByPack = new Map<number, { readonly object: PlacedObject; readonly wanted: Bitmap }>()
  for (const object of objects) {
    const { sequence } = object.pack
    const entry = wantedByPack.get(sequence) ?? { object, wanted: Bitmap.empty(object.tables.objects) }
    entry.wanted.add(object.ordinal)
    wantedByPack.set(sequence, entry)
  }
  for (const { object, wanted } of wantedByPack.values())
    yield [...segmentsOf(object.tables, wanted, object.pack.source)]
}
