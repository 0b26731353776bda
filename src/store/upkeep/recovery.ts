import { StowageError } from '../../errors.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import { type CommittedPack, type Committer, projectRemoved } from '../ingest/committer.ts'
import {
  isOfExtension,
  keyBounds,
  keyParts,
  packBlobName,
  packKey,
  parseHex,
  planBlobName,
  projectFolder,
} from '../records/keys.ts'
import { onlyIfDamaged, packOf, readTables } from '../records/pack-catalog.ts'
import { decodePackRecord } from '../records/pack-record.ts'
import { isRemoved, readHead } from '../records/projects.ts'
import { decodeMark, decodePlanRecord } from '../records/records.ts'
import { isTombstone } from './tombstone.ts'

/** Blobs that no record names are kept this long: an upload whose commit is on its way may be about to name one. */
const ORPHAN_GRACE_MS = 60 * 60_000
const REMOVALS_AT_ONCE = 256

export interface RecoveryParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly committer: Committer
}

/**
 * Applies the packs that were committed and whose ids may not all be written: a crash between the commit and the
 * response leaves them. A damaged pack is reported to `onDamage` and does not keep others from being served; a storage
 * failure is thrown.
 */
export async function applyPending(parts: RecoveryParts, onDamage: (error: unknown) => void): Promise<void> {
  for await (const entries of parts.records.range(keyBounds('pending'))) {
    for (const { key, value } of entries) {
      try {
        decodeMark(key, value)
        await applyMarked(parts, key)
      } catch (error) {
        if (error instanceof StowageError && error.isRetryable) throw error
        onDamage(error)
      }
    }
  }
}

async function applyMarked(parts: RecoveryParts, pending: Uint8Array): Promise<void> {
  const [projectId, generationHex, sequenceHex] = keyParts(pending)
  const generation = parseHex(generationHex)
  const sequence = parseHex(sequenceHex)
  const key = packKey(projectId, generation, sequence)
  const [value] = await parts.records.getMany([key])
  if (value === undefined) await parts.records.commit({ remove: [pending] })
  else await applyPack(parts, { projectId, generation, sequence, record: decodePackRecord(key, value) })
}

/** Applies a pack from its own tables. Throws `project_removed` if a sweep has taken it with its project. */
export async function applyPack({ records, blobs, committer }: RecoveryParts, pack: CommittedPack): Promise<void> {
  try {
    await committer.apply(pack, await readTables(blobs, packOf(pack.projectId, pack.sequence, pack.record)))
  } catch (error) {
    onlyIfDamaged(error)
    const { head } = await readHead(records, pack.projectId)
    throw isRemoved(head, pack.generation) ? projectRemoved() : error
  }
}

/**
 * Removes blobs that no record names: uploads that failed or were cut off before their commit, and plans that were
 * replaced. Only for projects that have a record: if the records were lost, `reindex` needs every blob.
 */
export async function sweepOrphans(
  { records, blobs }: RecoveryParts,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  const candidates = new Set<string>()
  for await (const batch of blobs.list('', { signal })) {
    for (const { name, modifiedAtMs } of batch) {
      if (modifiedAtMs < nowMs - ORPHAN_GRACE_MS && !isTombstone(name) && !isOfExtension(name)) candidates.add(name)
    }
  }
  if (candidates.size === 0) return
  const folders = new Set<string>()
  for await (const entries of records.range(keyBounds('head'), { signal })) {
    for (const { key } of entries) folders.add(projectFolder(keyParts(key)[0]))
  }
  for await (const entries of records.range(keyBounds('pack'), { signal })) {
    for (const { key, value } of entries)
      candidates.delete(packBlobName(keyParts(key)[0], decodePackRecord(key, value).packId))
  }
  for await (const entries of records.range(keyBounds('plan'), { signal })) {
    for (const { key, value } of entries)
      candidates.delete(planBlobName(keyParts(key)[0], decodePlanRecord(key, value).planId))
  }
  const orphans = [...candidates].filter((name) => folders.has(name.split('/')[0]))
  for (let i = 0; i < orphans.length; i += REMOVALS_AT_ONCE) {
    signal.throwIfAborted()
    await blobs.remove(orphans.slice(i, i + REMOVALS_AT_ONCE))
  }
}
