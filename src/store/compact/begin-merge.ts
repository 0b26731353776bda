import type { PackSelection } from '../closure/closure.ts'
import { objectsHeldBy } from '../records/held-objects.ts'
import { condemnedBlobKey, mergeKey, packBlobName, packKey } from '../records/keys.ts'
import { afterLostTry } from '../records/lost-try.ts'
import type { Pack } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { encodePackRecord, newPackRecord, type PackRecord } from '../records/pack-record.ts'
import { asHead, readHead } from '../records/projects.ts'
import { encodeHead, encodeMerge } from '../records/records.ts'
import type { FinishParts } from './finish-merge.ts'
import { inMergedOrder, type MergeSource } from './order.ts'
import { type MergeWriting, writeMerged } from './write.ts'

const ATTEMPTS_MAX = 20
/** Owned, condemned and reached objects, those that move, and those in a closure and in none. */
const BITMAPS_OF_SOURCE = 6

export interface BeginParts extends MergeWriting, FinishParts {
  readonly newId: () => string
  readonly nowMs: () => number
}

/**
 * Writes the merged pack of these packs, and commits that a merge is under way. Returns whether it is: not if the packs
 * have changed since the view, or if another server merges packs of the project.
 */
export async function beginMerge(
  parts: BeginParts,
  project: ProjectView,
  chosen: { readonly packs: readonly Pack[]; readonly closures: readonly (readonly PackSelection[])[] },
  signal: AbortSignal,
): Promise<boolean> {
  const { projectId, generation } = project
  const packId = parts.newId()
  await parts.memory.hold(chosen.packs.reduce((sum, { record }) => sum + heldBytesOf(record), 0))
  const sources: MergeSource[] = []
  for (const pack of chosen.packs) {
    const moving = await parts.catalog.withTables(pack, (tables) =>
      objectsHeldBy(parts.records, project, pack, tables, { signal }),
    )
    sources.push({ pack, moving })
  }
  const written = await writeMerged(
    parts,
    { projectId, generation, packId, timeMs: parts.nowMs() },
    inMergedOrder(sources, chosen.closures),
    signal,
  )
  const record: PackRecord = {
    ...newPackRecord({
      packId,
      objects: written.tables.objects,
      packBytes: written.packBytes,
      tablesStart: written.tablesStart,
      content: written.inline ?? 'blob',
      epoch: await parts.epoch(),
    }),
    state: 'merging',
    sources: chosen.packs.map(({ sequence }) => sequence),
    activeAt: project.layout + 1,
  }
  const isBegun = await parts.turns.run(projectId, () => commitMerge(parts, project, record))
  // Refused for certain: no record names the blob.
  if (!isBegun && record.content === 'blob') await parts.blobs.remove([packBlobName(projectId, packId)])
  return isBegun
}

/** The contents of a small pack, and the bitmaps of its objects: as they were read, and without those that are placed. */
export function heldBytesOf({ content, packBytes, objects }: PackRecord): number {
  return (content === 'blob' ? 0 : packBytes) + BITMAPS_OF_SOURCE * ((objects + 7) >> 3)
}

/** Uploads get numbers at the same time, so it is tried again unless the layout rose or another merge is under way. */
async function commitMerge(parts: BeginParts, project: ProjectView, record: PackRecord): Promise<boolean> {
  const { projectId, generation, layout } = project
  const { records } = parts
  const mark = mergeKey(projectId, generation)
  const swept = condemnedBlobKey(projectId, packBlobName(projectId, record.packId))
  let read = await readHead(records, projectId)
  for (let tries = 1; tries <= ATTEMPTS_MAX; tries++) {
    const { key, bytes, head } = read
    if (head === undefined || head.removed || head.generation !== generation || head.layout !== layout) return false
    const { sequence } = head
    const packRecordKey = packKey(projectId, generation, sequence)
    const expect = [
      { key, value: bytes },
      { key: packRecordKey, value: undefined },
      { key: mark, value: undefined },
      { key: swept, value: undefined },
    ]
    const result = await records.commit({
      put: [
        { key, value: encodeHead(key, { ...head, sequence: sequence + 1 }) },
        { key: packRecordKey, value: encodePackRecord(packRecordKey, record) },
        { key: mark, value: encodeMerge(mark, { sequence, layout: layout + 1 }) },
      ],
      expect,
    })
    if (result.ok) return true
    const [headBytes, , ...marks] = await afterLostTry(parts, { expect, conflicts: result.conflicts, tries })
    if (marks.some((value) => value !== undefined)) return false
    read = asHead(key, headBytes)
  }
  return false
}
