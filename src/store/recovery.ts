import type { BlobStore, RecordStore } from '../storage/backend.ts'
import type { Committer } from './committer.ts'
import { keyBounds, keyParts, packBlobName, packKey, parseHex, planBlobName } from './keys.ts'
import { packOf, readTables } from './pack-catalog.ts'
import { decodePackRecord, decodePlanRecord } from './records.ts'
import { isTombstone } from './tombstone.ts'

/** Blobs that no record names are kept this long: an upload whose commit is on its way may be about to name one. */
const ORPHAN_GRACE_MS = 60 * 60_000
const REMOVALS_AT_ONCE = 256

export interface RecoveryParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly committer: Committer
}

/** Applies the packs that were committed and whose ids may not all be written: what a crash between the commit and the answer leaves. */
export async function applyPending({ records, blobs, committer }: RecoveryParts, onError: (error: unknown) => void): Promise<void> {
  for await (const entries of records.range(keyBounds('pending'))) {
    for (const { key: pending } of entries) {
      const [projectId, generationHex, sequenceHex] = keyParts(pending)
      const generation = parseHex(generationHex)
      const sequence = parseHex(sequenceHex)
      const key = packKey(projectId, generation, sequence)
      try {
        const [value] = await records.getMany([key])
        if (value === undefined) {
          await records.commit({ remove: [pending] })
          continue
        }
        const record = decodePackRecord(key, value)
        await committer.apply({ projectId, generation, sequence, record }, await readTables(blobs, packOf(projectId, sequence, record)))
      } catch (error) {
        // One damaged pack must not keep every other project from being served; `check` names it.
        onError(error)
      }
    }
  }
}

/** Removes blobs that no record names: uploads that failed or were cut off before their commit, and plans that were replaced. */
export async function sweepOrphans({ records, blobs }: RecoveryParts, nowMs: number, signal: AbortSignal): Promise<void> {
  const candidates = new Set<string>()
  for await (const batch of blobs.list('', { signal })) {
    for (const { name, modifiedAtMs } of batch) {
      if (modifiedAtMs < nowMs - ORPHAN_GRACE_MS && !isTombstone(name)) candidates.add(name)
    }
  }
  for await (const entries of records.range(keyBounds('pack'), { signal })) {
    for (const { key, value } of entries) candidates.delete(packBlobName(keyParts(key)[0], decodePackRecord(key, value).packId))
  }
  for await (const entries of records.range(keyBounds('plan'), { signal })) {
    for (const { key, value } of entries) candidates.delete(planBlobName(keyParts(key)[0], decodePlanRecord(key, value).planId))
  }
  const orphans = [...candidates]
  for (let i = 0; i < orphans.length; i += REMOVALS_AT_ONCE) {
    signal.throwIfAborted()
    await blobs.remove(orphans.slice(i, i + REMOVALS_AT_ONCE))
  }
}
