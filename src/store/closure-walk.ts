import { setImmediate as nextTurn } from 'node:timers/promises'
import { IdSet } from '../object/id-set.ts'
import type { RecordStore } from '../storage/backend.ts'
import { Bitmap } from './bitmap.ts'
import type { Closure } from './closure.ts'
import { Uint32List } from './growable.ts'
import { LocationIndex } from './location-index.ts'
import { locate, LOOKUP_KEYS } from './locator.ts'
import type { Pack, PackCatalog, ProjectView } from './pack-catalog.ts'
import { type PackTables, type Rows, tableEntry } from './pack-format.ts'
import type { ObjectLocation } from './records.ts'

const SLICE_MS = 10
/** References and objects that are looked at between two looks at the clock. */
const SLICE_CHECK_STEPS = 4_096
const PACKS_LOADED_AT_ONCE = 8
/** Tables that one walk keeps in memory; the oldest go first, and are read again if they are needed again. */
const HELD_TABLES_BYTES = 24 * 1_048_576

/** What the walk knows of one pack. Targets are numbered as in its tables: ordinals, then external ids. */
interface WalkedPack {
  readonly slot: number
  readonly pack: Pack
  readonly visited: Bitmap
  /** Ordinals that were reached and not yet looked into. */
  readonly open: Uint32List
  /** Targets that were met as a reference, and as a claim: each is followed up once for each. */
  referred: Bitmap | undefined
  claimed: Bitmap | undefined
  tables: PackTables | undefined
}

/** Ids that are in no pack loaded so far: two numbers each, the slot of the pack that mentions it, and the target with the kind of mention. */
class UnresolvedList {
  readonly #numbers = new Uint32List()

  get length(): number {
    return this.#numbers.length / 2
  }

  push(slot: number, target: number, isReference: boolean): void {
    this.#numbers.push(slot)
    this.#numbers.push(target * 2 + (isReference ? 1 : 0))
  }

  slotAt(index: number): number {
    return this.#numbers.at(index * 2)
  }

  targetAt(index: number): number {
    return this.#numbers.at(index * 2 + 1) >>> 1
  }

  isReferenceAt(index: number): boolean {
    return (this.#numbers.at(index * 2 + 1) & 1) === 1
  }
}

/**
 * Finds everything below a root by following references, and claims as far as they are held, from pack to pack. One id is resolved through the
 * records; that brings the table of its pack, and its neighbours are found there. Ends with every graph: cycles, missing children, any depth.
 */
export class ClosureWalk {
  readonly #records: RecordStore
  readonly #catalog: PackCatalog
  readonly #project: ProjectView
  readonly #signal: AbortSignal
  readonly #walked: WalkedPack[] = []
  readonly #slotOfSequence = new Map<number, number>()
  readonly #index = new LocationIndex((slot) => this.#walked[slot].tables?.ids)
  readonly #missing = new IdSet()
  readonly #absentClaims = new IdSet()
  readonly #queue: WalkedPack[] = []
  #unresolved = new UnresolvedList()
  #heldTablesBytes = 0
  readonly #held: WalkedPack[] = []
  #sliceEndsAtMs = performance.now() + SLICE_MS
  /** Since the last look at the clock. */
  #steps = 0
  /** Ids that the next round asks the records for. */
  #asked = LOOKUP_KEYS

  constructor(records: RecordStore, catalog: PackCatalog, project: ProjectView, signal: AbortSignal) {
    this.#records = records
    this.#catalog = catalog
    this.#project = project
    this.#signal = signal
  }

  async from(location: ObjectLocation): Promise<Closure> {
    const root = await this.#load(location.sequence)
    this.#reach(root, location.ordinal)
    for (;;) {
      for (let next = this.#queue.pop(); next !== undefined; next = this.#queue.pop()) await this.#expand(next)
      if (this.#unresolved.length === 0) break
      await this.#resolve()
    }
    const packs = this.#walked
      .filter(({ visited }) => visited.count > 0)
      .map(({ pack, visited }) => ({ sequence: pack.sequence, packId: pack.record.packId, wanted: visited }))
      .sort((a, b) => a.sequence - b.sequence)
    const { sequence, ordinal } = location
    return { root: { sequence, ordinal }, packs, missing: this.#missing, absentClaims: this.#absentClaims, sequence: this.#project.sequence }
  }

  #reach(walked: WalkedPack, ordinal: number): void {
    if (!walked.visited.add(ordinal)) return
    if (walked.open.length === 0) this.#queue.push(walked)
    walked.open.push(ordinal)
  }

  /** Looks into every open object of the pack, and into those of the pack that they lead to. */
  async #expand(walked: WalkedPack): Promise<void> {
    const tables = await this.#tablesOf(walked)
    walked.referred ??= Bitmap.empty(tables.objects + tables.externals.ends.length)
    walked.claimed ??= Bitmap.empty(tables.objects + tables.externals.ends.length)
    while (walked.open.length > 0) {
      const ordinal = walked.open.pop()
      for (const rows of [tables.references, tables.claims]) {
        const end = rows.ends[ordinal]
        for (let start = ordinal === 0 ? 0 : rows.ends[ordinal - 1]; start < end; start += SLICE_CHECK_STEPS) {
          this.#followAll(walked, tables, rows, start, Math.min(end, start + SLICE_CHECK_STEPS))
          if (this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
        }
      }
    }
    this.#steps++
    if (this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
  }

  #followAll(walked: WalkedPack, tables: PackTables, rows: Rows, start: number, end: number): void {
    const isReference = rows === tables.references
    const met = (isReference ? walked.referred : walked.claimed) as Bitmap
    for (let i = start; i < end; i++) if (met.add(rows.targets[i])) this.#follow(walked, tables, rows.targets[i], isReference)
    this.#steps += end - start + 1
  }

  #follow(walked: WalkedPack, tables: PackTables, target: number, isReference: boolean): void {
    if (target < tables.objects && walked.pack.record.owned?.has(target)) {
      if (walked.visited.add(target)) walked.open.push(target)
      return
    }
    if (!this.#findLoaded(targetId(tables, target))) this.#unresolved.push(walked.slot, target, isReference)
  }

  #findLoaded(id: Uint8Array): boolean {
    return this.#index.find(id, 0, id.length, (slot, ordinal) => this.#reach(this.#walked[slot], ordinal))
  }

  /**
   * Asks the records for some of the unresolved ids, spread over all of them, loads the packs that they lie in, and looks for the others there.
   * Neighbours usually lie in the same packs, so few rounds resolve very many ids. Where a round leads to no new pack the next one asks for more:
   * what is missing everywhere must not cost a round for each thousand.
   */
  async #resolve(): Promise<void> {
    const unresolved = this.#unresolved
    this.#unresolved = new UnresolvedList()
    const stride = Math.max(1, Math.ceil(unresolved.length / this.#asked))
    const packsBefore = this.#walked.length
    for (let first = 0; first < unresolved.length; first += stride * LOOKUP_KEYS) await this.#ask(unresolved, first, stride)
    const isWorthLooking = this.#walked.length > packsBefore
    this.#asked = isWorthLooking ? LOOKUP_KEYS : this.#asked * 2
    if (stride === 1) return
    for (let i = 0; i < unresolved.length; i++) {
      if (i % stride === 0) continue
      if (++this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
      if (isWorthLooking && this.#findLoaded(await this.#idOf(unresolved, i))) continue
      this.#unresolved.push(unresolved.slotAt(i), unresolved.targetAt(i), unresolved.isReferenceAt(i))
    }
  }

  /** Looks up every `stride`th of the ids from `first` on, `LOOKUP_KEYS` of them at most. */
  async #ask(unresolved: UnresolvedList, first: number, stride: number): Promise<void> {
    const ids: Uint8Array[] = []
    for (let i = first; i < unresolved.length && ids.length < LOOKUP_KEYS; i += stride) ids.push(await this.#idOf(unresolved, i))
    const locations = await locate(this.#records, this.#project, ids, this.#signal)
    await this.#loadAll(locations)
    for (const [i, location] of locations.entries()) {
      if (location !== undefined) this.#reach(await this.#load(location.sequence), location.ordinal)
      else if (unresolved.isReferenceAt(first + i * stride)) this.#missing.add(ids[i])
      else this.#absentClaims.add(ids[i])
    }
    await this.#breathe()
  }

  async #idOf(unresolved: UnresolvedList, index: number): Promise<Uint8Array> {
    return targetId(await this.#tablesOf(this.#walked[unresolved.slotAt(index)]), unresolved.targetAt(index))
  }

  async #loadAll(locations: readonly (ObjectLocation | undefined)[]): Promise<void> {
    const sequences = [...new Set(locations.flatMap((location) => (location === undefined ? [] : [location.sequence])))]
    const fresh = sequences.filter((sequence) => !this.#slotOfSequence.has(sequence))
    for (let i = 0; i < fresh.length; i += PACKS_LOADED_AT_ONCE) {
      await Promise.all(fresh.slice(i, i + PACKS_LOADED_AT_ONCE).map((sequence) => this.#load(sequence)))
      await this.#breathe()
    }
  }

  async #load(sequence: number): Promise<WalkedPack> {
    const known = this.#slotOfSequence.get(sequence)
    if (known !== undefined) return this.#walked[known]
    const pack = await this.#catalog.pack(this.#project, sequence)
    const tables = await this.#catalog.tables(pack)
    const raced = this.#slotOfSequence.get(sequence)
    if (raced !== undefined) return this.#walked[raced]
    const slot = this.#walked.length
    const visited = Bitmap.empty(tables.objects)
    const walked: WalkedPack = { slot, pack, visited, open: new Uint32List(), referred: undefined, claimed: undefined, tables: undefined }
    this.#walked.push(walked)
    this.#slotOfSequence.set(sequence, slot)
    this.#hold(walked, tables)
    const { owned } = pack.record
    if (owned !== undefined) this.#index.add(slot, tables.ids, (ordinal) => owned.has(ordinal))
    return walked
  }

  async #tablesOf(walked: WalkedPack): Promise<PackTables> {
    if (walked.tables !== undefined) return walked.tables
    const tables = await this.#catalog.tables(walked.pack)
    this.#hold(walked, tables)
    return tables
  }

  #hold(walked: WalkedPack, tables: PackTables): void {
    walked.tables = tables
    this.#held.push(walked)
    this.#heldTablesBytes += tables.lineBytes.buffer.byteLength
    while (this.#heldTablesBytes > HELD_TABLES_BYTES && this.#held.length > 1) {
      const oldest = this.#held.shift() as WalkedPack
      this.#heldTablesBytes -= (oldest.tables as PackTables).lineBytes.buffer.byteLength
      oldest.tables = undefined
    }
  }

  async #breathe(): Promise<void> {
    this.#steps = 0
    this.#signal.throwIfAborted()
    if (performance.now() < this.#sliceEndsAtMs) return
    await nextTurn()
    this.#sliceEndsAtMs = performance.now() + SLICE_MS
  }
}

function targetId(tables: PackTables, target: number): Uint8Array {
  return target < tables.objects ? tableEntry(tables.ids, target) : tableEntry(tables.externals, target - tables.objects)
}
