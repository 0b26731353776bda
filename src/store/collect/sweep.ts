import { pauseBeforeRetry } from '../../async/backoff.ts'
import { Yielder } from '../../async/yielder.ts'
import type { MemoryPart } from '../../memory/memory-lease.ts'
import type { CollectionCause, CollectionProgress } from '../../object/collection.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { ChangeTerms, Decision } from '../records/change-objects.ts'
import { mergeKey } from '../records/keys.ts'
import { LoweredTotals } from '../records/lowered-totals.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import { packIn } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { decodePackRecord, encodePackRecord, type PackRecord } from '../records/pack-record.ts'
import { CauseTally, Tally } from './amounts.ts'
import { changeInPacks, type ObjectsInPack } from './change-in-packs.ts'
import { type Fence, LayoutChangedError } from './fence.ts'
import { type Aging, isYoung, type Marked } from './mark.ts'
import type { CollectParts } from './parts.ts'
import { membersOf, packsOf } from './project-packs.ts'
import { settledRecord } from './settled-record.ts'
import { type SortedPack, sortPack } from './sorted-pack.ts'

const ATTEMPTS_MAX = 50
/** Those of a sorted pack, and of its record before and after. */
const BITMAPS_OF_PACK = 14
/** Besides the packs, a commit names the head, the epoch, the record of the collection and the mark of a merge. */
const OTHER_ENTRIES = 4
/** Packs that share the commits which change their objects. They are held until these are made, with their tables. */
const PACKS_AT_ONCE_MAX = 64
const SORTED_BYTES_MAX = 1_048_576
const CHANGED_BYTES_MAX = 1_048_576
/** Objects that are looked at between two looks at the clock. */
const STRETCH = 4_096

/** What a collection counts: its deeds through all attempts, and what it finds in the last one. */
export class Tallies {
  condemned: CauseTally = new CauseTally()
  freed: CauseTally = new CauseTally()
  replacedCopies: Tally = new Tally()
  revived: Tally = new Tally()
  held: Tally = new Tally()
  young: Tally = new Tally()
  restorable: Tally = new Tally()

  /** Before each attempt. The deeds of a dry run are not done, so its next attempt finds them again. */
  beginAgain({ dryRun }: { readonly dryRun: boolean }): void {
    if (dryRun) {
      this.condemned = new CauseTally()
      this.freed = new CauseTally()
      this.replacedCopies = new Tally()
      this.revived = new Tally()
    }
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
  /** Packs that are settled next. */
  #sorted: SortedPack[] = []
  /** The memory of these. */
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
      const tables = await catalog.tables(await packIn(records, this.#project, pack.sequence, pack.record))
      const bytes =
        BITMAPS_OF_PACK * (pack.record.objects >> 3) + pack.value.length + tables.lineBytes.buffer.byteLength
      if (this.#sorted.length === PACKS_AT_ONCE_MAX || this.#sortedBytes + bytes > SORTED_BYTES_MAX)
        await this.#settle()
      this.#sortedBytes += bytes
      await this.#memory.set(this.#sortedBytes)
      const sorting = { ...this.#terms, marked: marked.kept.get(pack.sequence) }
      const sorted = await sortPack(this.#parts, this.#project, pack, tables, sorting)
      await this.#count(sorted)
      if (dryRun) await this.#countPlanned(sorted)
      this.#sorted.push(sorted)
    }
    await this.#settle()
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

  /** Does with the sorted packs what was decided; in a dry run nothing. */
  async #settle(): Promise<void> {
    const packs = this.#sorted
    this.#sorted = []
    this.#sortedBytes = 0
    if (!this.#terms.dryRun) await this.#change(packs)
    this.#objects += packs.reduce((sum, { pack }) => sum + pack.record.objects, 0)
    if (packs.length > 0) this.#terms.onProgress({ phase: 'condemning', objects: this.#objects })
  }

  /** The records of packs change before those of the objects that are condemned: what is in doubt is looked up. */
  async #change(packs: readonly SortedPack[]): Promise<void> {
    const fence = this.#fence
    const { fromRoots } = this.#terms.marked
    const toRevive = packs.map((sorted) => ({ sorted, ordinals: sorted.toRevive }))
    const revived = await this.#changeObjects(toRevive, fence, (record) =>
      record.state === 'condemned' ? { ...record, state: 'live', epoch: fence.epoch } : 'keep',
    )
    for (const { sorted, ordinals } of revived)
      await this.#each(ordinals, (ordinal) => this.#tallies.revived.add(sorted.lines, ordinal))
    let changed: ChangedPack[] = []
    let changedBytes = 0
    const { commitEntriesMax, commitBytesMax } = this.#parts.records.limits
    const bytesMax = Math.min(CHANGED_BYTES_MAX, commitBytesMax / 2)
    for (const { sorted, ordinals: freed } of await this.#free(packs)) {
      const { pack } = sorted
      const value = encodePackRecord(pack.key, settledRecord(pack.record, sorted, fromRoots.get(pack.sequence), freed))
      if (Buffer.compare(value, pack.value) === 0) continue
      const bytes = 2 * pack.key.length + pack.value.length + value.length
      const isFull = changed.length === commitEntriesMax - OTHER_ENTRIES || changedBytes + bytes > bytesMax
      if (changed.length > 0 && isFull) {
        await this.#commitChanged(changed)
        changed = []
        changedBytes = 0
      }
      changed.push({ sorted, value, after: decodePackRecord(pack.key, value) })
      changedBytes += bytes
    }
    if (changed.length > 0) await this.#commitChanged(changed)
    await this.#condemn(packs)
  }

  /** Removes the records of what was condemned long ago; resolves to the objects that are gone. */
  async #free(packs: readonly SortedPack[]): Promise<readonly ObjectsInPack[]> {
    const { epoch, undoEpochs } = this.#terms
    const totals = new LoweredTotals(this.#parts, this.#project)
    const toFree = packs.map((sorted) => ({ sorted, ordinals: sorted.toFree }))
    const freed = await this.#changeObjects(toFree, both(this.#fence, totals), (record) =>
      record.state === 'condemned' && epoch - record.epoch > undoEpochs ? undefined : 'keep',
    )
    let objects = this.#objects
    for (const { sorted, ordinals } of freed) {
      if (ordinals.count === 0) continue
      await this.#each(ordinals, (ordinal) => this.#tallies.freed.add(causeOf(sorted, ordinal), sorted.lines, ordinal))
      objects += ordinals.count
      this.#terms.onProgress({ phase: 'freeing', objects })
    }
    return freed
  }

  async #commitChanged(changed: readonly ChangedPack[]): Promise<void> {
    const { environment } = this.#parts
    const { projectId, generation } = this.#project
    const merge = { key: mergeKey(projectId, generation), value: undefined }
    const put = changed.map(({ sorted: { pack }, value }) => ({ key: pack.key, value }))
    const expect = [merge, ...changed.map(({ sorted: { pack } }) => ({ key: pack.key, value: pack.value }))]
    for (let attempt = 0; !(await this.#fence.raiseLayout({ put, expect })); attempt++) {
      if (attempt === ATTEMPTS_MAX) throw new LayoutChangedError()
      this.#terms.signal.throwIfAborted()
      await pauseBeforeRetry(attempt, environment)
    }
    for (const { sorted, after } of changed) this.#countReplaced(sorted, after)
  }

  async #condemn(packs: readonly SortedPack[]): Promise<void> {
    const fence = this.#fence
    const toCondemn = packs.map((sorted) => ({ sorted, ordinals: sorted.toCondemn }))
    const condemned = await this.#changeObjects(toCondemn, fence, (record) =>
      record.state === 'live' && !isYoung(record.epoch, this.#terms)
        ? { ...record, state: 'condemned', epoch: fence.epoch }
        : 'keep',
    )
    for (const { sorted, ordinals } of condemned)
      await this.#each(ordinals, (ordinal) =>
        this.#tallies.condemned.add(causeOf(sorted, ordinal), sorted.lines, ordinal),
      )
  }

  #changeObjects(
    objects: readonly ObjectsInPack[],
    terms: ChangeTerms,
    decide: (record: ObjectRecord) => Decision,
  ): Promise<readonly ObjectsInPack[]> {
    return changeInPacks(this.#parts, this.#project, objects, { terms, signal: this.#terms.signal }, decide)
  }

  /** Copies in doubt of objects that another pack holds, as far as this collection settles them. */
  #countReplaced({ pack, lines, replaced }: SortedPack, after: PackRecord): void {
    for (const ordinal of membersOf(replaced)) {
      if (pack.record.condemned?.has(ordinal) === true && after.condemned?.has(ordinal) !== true)
        this.#tallies.replacedCopies.add(lines, ordinal)
    }
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

function both(fence: Fence, totals: LoweredTotals): ChangeTerms {
  return {
    get expect() {
      return [...fence.expect, ...totals.expect]
    },
    inTurn: (work) => fence.inTurn(work),
    renew: async (found) => {
      const fenced = fence.expect.length
      const [isSameEpoch] = await Promise.all([
        fence.renew(found?.slice(0, fenced)),
        totals.renew(found?.slice(fenced)),
      ])
      return isSameEpoch
    },
    put: (changes) => totals.put(changes),
  }
}

function causeOf({ pack }: SortedPack, ordinal: number): CollectionCause {
  return pack.record.reached?.has(ordinal) === true ? 'oldVersion' : 'neverReferenced'
}

function ownedOf({ owned, objects }: PackRecord): Bitmap {
  return owned ?? Bitmap.empty(objects)
}
