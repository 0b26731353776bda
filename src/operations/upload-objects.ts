import type { Environment } from '../environment.ts'
import type { RequestTrace } from '../events/request-trace.ts'
import { decodeBlocks, isBlockUpload } from '../decode/decode-blocks.ts'
import { decodeUpload, isDeltaUpload } from '../decode/decode-upload.ts'
import type { UploadSource } from '../decode/wire.ts'
import { AssignedIds } from '../inspect/assigned-ids.ts'
import { inspectBlocks } from '../inspect/inspect-blocks.ts'
import { inspectBatches } from '../inspect/inspect.ts'
import type { Limits } from '../limits.ts'
import type { MemoryLease } from '../memory/memory-lease.ts'
import type { ObjectBatch } from '../object/batch.ts'
import type { ObjectSelector, ObjectWriter } from '../object/graph-store.ts'
import type { UploadSummary } from '../object/wire-types.ts'
import { resolveDeltas } from './resolve-deltas.ts'

/** The memory of an upload however little has arrived: its request, and the stages that wait for it. */
const BEGUN_BYTES = 65_536
/** The initial memory per arrived byte, on its way through the stages. */
const COST_PER_BYTE = 8
/** The current batch and the blocks in flight: the stages hold more than this only for large objects. */
const UNDER_WAY_BYTES_MAX: number = 2 * 1_048_576
/** Objects up to this size travel many in a batch. */
const SMALL_OBJECT_BYTES_MAX = 262_144
/** A large object exists as it arrived, as a line, and as a block. */
const COPIES_OF_LARGE_OBJECTS = 3

/** The way in: decode, undo deltas, inspect, store. All or nothing; durable when it resolves. */
export async function uploadObjects(
  to: {
    readonly store: ObjectWriter & ObjectSelector
    readonly limits: Limits
    readonly projectId: string
    readonly trace: RequestTrace
    readonly memory: MemoryLease
    readonly environment?: Environment | undefined
  },
  source: UploadSource,
  signal: AbortSignal,
): Promise<UploadSummary> {
  const { store, limits, projectId, trace, memory, environment } = to
  const assigned = new AssignedIds(limits.assignedIdsMax)
  let rewritten = 0
  trace.storing()
  await memory.hold(BEGUN_BYTES)
  const traced = { ...source, body: trace.receiving(source.body) }
  const batches = isBlockUpload(source) ? ofBlocks(traced) : ofElements(traced)
  const stored = await store.put(projectId, batches, { signal, memory, bodyBytes: source.contentLength })
  trace.stored(stored)
  const { objects, inserted, differing } = stored
  await memory.hold(assigned.listBytes)
  return { objects, created: inserted, differing, rewritten, assigned: assigned.list(), assignedCount: assigned.count }

  function ofElements(from: UploadSource): AsyncIterable<ObjectBatch> {
    const decoded = decodeUpload(from, limits, { signal, memory, environment })
    const elements = isDeltaUpload(source)
      ? resolveDeltas(decoded, { store, projectId, limits, signal, memory })
      : decoded
    return inspectBatches(
      leased(elements, (batch) => batch.map(({ bytes }) => bytes.length), { memory, assigned }),
      limits,
      { signal, assigned, onRewritten: () => rewritten++, bufferPool: memory.bufferPool, environment },
    )
  }

  function ofBlocks(from: UploadSource): AsyncIterable<ObjectBatch> {
    const blocks = decodeBlocks(from, limits, { signal, memory, environment })
    return inspectBlocks(
      leased(blocks, (group) => group.blocks.map(({ rawBytes }) => rawBytes), { memory, assigned }),
      limits,
      { signal, bufferPool: memory.bufferPool, environment },
    )
  }
}

/**
 * Leases the memory that the following stages hold of a batch: little for an upload that has just begun, and more only
 * for large objects.
 */
async function* leased<Batch>(
  batches: AsyncIterable<Batch>,
  sizesOf: (batch: Batch) => readonly number[],
  { memory, assigned }: { readonly memory: MemoryLease; readonly assigned: AssignedIds },
): AsyncGenerator<Batch> {
  const part = memory.part()
  let cameBytes = 0
  for await (const batch of batches) {
    let largestBytes = 0
    for (const bytes of sizesOf(batch)) {
      cameBytes += bytes
      if (bytes > largestBytes) largestBytes = bytes
    }
    const underWayBytes = Math.min(UNDER_WAY_BYTES_MAX, cameBytes * COST_PER_BYTE)
    const largeBytes = largestBytes > SMALL_OBJECT_BYTES_MAX ? largestBytes * COPIES_OF_LARGE_OBJECTS : 0
    await part.set(underWayBytes + largeBytes + assigned.memoryBytes)
    yield batch
  }
  await part.set(assigned.memoryBytes)
}
