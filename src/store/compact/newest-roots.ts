import type { GraphRoot } from '../../object/roots.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { LOOKUP_KEYS, readObjects } from '../records/locator.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import type { ProjectView } from '../records/project-view.ts'

/** A root whose object is held. */
export interface HeldRoot {
  readonly root: GraphRoot
  readonly record: ObjectRecord
}

/** The roots whose objects are held, the newest first, each object once. */
export async function newestFirst(
  records: RecordStore,
  project: ProjectView,
  roots: readonly GraphRoot[],
  signal: AbortSignal,
): Promise<HeldRoot[]> {
  const byObject = new Map(roots.map((root) => [root.rootObjectId, root]))
  const distinct = [...byObject.values()]
  const held: HeldRoot[] = []
  for (let first = 0; first < distinct.length; first += LOOKUP_KEYS) {
    const some = distinct.slice(first, first + LOOKUP_KEYS)
    const ids = some.map(({ rootObjectId }) => Buffer.from(rootObjectId, 'utf8'))
    const found = await readObjects(records, project, ids, signal)
    for (const [i, record] of found.entries()) if (record !== undefined) held.push({ root: some[i], record })
  }
  return held.sort((a, b) => byAge(a.record, b.record))
}

/** The newest of each group, and every root without one, the newest first. */
export function newestOfGroups(roots: readonly HeldRoot[]): HeldRoot[] {
  const groups = new Set<string>()
  return roots.filter(({ root: { groupId } }) => {
    if (groupId === null) return true
    if (groups.has(groupId)) return false
    groups.add(groupId)
    return true
  })
}

/** In a merged pack the objects of newer roots come first. */
function byAge(a: ObjectRecord, b: ObjectRecord): number {
  return b.epoch - a.epoch || b.sequence - a.sequence || a.ordinal - b.ordinal
}
