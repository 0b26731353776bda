import type { Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { ObjectCursor, ObjectPage, ObjectPageOptions, ObjectPager } from '../object/graph-store.ts'
import { IdSet } from '../object/id-set.ts'
import type { RecordStore } from '../storage/backend.ts'
import { Yielder } from '../async/yielder.ts'
import { Bitmap } from './bytes/bitmap.ts'
import { GraphSelection } from './closure/graph-selection.ts'
import type { PackSelection } from './closure/closure.ts'
import type { PackTables } from './pack/pack-format.ts'
import type { SegmentReader } from './pack/segment-reader.ts'
import { keyBounds, keyParts, packKey, parseHex } from './records/keys.ts'
import { objectsHeldBy } from './records/held-objects.ts'
import { type Pack, packOf, type PackCatalog } from './records/pack-catalog.ts'
import type { ProjectView } from './records/project-view.ts'
import { viewProject } from './records/projects.ts'
import { decodePackRecord, isActive, isRetired, type PackRecord } from './records/pack-record.ts'

interface PagerParts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly environment: Environment
}

/** The contents of the page so far. */
interface Draft {
  readonly packs: PackSelection[]
  textBytes: number
  next: ObjectCursor
}

interface FillOptions {
  /** The number of the pack before which the run ends. */
  readonly end: number
  readonly textBytesMax: number
  readonly signal: AbortSignal
}

interface PackToTake {
  readonly pack: Pack
  readonly tables: PackTables
  readonly held: Bitmap
  readonly textBytesMax: number
  readonly yielder: Yielder
}

/**
 * Pages through everything that a project holds, pack by pack in the order of their numbers. Where a page ends depends
 * on the lines alone, not on how uploads divided them into packs: a project that was copied object by object in this
 * order has the same pages.
 */
export class PackObjectPager implements ObjectPager {
  readonly #parts: PagerParts

  constructor(parts: PagerParts) {
    this.#parts = parts
  }

  async page(
    projectId: string,
    { after, until, textBytesMax, signal }: ObjectPageOptions,
  ): Promise<ObjectPage | undefined> {
    const { records, catalog, reader } = this.#parts
    const project = await viewProject(records, projectId, signal)
    if (project === undefined) {
      if (after !== undefined) throw removedMeanwhile()
      return undefined
    }
    if (after !== undefined && after.generation !== project.generation) throw removedMeanwhile()
    const draft: Draft = {
      packs: [],
      textBytes: 0,
      next: after ?? { generation: project.generation, sequence: 0, ordinal: 0 },
    }
    const end = until?.sequence ?? project.sequence
    await this.#fill(project, draft, { end, textBytesMax, signal })
    const { packs, next, textBytes } = draft
    const selection = new GraphSelection(catalog, reader, project, { packs }, { missing: new IdSet(0), textBytes })
    return { selection, next, end: { generation: project.generation, sequence: project.sequence, ordinal: 0 } }
  }

  async #fill(project: ProjectView, draft: Draft, { end, textBytesMax, signal }: FillOptions): Promise<void> {
    const { records, catalog, environment } = this.#parts
    const yielder = new Yielder(environment)
    const { projectId, generation } = project
    const bounds = {
      ...keyBounds('pack', projectId, generation),
      gte: packKey(projectId, generation, draft.next.sequence),
      lt: packKey(projectId, generation, project.sequence),
    }
    for await (const entries of records.range(bounds, { signal })) {
      for (const { key, value } of entries) {
        signal.throwIfAborted()
        const sequence = parseHex(keyParts(key)[2])
        const pack = packOf(projectId, sequence, decodePackRecord(key, value))
        // The next page begins here, once it is known which objects the pack owns.
        if (pack.record.state === 'committed') return
        if (holdsFor(pack.record, project, end)) {
          const tables = await catalog.tables(pack)
          const held = await objectsHeldBy(records, placedAsIn(pack, project), pack, tables, { state: 'live', signal })
          if (!(await take(draft, { pack, tables, held, textBytesMax, yielder }))) return
        }
        draft.next = { generation, sequence: sequence + 1, ordinal: 0 }
      }
    }
    draft.next = { generation, sequence: project.sequence, ordinal: 0 }
  }
}

/**
 * Whether the run takes objects from this pack. If they moved to a pack that the run does not reach, it takes them from
 * where they were: the pack stays for a day.
 */
function holdsFor(record: PackRecord, { layout }: ProjectView, end: number): boolean {
  return isActive(record, layout) || (isRetired(record, layout) && record.movedTo >= end)
}

/** The view in which the pack holds its objects. */
function placedAsIn({ record }: Pack, project: ProjectView): ProjectView {
  return isRetired(record, project.layout) ? { ...project, layout: record.retiredAt - 1 } : project
}

/** Whether the rest of the pack fit into the page. A page ends with the line that fills it. */
async function take(draft: Draft, { pack, tables, held, textBytesMax, yielder }: PackToTake): Promise<boolean> {
  const { sequence, record } = pack
  const first = draft.next.sequence === sequence ? draft.next.ordinal : 0
  const wanted = Bitmap.empty(record.objects)
  let ordinal = first
  for (; ordinal < record.objects && draft.textBytes < textBytesMax; ordinal++) {
    if (!held.has(ordinal)) continue
    wanted.add(ordinal)
    draft.textBytes += tables.lineBytes[ordinal]
    const pause = yielder.due()
    if (pause !== undefined) await pause
  }
  if (wanted.count > 0) draft.packs.push({ sequence, packId: record.packId, wanted })
  if (ordinal === record.objects) return true
  draft.next = { ...draft.next, sequence, ordinal }
  return false
}

function removedMeanwhile(): StowageError {
  return new StowageError('conflict', 'the project was removed since the previous page; start again without "after"')
}
