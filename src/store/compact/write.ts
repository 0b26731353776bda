import type { DeflatePool } from '../../compression/deflate-pool.ts'
import type { BlobStore } from '../../storage/backend.ts'
import { PackWriter, UPLOAD_BASE_BYTES } from '../ingest/pack-writer.ts'
import type { PackHeader, PackTables } from '../pack/pack-format.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
import { storePack } from '../pack/store-pack.ts'
import { packBlobName } from '../records/keys.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import { MovedAdmission } from './moved-admission.ts'
import { type MovedBatch, movedBatches } from './moved-batches.ts'
import type { MergedOrder } from './order.ts'
import { similarFirst, type SortingParts } from './similar-first.ts'
import type { Pace } from './pace.ts'

/** Besides the tables: blocks in flight, which may be larger than those of an upload. */
export const MERGE_BASE_BYTES: number = 4 * UPLOAD_BASE_BYTES

export interface MergeWriting extends SortingParts {
  readonly blobs: BlobStore
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly deflate: DeflatePool
  readonly pace: Pace
}

/** A merged pack as it was written, before anything names it. */
export interface WrittenPack {
  readonly packId: string
  readonly packBytes: number
  readonly tablesStart: number
  readonly tables: PackTables
  readonly inline: Uint8Array | undefined
}

/** Writes the objects into one pack, in this order. */
export async function writeMerged(
  writing: MergeWriting,
  header: PackHeader,
  { closures, rest }: MergedOrder,
  signal: AbortSignal,
): Promise<WrittenPack> {
  const { blobs, deflate, environment, memory, pace } = writing
  await memory.hold(MERGE_BASE_BYTES)
  const admission = new MovedAdmission(environment)
  const writer = new PackWriter<MovedBatch>(header, {
    deflate,
    admission,
    memory,
    quota: undefined,
    environment,
    deflatesTables: true,
  })
  const objects = async function* (): AsyncGenerator<MovedBatch> {
    yield* movedBatches(writing, closures, signal)
    yield* similarFirst(writing, movedBatches(writing, rest, signal))
  }
  const batches = pace.paced(objects(), signal)
  const blobName = packBlobName(header.projectId, header.packId)
  const inline = await storePack(blobs, blobName, writer.content(batches, signal), signal)
  return { packId: header.packId, packBytes: writer.packBytes, inline, ...writer.finished }
}
