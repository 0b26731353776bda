import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { BlobStore, Entry, RecordStore } from '../../storage/backend.ts'
import { type Committer, projectRemoved } from '../ingest/committer.ts'
import { keyBounds } from '../records/keys.ts'
import { type CommittedPack, markedPack } from '../records/committed-pack.ts'
import { onlyIfDamaged, packOf, readTables } from '../records/pack-catalog.ts'
import { isRemoved, readHead } from '../records/projects.ts'

export interface RecoveryParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly committer: Committer
  readonly environment: Environment
}

/**
 * Applies the packs that were committed and whose ids may not all be written: a crash between the commit and the
 * response leaves them. A damaged pack is reported to `onDamage` and does not keep others from being served; a storage
 * failure is thrown.
 */
export async function applyPending(parts: RecoveryParts, onDamage: (error: unknown) => void): Promise<void> {
  for await (const entries of parts.records.range(keyBounds('pending'))) {
    for (const entry of entries) {
      try {
        await applyMarked(parts, entry)
      } catch (error) {
        if (error instanceof StowageError && error.isRetryable) throw error
        onDamage(error)
      }
    }
  }
}

/** Applies the pack that this mark stands for, unless it was applied meanwhile. */
export async function applyMarked(parts: RecoveryParts, mark: Entry): Promise<void> {
  const pack = await markedPack(parts.records, mark)
  if (pack === undefined) await parts.records.commit({ remove: [mark.key] })
  else if (pack.record.state === 'committed') await applyPack(parts, pack)
}

/** Applies a pack from its own tables. Throws `project_removed` if a sweep has taken it with its project. */
export async function applyPack(
  { records, blobs, committer, environment }: RecoveryParts,
  pack: CommittedPack,
): Promise<void> {
  try {
    await committer.apply(pack, await readTables(blobs, await packOf(records, pack), environment))
  } catch (error) {
    onlyIfDamaged(error)
    const { head } = await readHead(records, pack.projectId)
    throw isRemoved(head, pack.generation) ? projectRemoved() : error
  }
}
