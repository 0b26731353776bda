import type { Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { ObjectCursor, ObjectPage, ObjectPageOptions, ObjectPager } from '../object/graph-store.ts'
import { IdSet } from '../object/id-set.ts'
import type { Entry, RecordStore } from '../storage/backend.ts'
import { Yielder } from '../async/yielder.ts'
import { Bitmap } from './bytes/bitmap.ts'
import { GraphSelection } from './closure/graph-selection.ts'
import type { PackSelection } from './closure/closure.ts'
import { type PackTables, tableEntry, textBytesOf } from './pack/pack-format.ts'
import type { SegmentReader } from './pack/segment-reader.ts'
import { keyBounds, keyParts, packKey, parseHex, pendingKey } from './records/keys.ts'
import { objectsHeldBy } from './records/held-objects.ts'
import { ExportPoints, SETTLED_EPOCHS } from './records/export-points.ts'
import { LOOKUP_KEYS, readObjects } from './records/locator.ts'
import { markedPack } from './records/committed-pack.ts'
import type { ObjectRecord } from './records/object-record.ts'
import { type Pack, type PackCatalog, packIn } from './records/pack-catalog.ts'
import type { ProjectView } from './records/project-view.ts'
import { viewProject } from './records/projects.ts'
import { decodePackRecord, isActive, isRetired, type PackRecord } from './records/pack-record.ts'

interface PagerParts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly environment: Environment
  readonly recentEpoch: () => Promise<number>
}

/** Records of packs that are read at once: those of small packs contain the packs. */
const PACKS_AT_ONCE = 32

/** The place behind a whole pack. */
const ALL_ORDINALS = 0xffffffff

/** The contents of the page so far. */
interface Draft {
  readonly packs: PackSelection[]
  textBytes: number
  next: ObjectCursor
}

/** A run of pages. */
interface Run {
  readonly project: ProjectView
  readonly end: ObjectCursor
}

interface FillOptions {
  /** The end of the run. */
  readonly end: ObjectCursor
  readonly textBytesMax: number
  readonly signal: AbortSignal
  /** Whether packs behind the end are filled in, for packs before it that are gone. */
  readonly isBehindEnd?: boolean
}

interface PackToTake {
  readonly pack: Pack
  readonly tables: PackTables
  readonly held: Bitmap
  readonly textBytesMax: number
  readonly yielder: Yielder
}

/**
 * Pages through everything that a project holds, pack by pack in the order of their numbers. Condemned objects are
 * among them, since they can be restored. Where a page ends depends on the lines alone, not on how uploads divided them
 * into packs: a project that was copied object by object in this order has the same pages.
 *
 * All pages of a run take each object from where it lay when the run began, so none comes twice: the packs that a merge
 * replaces stay for a day. If one of them is gone, the merged pack is taken as a whole, so that nothing is missed. What
 * the run took from the others before comes once more then.
 */
export class PackObjectPager implements ObjectPager {
  readonly #parts: PagerParts
  readonly #points: ExportPoints

  constructor(parts: PagerParts) {
    this.#parts = parts
    this.#points = new ExportPoints(parts)
  }

  async page(
    projectId: string,
    { after, until, textBytesMax, signal }: ObjectPageOptions,
  ): Promise<ObjectPage | undefined> {
    const { catalog, reader } = this.#parts
    const run = await this.#run(projectId, until, signal)
    if (run === undefined) {
      if (after !== undefined || until !== undefined) throw otherHistory()
      return undefined
    }
    const { project, end } = run
    for (const place of [after, until])
      if (place !== undefined && !(await this.#points.has(project, place, signal))) throw otherHistory()
    const { sequence, ordinal, epoch } = after ?? { sequence: 0, ordinal: 0, epoch: 0 }
    const next = { ...end, sequence, ordinal, epoch }
    const draft: Draft = { packs: [], textBytes: 0, next }
    const view = (await this.#waitsForPacks(project, next, end, signal))
      ? project
      : await this.#fill(project, draft, { end, textBytesMax, signal })
    const { packs, textBytes } = draft
    const selection = new GraphSelection(catalog, reader, view, { packs }, { missing: new IdSet(0), textBytes })
    return { selection, next: draft.next, end }
  }

  /** The project with the end of a run that begins, or that goes on; `undefined` if the project does not exist. */
  async #run(projectId: string, until: ObjectCursor | undefined, signal: AbortSignal): Promise<Run | undefined> {
    if (until !== undefined) {
      const project = await viewProject(this.#parts.records, projectId, signal)
      return project && { project, end: until }
    }
    const begun = await this.#points.begin(projectId, signal)
    if (begun === undefined) return undefined
    const { sequence, layout, epoch, number, id } = begun.point
    const { generation } = begun.project
    const settled = Math.max(0, epoch - SETTLED_EPOCHS)
    const end = { generation, sequence, ordinal: 0, layout, epoch: settled, point: { number, id } }
    return { project: begun.project, end }
  }

  /**
   * Whether a pack of the run is not applied yet. Until then it is not known which objects it owns: those that it brings
   * again, and that an earlier pack holds as condemned ones, would come once with each. Throws `corrupt_data` for a
   * damaged pack, which is never applied.
   */
  async #waitsForPacks(
    project: ProjectView,
    { sequence }: ObjectCursor,
    end: ObjectCursor,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { projectId, generation } = project
    const bounds = {
      gte: pendingKey(projectId, generation, sequence),
      lt: pendingKey(projectId, generation, end.sequence),
    }
    for await (const [mark] of this.#parts.records.range(bounds, { signal })) {
      if (mark === undefined) continue
      await this.#checkUnapplied(project, mark)
      return true
    }
    return false
  }

  async #checkUnapplied(project: ProjectView, mark: Entry): Promise<void> {
    const { records, catalog } = this.#parts
    const pack = await markedPack(records, mark)
    if (pack === undefined) return
    try {
      await catalog.tables(await packIn(records, project, pack.sequence, pack.record))
    } catch (error) {
      throw await catalog.reasonOf(error, project)
    }
  }

  /** Resolves to the view in which the packs of the page are there. */
  async #fill(project: ProjectView, draft: Draft, options: FillOptions): Promise<ProjectView> {
    const { end, textBytesMax, signal } = options
    if (draft.next.sequence < end.sequence && !(await this.#fillFrom(project, draft, options))) return project
    if (draft.textBytes >= textBytesMax) {
      // Not `end` itself: something may still follow.
      draft.next = { ...draft.next, sequence: end.sequence - 1, ordinal: ALL_ORDINALS }
      return project
    }
    // Packs that were expected above may have been merged and dropped since the project was looked at.
    const now = await viewProject(this.#parts.records, project.projectId, signal)
    if (now?.generation !== project.generation) throw otherHistory()
    if (await this.#fillFrom(now, draft, { ...options, isBehindEnd: true })) draft.next = end
    return now
  }

  /** Takes from the packs before the end of the run, or behind it; returns whether the page has room for more. */
  async #fillFrom(project: ProjectView, draft: Draft, options: FillOptions): Promise<boolean> {
    const { end, textBytesMax, signal, isBehindEnd = false } = options
    const { records, catalog, environment } = this.#parts
    const yielder = new Yielder(environment)
    const { projectId, generation } = project
    const first = isBehindEnd ? Math.max(draft.next.sequence, end.sequence) : draft.next.sequence
    const bounds = {
      ...keyBounds('pack', projectId, generation),
      gte: packKey(projectId, generation, first),
      lt: packKey(projectId, generation, isBehindEnd ? project.sequence : end.sequence),
    }
    for await (const entries of records.range(bounds, { signal })) {
      for (const { key, value } of entries) {
        signal.throwIfAborted()
        const sequence = parseHex(keyParts(key)[2])
        const record = decodePackRecord(key, value)
        if (await this.#holdsFor(record, project, options)) {
          const pack = await packIn(records, project, sequence, record)
          const tables = await catalog.tables(pack)
          const held = await this.#heldBy(project, pack, tables, { since: draft.next.epoch, signal })
          if (!(await take(draft, { pack, tables, held, textBytesMax, yielder }))) return false
        }
        draft.next = { ...draft.next, sequence: sequence + 1, ordinal: 0 }
      }
    }
    return true
  }

  /** Whether the run takes objects from this pack. */
  async #holdsFor(
    record: PackRecord,
    project: ProjectView,
    { end: { layout }, isBehindEnd = false }: FillOptions,
  ): Promise<boolean> {
    if (!isBehindEnd && isActive(record, layout)) return true
    // Merged since the run began: its objects come from the packs that it replaces, as long as all are there.
    return record.state === 'applied' && record.activeAt > layout && !(await this.#areThere(project, record.sources))
  }

  async #areThere({ projectId, generation }: ProjectView, sequences: readonly number[]): Promise<boolean> {
    for (let first = 0; first < sequences.length; first += PACKS_AT_ONCE) {
      const keys = sequences
        .slice(first, first + PACKS_AT_ONCE)
        .map((sequence) => packKey(projectId, generation, sequence))
      if ((await this.#parts.records.getMany(keys)).includes(undefined)) return false
    }
    return true
  }

  /** The objects of the pack, without those that a merge brought there and that an earlier run has. */
  async #heldBy(
    project: ProjectView,
    pack: Pack,
    tables: PackTables,
    { since, signal }: { readonly since: number; readonly signal: AbortSignal },
  ): Promise<Bitmap> {
    const { objects, sources, condemned, movedTo } = pack.record
    const asked = { project, tables, signal }
    const held = await objectsHeldBy(this.#parts.records, placedAsIn(pack, project), pack, tables, { signal })
    // If the merged pack was merged again, the records of its objects do not name this pack any more.
    if (isRetired(pack.record, project.layout) && condemned !== undefined && condemned.count > 0)
      await this.#add(held, condemned.without(held), asked, ({ textBytes, textCrc32, previous }, ordinal) => {
        const isMovedOn = previous !== undefined && previous.sequence >= movedTo
        return isMovedOn && textBytes === textBytesOf(tables, ordinal) && textCrc32 === tables.textCrc32[ordinal]
      })
    if (since === 0 || sources.length === 0) return held
    const newer = Bitmap.empty(objects)
    await this.#add(newer, held, asked, ({ epoch }) => epoch >= since)
    return newer
  }

  /** Adds those of the objects of a pack whose records fit. */
  async #add(
    to: Bitmap,
    from: Bitmap,
    { project, tables, signal }: AskedRecords,
    fits: (record: ObjectRecord, ordinal: number) => boolean,
  ): Promise<void> {
    for (let first = 0; first < tables.objects; first += LOOKUP_KEYS) {
      const some = Array.from({ length: Math.min(LOOKUP_KEYS, tables.objects - first) }, (_, i) => first + i)
      const ordinals = some.filter((ordinal) => from.has(ordinal))
      const ids = ordinals.map((ordinal) => tableEntry(tables.ids, ordinal))
      const found = await readObjects(this.#parts.records, project, ids, signal)
      for (const [i, ordinal] of ordinals.entries()) {
        const record = found[i]
        if (record !== undefined && fits(record, ordinal)) to.add(ordinal)
      }
    }
  }
}

interface AskedRecords {
  readonly project: ProjectView
  readonly tables: PackTables
  readonly signal: AbortSignal
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
  if (ordinal >= record.objects) return true
  draft.next = { ...draft.next, sequence, ordinal }
  return false
}

function otherHistory(): StowageError {
  return new StowageError(
    'conflict',
    'the cursor is not of this project as it is now: the project was removed, its server was restored or got older data, or the cursor comes from elsewhere; start again without "after"',
  )
}
