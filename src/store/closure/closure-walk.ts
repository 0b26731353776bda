import type { Environment, HashKey } from '../../environment.ts'
import { IdSet } from '../../object/id-set.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { Closure } from './closure.ts'
import { Uint32List } from '../bytes/growable.ts'
import { LocationIndex } from './location-index.ts'
import { locate, LOOKUP_KEYS } from '../records/locator.ts'
import type { Pack, PackCatalog, ProjectView } from '../records/pack-catalog.ts'
import { type PackTables, type Rows, targetId } from '../pack/pack-format.ts'
import type { ObjectLocation } from '../records/records.ts'

const SLICE_MS = 10
/** References and objects that are looked at between two looks at the clock. */
const SLICE_CHECK_STEPS = 4_096
const PACKS_LOADED_AT_ONCE = 8

/** What the walk knows of one pack. Targets are numbered as in its tables: ordinals, then external ids. */
interface WalkedPack {
  readonly pack: Pack
  readonly visited: Bitmap
  /** Ordinals that were reached and not yet looked into. */
  readonly open: Uint32List
  /** Targets that were met as a reference, and as a claim: each is followed up once for each. */
  referred: Bitmap | undefined
  claimed: Bitmap | undefined
}

/** Ids that are in no pack loaded so far, each with whether anything refers to it; others are only claimed. */
class UnresolvedIds {
  readonly ids: IdSet
  readonly #isReferred = new Uint32List()

  constructor(key: HashKey) {
    this.ids = new IdSet(undefined, undefined, key)
  }

  add(id: Uint8Array, isReference: boolean): void {
    const index = this.ids.add(id)
    if (index === this.#isReferred.length) this.#isReferred.push(isReference ? 1 : 0)
    else if (isReference) this.#isReferred.set(index, 1)
  }

  isReferred(index: number): boolean {
    return this.#isReferred.at(index) === 1
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
  readonly #walkedBySequence = new Map<number, WalkedPack>()
  readonly #index: LocationIndex
  /** The walked packs in the order in which the index numbers them. */
  readonly #indexed: WalkedPack[] = []
  readonly #missing: IdSet
  readonly #absentClaims: IdSet
  readonly #queue: WalkedPack[] = []
  #unresolved: UnresolvedIds
  readonly #environment: Environment
  #sliceEndsAtMs: number
  /** Since the last look at the clock. */
  #steps = 0
  /** Ids that the next round asks the records for. */
  #asked = LOOKUP_KEYS

  constructor(
    records: RecordStore,
    catalog: PackCatalog,
    project: ProjectView,
    signal: AbortSignal,
    environment: Environment,
  ) {
    const { hashKey } = environment
    this.#environment = environment
    this.#index = new LocationIndex(hashKey)
    this.#missing = new IdSet(undefined, undefined, hashKey)
    this.#absentClaims = new IdSet(undefined, undefined, hashKey)
    this.#unresolved = new UnresolvedIds(hashKey)
    this.#sliceEndsAtMs = environment.monotonicMs() + SLICE_MS
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
      if (this.#unresolved.ids.size === 0) break
      await this.#resolve()
    }
    const packs = this.#walked
      .filter(({ visited }) => visited.count > 0)
      .map(({ pack, visited }) => ({ sequence: pack.sequence, packId: pack.record.packId, wanted: visited }))
      .sort((a, b) => a.sequence - b.sequence)
    const { sequence, ordinal } = location
    return {
      root: { sequence, ordinal },
      packs,
      missing: this.#missing,
      absentClaims: this.#absentClaims,
      sequence: this.#project.sequence,
    }
  }

  #reach(walked: WalkedPack, ordinal: number): void {
    if (!walked.visited.add(ordinal)) return
    if (walked.open.length === 0) this.#queue.push(walked)
    walked.open.push(ordinal)
  }

  /** Looks into every open object of the pack, and into those of the pack that they lead to. */
  async #expand(walked: WalkedPack): Promise<void> {
    const tables = await this.#catalog.tables(walked.pack)
    if (tables.externals.ends.length > SLICE_CHECK_STEPS)
      this.#unresolved.ids.reserve(this.#unresolved.ids.size + tables.externals.ends.length)
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
    for (let i = start; i < end; i++)
      if (met.add(rows.targets[i])) this.#follow(walked, tables, rows.targets[i], isReference)
    this.#steps += end - start + 1
  }

  #follow(walked: WalkedPack, tables: PackTables, target: number, isReference: boolean): void {
    if (target < tables.objects && walked.pack.record.owned?.has(target)) {
      if (walked.visited.add(target)) walked.open.push(target)
      return
    }
    const id = targetId(tables, target)
    if (!this.#findLoaded(id)) this.#unresolved.add(id, isReference)
  }

  #findLoaded(id: Uint8Array): boolean {
    return this.#index.find(id, (pack, ordinal) => this.#reach(this.#indexed[pack], ordinal))
  }

  /**
   * Asks the records for some of the unresolved ids, spread over all of them, loads the packs that they lie in, and looks for the others there.
   * Neighbours usually lie in the same packs, so few rounds resolve very many ids. Where a round leads to no new pack the next one asks for more:
   * what is missing everywhere must not cost a round for each thousand.
   */
  async #resolve(): Promise<void> {
    const unresolved = this.#unresolved
    const { ids } = unresolved
    this.#unresolved = new UnresolvedIds(this.#environment.hashKey)
    const asked = Bitmap.empty(ids.size)
    if (ids.size > LOOKUP_KEYS) this.#absentClaims.reserve(this.#absentClaims.size + ids.size)
    const packsBefore = this.#walked.length
    while (asked.count < ids.size && this.#walked.length === packsBefore) {
      await this.#askSome(unresolved, asked)
      this.#asked *= 2
    }
    this.#asked = LOOKUP_KEYS
    for (let i = 0; i < ids.size && asked.count < ids.size; i++) {
      if (asked.has(i)) continue
      if (++this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
      const id = ids.bytesAt(i)
      if (!this.#findLoaded(id)) this.#unresolved.add(id, unresolved.isReferred(i))
    }
  }

  /** Looks up some of the ids that were not asked for yet, spread over all of them. */
  async #askSome(unresolved: UnresolvedIds, asked: Bitmap): Promise<void> {
    const { size } = unresolved.ids
    const stride = Math.max(1, Math.ceil((size - asked.count) / this.#asked))
    let chosen: number[] = []
    for (let i = 0, open = 0; i < size; i++) {
      if (++this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
      if (asked.has(i) || open++ % stride !== 0) continue
      asked.add(i)
      if (chosen.push(i) < LOOKUP_KEYS) continue
      await this.#ask(unresolved, chosen)
      chosen = []
    }
    if (chosen.length > 0) await this.#ask(unresolved, chosen)
  }

  /** Looks up these ids, `LOOKUP_KEYS` at most. */
  async #ask(unresolved: UnresolvedIds, chosen: readonly number[]): Promise<void> {
    const ids = chosen.map((index) => unresolved.ids.bytesAt(index))
    const locations = await locate(this.#records, this.#project, ids, this.#signal)
    await this.#loadAll(locations)
    for (const [i, location] of locations.entries()) {
      if (location !== undefined) this.#reach(await this.#load(location.sequence), location.ordinal)
      else if (unresolved.isReferred(chosen[i])) this.#missing.add(ids[i])
      else this.#absentClaims.add(ids[i])
    }
    await this.#breathe()
  }

  async #loadAll(locations: readonly (ObjectLocation | undefined)[]): Promise<void> {
    const sequences = [...new Set(locations.flatMap((location) => (location === undefined ? [] : [location.sequence])))]
    const fresh = sequences.filter((sequence) => !this.#walkedBySequence.has(sequence))
    for (let i = 0; i < fresh.length; i += PACKS_LOADED_AT_ONCE) {
      await Promise.all(fresh.slice(i, i + PACKS_LOADED_AT_ONCE).map((sequence) => this.#load(sequence)))
      await this.#breathe()
    }
  }

  async #load(sequence: number): Promise<WalkedPack> {
    const known = this.#walkedBySequence.get(sequence)
    if (known !== undefined) return known
    const pack = await this.#catalog.pack(this.#project, sequence)
    const tables = await this.#catalog.tables(pack)
    const raced = this.#walkedBySequence.get(sequence)
    if (raced !== undefined) return raced
    const visited = Bitmap.empty(tables.objects)
    const walked: WalkedPack = { pack, visited, open: new Uint32List(), referred: undefined, claimed: undefined }
    this.#walked.push(walked)
    this.#walkedBySequence.set(sequence, walked)
    const { owned } = pack.record
    if (owned !== undefined && this.#index.add(tables.ids, owned)) this.#indexed.push(walked)
    return walked
  }

  async #breathe(): Promise<void> {
    this.#steps = 0
    this.#signal.throwIfAborted()
    if (this.#environment.monotonicMs() < this.#sliceEndsAtMs) return
    await this.#environment.nextTurn()
    this.#sliceEndsAtMs = this.#environment.monotonicMs() + SLICE_MS
  }
}
