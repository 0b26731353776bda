import { StowageError } from '../errors.ts'
import type { BlobStore, Entry, RecordStore } from '../storage/backend.ts'
import { garbageKey, headKey, keyBounds, keyParts, packBlobName, parseHex, planBlobName } from './keys.ts'
import { readHead } from './projects.ts'
import { decodePackRecord, decodePlanRecord, encodeHead } from './records.ts'
import { putTombstone } from './tombstone.ts'

const ATTEMPTS_MAX = 100
const REMOVALS_AT_ONCE = 25

export interface RemovalParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly nowMs: () => number
}

/** Makes a project unreadable at once. What it held is left for `sweepGarbage`. */
export async function removeProject({ records, blobs, nowMs }: RemovalParts, projectId: string): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const { key, bytes, head } = await readHead(records, projectId)
    if (head === undefined || head.removed) return
    const put = [
      { key: headKey(projectId), value: encodeHead(key, { ...head, removed: true }) },
      { key: garbageKey(projectId, head.generation), value: new Uint8Array([1]) },
    ]
    const result = await records.commit({ put, expect: [{ key, value: bytes }] })
    if (!result.ok) continue
    await putTombstone(blobs, { projectId, generation: head.generation, removedAtMs: nowMs() })
    return
  }
  throw new StowageError('overloaded', 'the project is being written to so much that it cannot be removed; try again shortly')
}

/** Frees the space of removed projects. May be cut off at any point and goes on where it was. */
export async function sweepGarbage(parts: RemovalParts, signal: AbortSignal): Promise<void> {
  for await (const entries of parts.records.range(keyBounds('garbage'), { signal })) {
    for (const { key } of entries) {
      const [projectId, generationHex] = keyParts(key)
      await sweepGeneration(parts, projectId, parseHex(generationHex), signal)
      await parts.records.commit({ remove: [key] })
    }
  }
}

async function sweepGeneration(parts: RemovalParts, projectId: string, generation: number, signal: AbortSignal): Promise<void> {
  const { records, blobs, nowMs } = parts
  await putTombstone(blobs, { projectId, generation, removedAtMs: nowMs() })
  const bounds = (kind: 'object' | 'pending' | 'plan' | 'pack'): ReturnType<typeof keyBounds> => keyBounds(kind, projectId, generation)
  await sweepRecords(records, bounds('object'), signal)
  await sweepRecords(records, bounds('pending'), signal)
  await sweepRecords(records, bounds('plan'), signal, ({ key, value }) =>
    blobs.remove([planBlobName(projectId, decodePlanRecord(key, value).planId)]),
  )
  await sweepRecords(records, bounds('pack'), signal, ({ key, value }) =>
    blobs.remove([packBlobName(projectId, decodePackRecord(key, value).packId)]),
  )
}

async function sweepRecords(
  records: RecordStore,
  bounds: { gte: Uint8Array; lt: Uint8Array },
  signal: AbortSignal,
  before: (entry: Entry) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const atOnce = Math.max(REMOVALS_AT_ONCE, Math.min(1_000, records.limits.commitEntries))
  for await (const entries of records.range(bounds, { signal })) {
    for (let i = 0; i < entries.length; i += atOnce) {
      signal.throwIfAborted()
      const some = entries.slice(i, i + atOnce)
      for (const entry of some) await before(entry)
      await records.commit({ remove: some.map(({ key }) => key) })
    }
  }
}
