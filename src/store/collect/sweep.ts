import { Yielder } from '../../async/yielder.ts'
import type { MemoryPart } from '../../memory/memory-lease.ts'
import type { CollectionCause, CollectionProgress } from '../../object/collection.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { tableEntry } from '../pack/pack-format.ts'
import { type ChangeTerms, changeObjects, type Decision } from '../records/change-objects.ts'
import { mergeKey } from '../records/keys.ts'
import { areAsExpected } from '../records/lost-try.ts'
import { LoweredTotals } from '../records/lowered-totals.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import { packOf } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { decodePackRecord, encodePackRecord, type PackRecord } from '../records/pack-record.ts'
import { CauseTally, Tally } from './amounts.ts'
import { type Fence, LayoutChangedError } from './fence.ts'
import { type Aging, isHere, isYoung, type Marked } from './mark.ts'
import type { CollectParts } from './parts.ts'
import { inLookups, membersOf, packsOf } from './project-packs.ts'
import { type SortedPack, sortPack } from './sorted-pack.ts'

const ATTEMPTS_MAX = 50
/** Those of a sorted pack, and of its record before and after. */
const BITMAPS_OF_PACK = 14
/** Besides the packs, a commit names the head, the epoch and the mark of a merge. */
const OTHER_ENTRIES = 3
/** Those of one commit are held until it is made, with their tables. */
const CHANGED_PACKS_MAX = 64
const CHANGED_BYTES_MAX = 1_048_576
/** Objects that are looked at between two looks at the clock. */
const STRETCH = 4_096

/** What a collection counts: its deeds through all attempts, and what it finds in the last one. */
export class Tallies {
  readonly condemned: CauseTally = new CauseTally()
  readonly freed: CauseTally = new CauseTally()
  readonly revived: Tally = new Tally()
  held: Tally = new Tally()
  young: Tally = new Tally()
  restorable: Tally = new Tally()

  beginAgain(): void {
    this.held = new Tally()
    this.young = new Tally()
    this.restorable = new Tally()
  }
}

export interface SweepTerms extends Aging {
  readonly signal: AbortSignal
  readonly undoEpochs: number
  readonly dryRun: boolean
  /** Neither revives nor frees anything. */
  readonly condemnsOnly?: boolean
  readonly marked: Marked
  readonly onProgress: (progress: Pick<CollectionProgress, 'phase' | 'objects'>) => void
}

interface SweepState {
  readonly fence: Fence
  readonly tallies: Tallies
  readonly memory: MemoryPart
}

interface ChangedPack {
  readonly sorted: SortedPack
  readonly value: Uint8Array
  readonly after: PackRecord
}

/** Goes through all packs of a project once: revives, frees and condemns what the marks say, or only counts it. */
export class Sweep {
  readonly #parts: CollectParts
  readonly #project: ProjectView
  readonly #terms: SweepTerms
  readonly #fence: Fence
  readonly #tallies: Tallies
  readonly #yielder: Yielder
  readonly #memory: MemoryPart
  /** Packs whose records change in the next commit. */
  #changed: ChangedPack[] = []
  #changedBytes = 0
  /** The memory of these, and of the pack at hand. */
  #sortedBytes = 0
  #objects = 0

  constructor(parts: CollectParts, project: ProjectView, terms: SweepTerms, held: SweepState) {
    const { fence, tallies, memory } = held
    this.#parts = parts
    this.#memory = memory
    this.#project = project
    this.#terms = terms
    this.#fence = fence
    this.#tallies = tallies
    this.#yielder = new Yielder(parts.environment)
  }

  async run(): Promise<void> {
    const { records, catalog } = this.#parts
    const { signal, marked, dryRun } = this.#terms
    for await (const pack of packsOf(records, this.#project, { signal })) {
      if (pack.record.state === 'committed') continue
      const tables = await catalog.tables(packOf(this.#project.projectId, pack.sequence, pack.record))
      this.#sortedBytes +=
        BITMAPS_OF_PACK * (pack.record.objects >> 3) + pack.value.length + tables.lineBytes.buffer.byteLength
      await this.#memory.set(this.#sortedBytes)
      const sorting = { ...this.#terms, marked: marked.kept.get(pack.sequence) }
      const sorted = await sortPack(this.#parts, this.#project, pack, tables, sorting)
      await this.#count(sorted)
      if (dryRun) await this.#countPlanned(sorted)
      else await this.#change(sorted)
      if (this.#changed.length === 0) this.#sortedBytes = 0
      this.#objects += pack.record.objects
      this.#terms.onProgress({ phase: 'condemning', objects: this.#objects })
    }
    await this.#commitChanged()
  }

  async #count({ pack, lines, toFree, toRevive, restorable, settled, revived, toCondemn }: SortedPack): Promise<void> {
    const { held, young, restorable: waiting } = this.#tallies
    const kept = this.#terms.marked.kept.get(pack.sequence)
    const fromRoots = this.#terms.marked.fromRoots.get(pack.sequence)
    await this.#each(restorable, (ordinal) => waiting.add(lines, ordinal))
    const inDoubt = toCondemn.without(ownedOf(pack.record))
    for (const bitmap of [toFree, toRevive, restorable, settled, revived, inDoubt])
      await this.#each(bitmap, (ordinal) => held.add(lines, ordinal))
    await this.#each(pack.record.owned, (ordinal) => held.add(lines, ordinal))
    const below = fromRoots === undefined ? kept : kept?.without(fromRoots)
    for (const bitmap of [pack.record.owned, settled, revived]) {
      await this.#each(bitmap, (ordinal) => {
        if (below?.has(ordinal) === true) young.add(lines, ordinal)
      })
    }
  }

  async #countPlanned(sorted: SortedPack): Promise<void> {
    const { lines, toCondemn, toFree, toRevive } = sorted
    const { condemned, freed, revived } = this.#tallies
    await this.#each(toCondemn, (ordinal) => condemned.add(causeOf(sorted, ordinal), lines, ordinal))
    await this.#each(toFree, (ordinal) => freed.add(causeOf(sorted, ordinal), lines, ordinal))
    await this.#each(toRevive, (ordinal) => revived.add(lines, ordinal))
    const { pack } = sorted
    const after = settledRecord(pack.record, sorted, undefined, sorted.toFree)
    this.#countReplaced(sorted, decodePackRecord(pack.key, encodePackRecord(pack.key, after)))
  }

  async #change(sorted: SortedPack): Promise<void> {
    const { pack, toRevive } = sorted
    const fence = this.#fence
    const revived = await this.#changeObjects(sorted, toRevive, fence, (record) =>
      record.state === 'condemned' ? { ...record, state: 'live', epoch: fence.epoch } : 'keep',
    )
    await this.#each(revived, (ordinal) => this.#tallies.revived.add(sorted.lines, ordinal))
    const freed = await this.#free(sorted)
    const fromRoots = this.#terms.marked.fromRoots.get(pack.sequence)
    const after = settledRecord(pack.record, sorted, fromRoots, freed)
    const value = encodePackRecord(pack.key, after)
    if (Buffer.compare(value, pack.value) === 0) {
      await this.#condemn(sorted)
      return
    }
    const bytes = 2 * pack.key.length + pack.value.length + value.length
    const { commitEntriesMax, commitBytesMax } = this.#parts.records.limits
    const bytesMax = Math.min(CHANGED_BYTES_MAX, commitBytesMax / 2)
    if (this.#changed.length > 0 && this.#changedBytes + bytes > bytesMax) await this.#commitChanged()
    this.#changed.push({ sorted, value, after: decodePackRecord(pack.key, value) })
    this.#changedBytes += bytes
    if (this.#changed.length >= Math.min(CHANGED_PACKS_MAX, commitEntriesMax - OTHER_ENTRIES))
      await this.#commitChanged()
  }

  /** Removes the records of what was condemned long ago; resolves to the objects that are gone. */
  async #free(sorted: SortedPack): Promise<Bitmap> {
    const { records } = this.#parts
    const { toFree, lines } = sorted
    if (toFree.count === 0) return toFree
    const { epoch, undoEpochs } = this.#terms
    const totals = await LoweredTotals.of(records, this.#project)
    const freed = await this.#changeObjects(sorted, toFree, both(this.#fence, totals), (record) =>
      record.state === 'condemned' && epoch - record.epoch > undoEpochs ? undefined : 'keep',
    )
    await this.#each(freed, (ordinal) => this.#tallies.freed.add(causeOf(sorted, ordinal), lines, ordinal))
    this.#terms.onProgress({ phase: 'freeing', objects: this.#objects + freed.count })
    return freed
  }

  /** The packs first, then the objects: whoever finds an object in doubt asks its record. */
  async #commitChanged(): Promise<void> {
    const changed = this.#changed
    this.#changed = []
    this.#changedBytes = 0
    this.#sortedBytes = 0
    if (changed.length === 0) return
    const { projectId, generation } = this.#project
    const merge = { key: mergeKey(projectId, generation), value: undefined }
    const put = changed.map(({ sorted: { pack }, value }) => ({ key: pack.key, value }))
    const expect = [merge, ...changed.map(({ sorted: { pack } }) => ({ key: pack.key, value: pack.value }))]
    for (let tries = 1; ; tries++) {
      const found = await this.#fence.raiseLayout({ put, expect }, tries)
      if (found === undefined) break
      if (tries === ATTEMPTS_MAX || !areAsExpected(found, expect)) throw new LayoutChangedError()
      this.#terms.signal.throwIfAborted()
    }
    for (const { sorted, after } of changed) {
      this.#countReplaced(sorted, after)
      await this.#condemn(sorted)
    }
  }

  async #condemn(sorted: SortedPack): Promise<void> {
    const { toCondemn, lines } = sorted
    const fence = this.#fence
    const condemned = await this.#changeObjects(sorted, toCondemn, fence, (record) =>
      record.state === 'live' && !isYoung(record.epoch, this.#terms)
        ? { ...record, state: 'condemned', epoch: fence.epoch }
        : 'keep',
    )
    await this.#each(condemned, (ordinal) => this.#tallies.condemned.add(causeOf(sorted, ordinal), lines, ordinal))
  }

  /** Lines in doubt that another pack holds, and that this collection settles. */
  #countReplaced({ pack, lines, replaced }: SortedPack, after: PackRecord): void {
    for (const ordinal of membersOf(replaced)) {
      if (pack.record.condemned?.has(ordinal) === true && after.condemned?.has(ordinal) !== true)
        this.#tallies.freed.add('replaced', lines, ordinal)
    }
  }

  async #changeObjects(
    { pack, tables }: SortedPack,
    ordinals: Bitmap,
    terms: ChangeTerms,
    decide: (record: ObjectRecord) => Decision,
  ): Promise<Bitmap> {
    const made = Bitmap.empty(tables.objects)
    for (const members of inLookups(membersOf(ordinals))) {
      const { changed } = await changeObjects(
        this.#parts,
        this.#project,
        members.map((ordinal) => tableEntry(tables.ids, ordinal)),
        (record, at) => (isHere(record, pack.sequence, members[at]) ? decide(record) : 'keep'),
        this.#terms.signal,
        terms,
      )
      for (const at of changed) made.add(members[at])
    }
    return made
  }

  async #each(bitmap: Bitmap | undefined, act: (ordinal: number) => void): Promise<void> {
    let steps = 0
    for (const ordinal of membersOf(bitmap)) {
      act(ordinal)
      if (++steps % STRETCH === 0) await this.#yielder.due()
    }
    this.#terms.signal.throwIfAborted()
  }
}

/** The record of a pack once the collection is through with it. */
function settledRecord(
  record: PackRecord,
  { tables, toCondemn, settled, gone, replaced }: SortedPack,
  fromRoots: Bitmap | undefined,
  freed: Bitmap,
): PackRecord {
  const empty = Bitmap.empty(tables.objects)
  const owned = (record.owned ?? empty).without(toCondemn)
  for (const ordinal of membersOf(settled)) owned.add(ordinal)
  const condemned = [settled, gone, replaced, freed].reduce(
    (left, done) => left.without(done),
    record.condemned ?? empty,
  )
  for (const ordinal of membersOf(toCondemn)) condemned.add(ordinal)
  const reached = (record.reached ?? empty).without(empty)
  for (const ordinal of membersOf(fromRoots)) reached.add(ordinal)
  return { ...record, owned, condemned, reached }
}

function both(fence: Fence, totals: LoweredTotals): ChangeTerms {
  return {
    get expect() {
      return [...fence.expect, ...totals.expect]
    },
    renew: (values) => {
      const fenced = fence.expect.length
      fence.renew(values.slice(0, fenced))
      totals.renew(values.slice(fenced))
    },
    put: (changes) => totals.put(changes),
    made: (entries) => totals.made(entries),
  }
}

function causeOf({ pack }: SortedPack, ordinal: number): CollectionCause {
  return pack.record.reached?.has(ordinal) === true ? 'oldVersion' : 'neverReferenced'
}

function ownedOf({ owned, objects }: PackRecord): Bitmap {
  return owned ?? Bitmap.empty(objects)
}
