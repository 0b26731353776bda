import { pauseBeforeRetry } from '../../async/backoff.ts'
import type { Environment } from '../../environment.ts'
import type { Entry, RecordStore } from '../../storage/backend.ts'
import { keyBounds, mergeKey, packBlobName } from '../records/keys.ts'
import { decodePackRecord, isRetired } from '../records/pack-record.ts'
import type { StoredProject } from '../records/project-view.ts'
import { readHead, viewProject } from '../records/projects.ts'
import { encodeHead } from '../records/records.ts'

const ATTEMPTS_MAX = 20
/** A pack inside its record has up to 64 KB, and a commit up to 1 MB. */
const PACKS_PER_COMMIT = 10

interface DropParts {
  readonly records: RecordStore
  readonly environment: Environment
}

/**
 * Removes the records of retired packs, so that their blobs may go: those among `blobNames`, or that lie inside their
 * records. Returns false if some of them stay for now, because packs are being merged.
 */
export async function dropRetired(
  parts: DropParts,
  projectId: string,
  isDue: (blobName: string) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const { records } = parts
  const project = await viewProject(records, projectId, signal)
  if (project === undefined) return true
  const due: Entry[] = []
  for await (const entries of records.range(keyBounds('pack', projectId, project.generation), { signal })) {
    for (const entry of entries) {
      const record = decodePackRecord(entry.key, entry.value)
      if (isRetired(record, project.layout) && isDue(packBlobName(projectId, record.packId))) due.push(entry)
    }
  }
  for (let first = 0; first < due.length; first += PACKS_PER_COMMIT) {
    signal.throwIfAborted()
    if (!(await dropSome(parts, project, due.slice(first, first + PACKS_PER_COMMIT)))) return false
  }
  return true
}

/** The layout rises, so that nobody goes on with what was read of these packs. */
async function dropSome(
  { records, environment }: DropParts,
  { projectId, generation }: StoredProject,
  packs: readonly Entry[],
): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    if (attempt > 0) await pauseBeforeRetry(attempt, environment)
    const { key, bytes, head } = await readHead(records, projectId)
    if (head === undefined || head.removed || head.generation !== generation) return true
    const result = await records.commit({
      put: [{ key, value: encodeHead(key, { ...head, layout: head.layout + 1 }) }],
      remove: packs.map((pack) => pack.key),
      expect: [
        { key: mergeKey(projectId, generation), value: undefined },
        { key, value: bytes },
        ...packs.map((pack) => ({ key: pack.key, value: pack.value })),
      ],
    })
    if (result.ok) return true
    if (result.conflicts.some(({ index }) => index !== 1)) return false
  }
  return false
}
