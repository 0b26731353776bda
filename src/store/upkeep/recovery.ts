import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { BlobStore, Entry, RecordStore } from '../../storage/backend.ts'
import { type CommittedPack, type Committer, projectRemoved } from '../ingest/committer.ts'
import { keyBounds, keyParts, packKey, parseHex } from '../records/keys.ts'
import { onlyIfDamaged, packOf, readTables } from '../records/pack-catalog.ts'
import { decodePackRecord } from '../records/pack-record.ts'
import { isRemoved, readHead } from '../records/projects.ts'
import { decodeMark } from '../records/records.ts'

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
  decodeMark(mark.key, mark.value)
  const [projectId, generationHex, sequenceHex] = keyParts(mark.key)
  const generation = parseHex(generationHex)
  const sequence = parseHex(sequenceHex)
  const key = packKey(projectId, generation, sequence)
  const [value] = await parts.records.getMany([key])
  const record = value === undefined ? undefined : decodePackRecord(key, value)
  if (record === undefined) await parts.records.commit({ remove: [mark.key] })
  else if (record.state === 'committed') await applyPack(parts, { projectId, generation, sequence, record })
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
