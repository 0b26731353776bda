import { decodeUpload } from './decode/upload.ts'
import type { UploadSource } from './decode/wire.ts'
import type { Limits } from './limits.ts'
import type { ObjectWriter } from './object/graph-store.ts'
import { type AssignedId, inspectBatches } from './object/inspect.ts'

/** What became of an upload. */
export interface UploadSummary {
  /** Objects that came, each id once. */
  readonly objects: number
  /** Of these, how many were not held before. */
  readonly created: number
  /** Of the others, how many came with a text that differs from the one that is held. The held one stays. */
  readonly differing: number
  /** Objects that came without an id, by where they stood in the request, and the id each was given. */
  readonly assigned: readonly AssignedId[]
}

/** The way in: decode, inspect, store. All or nothing; durable when it resolves. */
export async function uploadObjects(
  to: { readonly store: ObjectWriter; readonly limits: Limits; readonly projectId: string },
  source: UploadSource,
  signal: AbortSignal,
): Promise<UploadSummary> {
  const { store, limits, projectId } = to
  const assigned: AssignedId[] = []
  const elements = decodeUpload(source, limits, { signal })
  const batches = inspectBatches(elements, limits, { signal, onAssigned: (one) => assigned.push(one) })
  const { objects, inserted, differing } = await store.put(projectId, batches, { signal })
  return { objects, created: inserted, differing, assigned }
}
