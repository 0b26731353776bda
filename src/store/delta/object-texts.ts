import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import { linePartsOf } from '../../object/line.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { type PackTables, tableEntry, textBytesOf } from '../pack/pack-format.ts'
import { linePlaces, placedLine } from '../pack/line-places.ts'
import type { LineReader } from '../pack/line-reader.ts'
import { type PlacedSegment, type Segment, segmentsOf } from '../pack/segment.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
import type { ObjectPlace } from '../records/object-record.ts'

/** If a read wants one object of a pack in so many, or fewer, each is read by itself: most blocks hold one of them. */
const SPARSE_SHARE = 8

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

export interface TextReaders {
  readonly reader: SegmentReader
  readonly lines: LineReader
}

/**
 * The texts of objects by their ids as `latin1` strings of UTF-8. Neighbours of a pack are read together; of an object
 * without neighbours, its block is inflated only as far as its line.
 */
export async function readTexts(
  { reader, lines }: TextReaders,
  objects: readonly PlacedObject[],
  reading: { readonly signal: AbortSignal; readonly buffers: AnswerBuffers },
): Promise<ReadonlyMap<string, Uint8Array>> {
  const texts = new Map<string, Uint8Array>()
  const note = (some: Uint8Array): void => {
    for (const { id, json } of linePartsOf(some)) texts.set(id.toString('latin1'), json)
  }
  const together: (readonly Segment[])[] = []
  for (const some of byPack(objects).values()) {
    const [{ pack, tables }] = some
    if (some.length * SPARSE_SHARE <= tables.objects) {
      for (const object of some) note(await lines.read(lineSegment(object), reading.signal))
      continue
    }
    const wanted = Bitmap.empty(tables.objects)
    for (const { ordinal } of some) wanted.add(ordinal)
    together.push([...segmentsOf(tables, wanted, pack.source)])
  }
  for await (const some of reader.lines(together, reading)) note(some)
  return texts
}

function byPack(objects: readonly PlacedObject[]): ReadonlyMap<number, readonly PlacedObject[]> {
  const packs = new Map<number, PlacedObject[]>()
  for (const object of objects) {
    const { sequence } = object.pack
    const some = packs.get(sequence)
    if (some === undefined) packs.set(sequence, [object])
    else some.push(object)
  }
  return packs
}

function lineSegment({ pack, tables, ordinal }: PlacedObject): PlacedSegment {
  const [place] = linePlaces(tables, ordinal, ordinal + 1)
  const text = { textBytes: textBytesOf(tables, ordinal), textCrc32: tables.textCrc32[ordinal] }
  return placedLine(pack.source, tableEntry(tables.ids, ordinal), { ...place, ...text })
}
