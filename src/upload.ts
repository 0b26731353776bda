import type { Account } from './events/account.ts'
import { decodeUpload, isDeltaUpload } from './decode/upload.ts'
import type { UploadSource } from './decode/wire.ts'
import type { Limits } from './limits.ts'
import type { ObjectSelector, ObjectWriter } from './object/graph-store.ts'
import { type AssignedId, inspectBatches } from './object/inspect.ts'
import { undoDeltas } from './undo-deltas.ts'

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

/** The way in: decode, undo deltas, inspect, store. All or nothing; durable when it resolves. */
export async function uploadObjects(
  to: {
    readonly store: ObjectWriter & ObjectSelector
    readonly limits: Limits
    readonly projectId: string
    readonly account: Account
  },
  source: UploadSource,
  signal: AbortSignal,
): Promise<UploadSummary> {
  const { store, limits, projectId, account } = to
  const assigned: AssignedId[] = []
  account.storing()
  const decoded = decodeUpload({ ...source, body: account.receiving(source.body) }, limits, { signal })
  const elements = isDeltaUpload(source) ? undoDeltas(decoded, { store, projectId, limits, signal }) : decoded
  const batches = inspectBatches(elements, limits, { signal, onAssigned: (one) => assigned.push(one) })
  const stored = await store.put(projectId, batches, { signal })
  account.stored(stored)
  const { objects, inserted, differing } = stored
  return { objects, created: inserted, differing, assigned }
}
