import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { BlobStore, Entry, RecordStore } from '../../storage/backend.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { keyBounds, keyParts, packBlobName, parseHex, planBlobName } from '../records/keys.ts'
import { afterLostTry } from '../records/lost-try.ts'
import { asHead, garbageEntry, isRemoved, readHead } from '../records/projects.ts'
import { decodePackRecord } from '../records/pack-record.ts'
import { decodeHead, decodeMark, decodePlanRecord, encodeHead } from '../records/records.ts'
import { putTombstone } from './tombstone.ts'

const ATTEMPTS_MAX = 100
const REMOVALS_AT_ONCE = 25

export interface RemovalParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly nowMs: () => number
  readonly environment: Environment
}

/** Makes a project unreadable at once. What it held is left for `sweepGarbage`. */
export async function removeProject(parts: RemovalParts, projectId: string): Promise<void> {
  const { records, blobs, nowMs } = parts
  let read = await readHead(records, projectId)
  for (let tries = 1; tries <= ATTEMPTS_MAX; tries++) {
    const { key, bytes, head } = read
    if (head === undefined || head.removed) return
    const { generation } = head
    const put = [{ key, value: encodeHead(key, { ...head, removed: true }) }, garbageEntry(projectId, generation)]
    const expect = [{ key, value: bytes }]
    const result = await records.commit({ put, expect })
    if (!result.ok) {
      const [found] = await afterLostTry(parts, { expect, conflicts: result.conflicts, tries })
      read = asHead(key, found)
      continue
    }
    await putTombstone(blobs, { projectId, generation, removedAtMs: nowMs() })
    return
  }
  throw new StowageError('overloaded', 'too many writes to this project prevent its removal; try again shortly')
}

/**
 * Frees the space of removed projects. It may be cut off at any point and continues from there. A project that cannot
 * be swept does not block others; the first of their errors is thrown in the end.
 */
export async function sweepGarbage(parts: RemovalParts, signal: AbortSignal): Promise<void> {
  const failures: unknown[] = []
  for await (const entries of parts.records.range(keyBounds('garbage'), { signal })) {
    for (const entry of entries) {
      try {
        await sweepMarked(parts, entry, signal)
      } catch (error) {
        if (!(error instanceof StowageError) || error.isRetryable) throw error
        failures.push(error)
      }
    }
  }
  if (failures.length > 0) throw failures[0]
}

/**
 * Marks removed generations of which ids are left, so that the next sweep comes to them: of an upload whose server slept
 * through the sweeps, wrote them, and then died.
 */
export async function markLeftIds(records: RecordStore, signal: AbortSignal): Promise<void> {
  for await (const entries of records.range(keyBounds('head'), { signal })) {
    for (const { key, value } of entries) {
      const [projectId] = keyParts(key)
      const { generation: last, removed } = decodeHead(key, value)
      const removedUpTo = removed ? last : last - 1
      const generation = removedUpTo === 0 ? undefined : await firstWithIds(records, projectId, removedUpTo, signal)
      if (generation !== undefined) await records.insertMany([garbageEntry(projectId, generation)])
    }
  }
}

/** The first generation up to this one of which the records of objects are left. */
async function firstWithIds(
  records: RecordStore,
  projectId: string,
  upTo: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { gte } = keyBounds('object', projectId, 1)
  const { lt } = keyBounds('object', projectId, upTo)
  for await (const entries of records.range({ gte, lt, limit: 1 }, { signal }))
    for (const { key } of entries) return parseHex(keyParts(key)[1])
  return undefined
}

async function sweepMarked(parts: RemovalParts, { key, value }: Entry, signal: AbortSignal): Promise<void> {
  decodeMark(key, value)
  const [projectId, generationHex] = keyParts(key)
  const generation = parseHex(generationHex)
  const { head } = await readHead(parts.records, projectId, signal)
  // The mark and the project's record must agree before anything is destroyed.
  if (!isRemoved(head, generation))
    throw corrupt(`a project is marked as removed, generation ${generation}, but its record says otherwise`)
  const isDone = await sweepGeneration(parts, projectId, generation, signal)
  // An upload that wrote ids behind this sweep has put another mark, and another sweep follows.
  if (isDone) await parts.records.commit({ remove: [key], expect: [{ key, value }] })
}

/**
 * Packs are removed before the ids of their objects. An upload that is writing its ids then finds that its pack is
 * gone, and its writes are swept afterwards. False if there was such an upload, so that another sweep must follow.
 */
async function sweepGeneration(
  parts: RemovalParts,
  projectId: string,
  generation: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { records, blobs, nowMs } = parts
  await putTombstone(blobs, { projectId, generation, removedAtMs: nowMs() })
  const bounds = (
    kind:
      | 'object'
      | 'pending'
      | 'plan'
      | 'pack'
      | 'retiredContent'
      | 'totals'
      | 'pin'
      | 'merge'
      | 'collection'
      | 'exportPoint',
  ): ReturnType<typeof keyBounds> => keyBounds(kind, projectId, generation)
  const pending = await sweepRecords(records, bounds('pending'), signal)
  const blobsOf = (nameOf: (entry: Entry) => string) => (entries: readonly Entry[]) =>
    blobs.remove(namesOf(entries, nameOf))
  await sweepRecords(
    records,
    bounds('plan'),
    signal,
    blobsOf(({ key, value }) => planBlobName(projectId, decodePlanRecord(key, value).planId)),
  )
  await sweepRecords(
    records,
    bounds('pack'),
    signal,
    blobsOf(({ key, value }) => packBlobName(projectId, decodePackRecord(key, value).packId)),
  )
  // Behind the packs: no merge can put any more of them.
  await sweepRecords(records, bounds('retiredContent'), signal)
  await sweepRecords(records, bounds('object'), signal)
  await sweepRecords(records, bounds('totals'), signal)
  await sweepRecords(records, bounds('pin'), signal)
  await sweepRecords(records, bounds('merge'), signal)
  await sweepRecords(records, bounds('collection'), signal)
  await sweepRecords(records, bounds('exportPoint'), signal)
  return pending === 0
}

/** Removes the records and returns their number; `before` is called with some of them before they are removed. */
async function sweepRecords(
  records: RecordStore,
  bounds: { gte: Uint8Array; lt: Uint8Array },
  signal: AbortSignal,
  before?: (entries: readonly Entry[]) => Promise<void>,
): Promise<number> {
  let removed = 0
  for await (const entries of records.range(bounds, { signal })) {
    signal.throwIfAborted()
    await before?.(entries)
    await removeRecords(records, entries)
    removed += entries.length
  }
  return removed
}

/** In commits as large as the storage takes, but not so large that they hold everything else up. */
export async function removeRecords(records: RecordStore, entries: readonly Entry[]): Promise<void> {
  const atOnce = Math.max(REMOVALS_AT_ONCE, Math.min(1_000, records.limits.commitEntriesMax))
  for (let i = 0; i < entries.length; i += atOnce)
    await records.commit({ remove: entries.slice(i, i + atOnce).map(({ key }) => key) })
}

/** A damaged record names no blob. Its blob is one of those that no record names, and is swept as such. */
function namesOf(entries: readonly Entry[], nameOf: (entry: Entry) => string): string[] {
  return entries.flatMap((entry) => {
    try {
      return [nameOf(entry)]
    } catch {
      return []
    }
  })
}
