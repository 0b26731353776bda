import type { Environment } from '../../environment.ts'
import type { Entry, RecordStore } from '../../storage/backend.ts'
import { keyBounds, keyParts, mergeKey, packBlobName, parseHex, retiredContentKey } from '../records/keys.ts'
import { afterLostTry, areAsExpected } from '../records/lost-try.ts'
import { decodePackRecord, isRetired } from '../records/pack-record.ts'
import type { StoredProject } from '../records/project-view.ts'
import { asHead, readHead, viewProject } from '../records/projects.ts'
import { encodeHead } from '../records/records.ts'

const ATTEMPTS_MAX = 20
/** Each may have its content beside its record, and the smallest storage takes 25 keys in a commit. */
const PACKS_PER_COMMIT = 10

interface DropParts {
  readonly records: RecordStore
  readonly environment: Environment
}

/** The record of a retired pack, with the key of its content if that lies beside it. */
interface RetiredPack extends Entry {
  readonly contentKeys: readonly Uint8Array[]
}

/**
 * Removes the records of retired packs whose blobs `isDue` to go, and the contents beside these records. Returns false
 * if some of them stay for now, because packs are being merged.
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
  const due: RetiredPack[] = []
  for await (const entries of records.range(keyBounds('pack', projectId, project.generation), { signal })) {
    for (const entry of entries) {
      const record = decodePackRecord(entry.key, entry.value)
      if (!isRetired(record, project.layout) || !isDue(packBlobName(projectId, record.packId))) continue
      const contentKey = retiredContentKey(projectId, project.generation, parseHex(keyParts(entry.key)[2]))
      due.push({ ...entry, contentKeys: record.content === 'beside' ? [contentKey] : [] })
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
  parts: DropParts,
  { projectId, generation }: StoredProject,
  packs: readonly RetiredPack[],
): Promise<boolean> {
  let read = await readHead(parts.records, projectId)
  for (let tries = 1; tries <= ATTEMPTS_MAX; tries++) {
    const { key, bytes, head } = read
    if (head === undefined || head.removed || head.generation !== generation) return true
    const asRead = packs.map((pack) => ({ key: pack.key, value: pack.value }))
    const kept = [{ key: mergeKey(projectId, generation), value: undefined }, ...asRead]
    const expect = [{ key, value: bytes }, ...kept]
    const result = await parts.records.commit({
      put: [{ key, value: encodeHead(key, { ...head, layout: head.layout + 1 }) }],
      remove: packs.flatMap((pack) => [pack.key, ...pack.contentKeys]),
      expect,
    })
    if (result.ok) return true
    const [headBytes, ...others] = await afterLostTry(parts, { expect, conflicts: result.conflicts, tries })
    if (!areAsExpected(others, kept)) return false
    read = asHead(key, headBytes)
  }
  return false
}
