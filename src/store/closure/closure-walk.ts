import { Yielder } from '../../async/yielder.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { Closure, PackSelection } from './closure.ts'
import { ContentDigest } from '../../object/content-digest.ts'
import { FoundPlaces, rowOf, tableOf } from './found-places.ts'
import { SOUGHT_AT_ONCE } from './location-index.ts'
import { IdsHeldNowhere } from './ids-held-nowhere.ts'
import { locate, LOOKUP_KEYS } from '../records/locator.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { PackTables, Rows } from '../pack/pack-format.ts'
import { onlyIfDamaged, type Pack } from '../records/pack-catalog.ts'
import { neededBytes, UnresolvedIds } from './unresolved-ids.ts'
import { UnsureIds } from './unsure-ids.ts'
import { type Place, reachedOf, type WalkedPack, walkedPack, type WalkParts } from './walked-pack.ts'
import type { WalkMemory } from './walk-memory.ts'
import { LentTables, packsOf } from './lent-tables.ts'
import { allPacks, packsBetween, type PacksSought } from './packs-ahead.ts'

/** Steps between two looks at the clock: one group of ids. The first touch of fresh memory costs far more than a look. */
const SLICE_CHECK_STEPS = SOUGHT_AT_ONCE

/**
 * Finds everything below a root: follows references, and claims that are held, from pack to pack. Each look-up brings
 * the table of a pack, which holds the neighbours of the id. Ends for every graph, also with cycles and lost children.
 */
export class ClosureWalk {
  readonly #parts: WalkParts
  readonly #project: ProjectView
  readonly #signal: AbortSignal
  readonly #sought: PacksSought
  readonly #tables: LentTables
  readonly #memory: WalkMemory
  readonly #walked: WalkedPack[] = []
  readonly #walkedBySequence = new Map<number, WalkedPack>()
  readonly #places: FoundPlaces
  readonly #heldNowhere: IdsHeldNowhere
  /** Condemned objects of indexed packs: the index lacks them. */
  readonly #unsure: UnsureIds
  readonly #queue: WalkedPack[] = []
  #unresolved: UnresolvedIds
  /** Those that are being resolved. */
  #resolving: UnresolvedIds | undefined
  readonly #yielder: Yielder
  readonly #contents = new ContentDigest()
  /** The memory for the walked packs: bitmaps, and lists of open objects. */
  #packsBytes = 0
  #steps = 0
  /** Ids that the next round asks the records for. */
  #asked = LOOKUP_KEYS

  constructor(parts: WalkParts, project: ProjectView, { signal, memory }: { signal: AbortSignal; memory: WalkMemory }) {
    const { hashKey } = parts.environment
    this.#parts = parts
    this.#project = project
    this.#signal = signal
    const isLoaded = (sequence: number): boolean => this.#walkedBySequence.has(sequence)
    this.#sought = { catalog: parts.catalog, project, signal, isLoaded }
    this.#memory = memory
    this.#tables = new LentTables(parts.catalog)
    this.#yielder = new Yielder(parts.environment)
    this.#places = new FoundPlaces(hashKey, memory, project, (walked, ordinal) => this.#reach(walked, ordinal))
    memory.dropIndex = () => this.#places.index.drop()
    this.#heldNowhere = new IdsHeldNowhere(hashKey)
    this.#unsure = new UnsureIds(hashKey)
    this.#unresolved = new UnresolvedIds(hashKey)
  }

  async from({ sequence, ordinal }: Place): Promise<Closure> {
    await this.reach([{ sequence, ordinal }])
    await this.#hold(this.#heldNowhere.trimBytes)
    return {
      root: { sequence, ordinal },
      packs: this.reached,
      ...this.#heldNowhere.trim(),
      sequence: this.#project.sequence,
      digest: this.#contents.digest(),
    }
  }

  /**
   * Reaches everything below these objects, and the objects themselves unless told otherwise. Further calls go on from
   * there: whatever was reached before is not looked into again.
   */
  async reach(places: Iterable<Place>, { areReached = true }: { readonly areReached?: boolean } = {}): Promise<void> {
    for (const { sequence, ordinal } of places) {
      const walked = this.#walkedBySequence.get(sequence) ?? (await this.#load(sequence))
      if (!areReached) this.#open(walked, ordinal)
      else this.#reach(walked, ordinal)
      if (++this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
    }
    for (;;) {
      // In rounds: what all packs of a round reach in another one is looked into there at once.
      for (let round = this.#queue.splice(0); round.length > 0; round = this.#queue.splice(0))
        await this.#tables.lendEach(round, (walked, tables) => this.#expand(walked, tables))
      if (this.#unresolved.ids.size === 0) break
      await this.#resolve()
    }
  }

  /** What was reached so far, in the order of the packs. */
  get reached(): PackSelection[] {
    return reachedOf(this.#walked)
  }

  #reach(walked: WalkedPack, ordinal: number): void {
    if (walked.visited.add(ordinal)) this.#open(walked, ordinal)
  }

  #reachFound(walked: WalkedPack, ordinal: number, id: Uint8Array): void {
    if (walked.pack.record.owned?.has(ordinal) !== true) this.#places.inDoubt.add(id, walked, ordinal)
    this.#reach(walked, ordinal)
  }

  #open(walked: WalkedPack, ordinal: number): void {
    if (walked.open.length === 0) this.#queue.push(walked)
    walked.open.push(ordinal)
  }

  /** Looks into every open object of the pack, and into those of the pack that they lead to. */
  async #expand(walked: WalkedPack, tables: PackTables): Promise<void> {
    await this.#makeRoom(walked, tables)
    while (walked.open.length > 0) {
      const ordinal = walked.open.pop()
      this.#contents.add(tables.lineBytes[ordinal], tables.textCrc32[ordinal])
      // An iterator for each object would be most of the garbage of a walk.
      for (let kind = 0; kind < 2; kind++) {
        const rows = kind === 0 ? tables.references : tables.claims
        const end = rows.ends[ordinal]
        for (let start = ordinal === 0 ? 0 : rows.ends[ordinal - 1]; start < end; start += SLICE_CHECK_STEPS) {
          if (this.#followAll(walked, tables, rows, start, Math.min(end, start + SLICE_CHECK_STEPS)))
            while (this.#unresolved.neededBytes > this.#memory.unresolvedBytesMax) await this.#resolve()
          if (this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
        }
      }
    }
    this.#packsBytes += walked.open.memoryBytes - walked.openBytes
    walked.openBytes = walked.open.memoryBytes
    if (++this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
  }

  /** Leases the most that reading the pack can take, if that is much, before it is held. */
  async #makeRoom(walked: WalkedPack, tables: PackTables): Promise<void> {
    const { ends, bytes } = tables.externals
    if (walked.referred === undefined) {
      const targets = tables.objects + ends.length
      this.#packsBytes += 2 * Math.ceil(targets / 8)
      await this.#hold()
      walked.referred = Bitmap.empty(targets)
      walked.claimed = Bitmap.empty(targets)
    }
    if (ends.length <= SLICE_CHECK_STEPS) return
    const room = this.#unresolved.roomFor(ends.length, bytes.length, this.#memory.unresolvedBytesMax)
    await this.#hold(neededBytes(room.count, room.idBytes))
    this.#unresolved.reserve(room.count, room.idBytes)
  }

  /** Whether some of these targets are unresolved. */
  #followAll(walked: WalkedPack, tables: PackTables, rows: Rows, start: number, end: number): boolean {
    const isReference = rows === tables.references
    const met = (isReference ? walked.referred : walked.claimed) as Bitmap
    const { sequence, record } = walked.pack
    // Other packs may have had objects of a pack that came since, or of any while some are in doubt.
    const owned = this.#places.inDoubt.size === 0 && sequence < this.#project.sequence ? record.owned : undefined
    let sought = 0
    for (let i = start; i < end; i++) {
      const target = rows.targets[i]
      if (!met.add(target)) continue
      if (target >= tables.objects || owned?.has(target) !== true) this.#places.targets[sought++] = target
      else if (walked.visited.add(target)) walked.open.push(target)
    }
    this.#steps += end - start + 1
    return sought > 0 && this.#seek(walked, tables, sought, isReference)
  }

  /** Reaches these targets in whatever pack, or leaves them unresolved. Whether it left any. */
  #seek(walked: WalkedPack, tables: PackTables, sought: number, isReference: boolean): boolean {
    const { targets, hashes } = this.#places
    const left = this.#places.seek(tables, sought)
    for (let i = 0; i < left; i++) {
      const { bytes, ends } = tableOf(tables, targets[i])
      const row = rowOf(tables, targets[i])
      if (targets[i] < tables.objects && walked.pack.record.owned?.has(row) === true) this.#reach(walked, row)
      else this.#unresolved.add(hashes[i], bytes, row === 0 ? 0 : ends[row - 1], ends[row], isReference)
    }
    return left > 0
  }

  /**
   * Asks the records for some of the unresolved ids, spread over all of them, loads their packs, and looks for the
   * others there. Neighbours usually lie in the same packs, so few rounds resolve very many ids. If a round leads to no
   * new pack, the next one asks for more: ids that are missing everywhere must not cost a round for each thousand.
   */
  async #resolve(): Promise<void> {
    this.#resolving = this.#unresolved
    this.#unresolved = new UnresolvedIds(this.#parts.environment.hashKey)
    await this.#resolveAll(this.#resolving)
    this.#resolving = undefined
  }

  async #resolveAll(unresolved: UnresolvedIds): Promise<void> {
    const { ids } = unresolved
    if (ids.size > LOOKUP_KEYS && (await this.#indexesAll(ids.size)) && (await this.#settle(unresolved))) return
    const asked = Bitmap.empty(ids.size)
    if (ids.size > LOOKUP_KEYS) await this.#reserveAbsent(unresolved)
    const packsBefore = this.#walked.length
    while (asked.count < ids.size && this.#walked.length === packsBefore) {
      await this.#askSome(unresolved, asked)
      this.#asked *= 2
    }
    if (ids.size > LOOKUP_KEYS) await this.#loadBetween(this.#walked.slice(packsBefore).map(({ pack }) => pack))
    const table = ids.table()
    for (let i = 0; i < ids.size && asked.count < ids.size; i++) {
      if (asked.has(i)) continue
      if (++this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
      if (!this.#places.findNext(table, i)) this.#unresolved.addFrom(unresolved, i)
    }
    // Where the packs of some tell little about the others, for want of an index, the next round asks for more.
    if (this.#unresolved.ids.size <= ids.size / 2) this.#asked = LOOKUP_KEYS
  }

  /**
   * Loads the packs of the project that were not met yet, if they hold fewer objects than there are ids to look up.
   * Returns whether the index then has every object of the project, except those in doubt: other ids that are not in it
   * are held nowhere.
   */
  async #indexesAll(ids: number): Promise<boolean> {
    const packs = await allPacks(this.#sought, ids)
    if (packs === undefined) return false
    await this.#loadFresh(packs.map(({ sequence }) => sequence))
    for (const { sequence } of packs) {
      const walked = this.#walkedBySequence.get(sequence)
      if (walked?.isIndexed !== true) return false
      await this.#unsure.addOf(walked.pack, this.#parts.catalog, this.#yielder)
    }
    await this.#breathe()
    return this.#places.index.packs > 0
  }

  /**
   * Treats ids that the index lacks as absent, except those in doubt. `false` if all are in doubt, or if the index had to
   * be dropped meanwhile: then the records are asked.
   */
  async #settle(unresolved: UnresolvedIds): Promise<boolean> {
    const { ids } = unresolved
    const { packs } = this.#places.index
    const table = ids.table()
    const isAbsent = Bitmap.empty(ids.size)
    const unsure: number[] = []
    for (let i = 0; i < ids.size; i++) {
      if (++this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
      if (this.#places.findNext(table, i)) continue
      if (this.#unsure.has(table.bytes, i === 0 ? 0 : table.ends[i - 1], table.ends[i])) unsure.push(i)
      else isAbsent.add(i)
    }
    if (this.#places.index.packs < packs || unsure.length === ids.size) return false
    if (isAbsent.count === ids.size && this.#heldNowhere.takeAll(unresolved)) return true
    for (const i of unsure) this.#unresolved.addFrom(unresolved, i)
    await this.#reserveAbsent(unresolved)
    for (let i = 0; i < ids.size; i++) {
      if (++this.#steps >= SLICE_CHECK_STEPS) await this.#breathe()
      if (isAbsent.has(i)) this.#heldNowhere.add(unresolved, i)
    }
    return true
  }

  async #reserveAbsent(unresolved: UnresolvedIds): Promise<void> {
    await this.#hold(this.#heldNowhere.neededBytes(unresolved))
    this.#heldNowhere.reserve(unresolved)
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
    const locations = await locate(this.#parts.records, this.#project, ids, this.#signal)
    await this.#loadFresh([...new Set(locations.flatMap((location) => location?.sequence ?? []))])
    for (const [i, location] of locations.entries()) {
      if (location !== undefined) this.#reachFound(await this.#load(location.sequence), location.ordinal, ids[i])
      else this.#heldNowhere.add(unresolved, chosen[i])
    }
    await this.#breathe()
  }

  /** Loads those of these packs that are not loaded yet. */
  async #loadFresh(sequences: readonly number[]): Promise<void> {
    const fresh = sequences.filter((sequence) => !this.#walkedBySequence.has(sequence))
    await this.#places.index.reserve(fresh.length, this.#yielder)
    await this.#tables.lendEach(packsOf(this.#parts.catalog, this.#project, fresh), async ({ pack }, tables) => {
      await this.#add(pack, tables)
      await this.#breathe()
    })
  }

  /** Loads the packs between these, which may be of no use, as long as there is memory to index them. */
  async #loadBetween(packs: readonly Pack[]): Promise<void> {
    let isFull = false
    const between = packsBetween(this.#sought, packs, () => isFull)
    const loading = this.#tables.lendEach(between, async ({ pack }, tables) => {
      isFull = !(await this.#add(pack, tables)).isIndexed
      await this.#breathe()
    })
    await loading.catch(onlyIfDamaged)
  }

  async #load(sequence: number): Promise<WalkedPack> {
    const known = this.#walkedBySequence.get(sequence)
    if (known !== undefined) return known
    const pack = await this.#parts.catalog.pack(this.#project, sequence)
    return this.#tables.lend(pack, (tables) => this.#add(pack, tables))
  }

  async #add(pack: Pack, { objects, ids }: PackTables): Promise<WalkedPack> {
    this.#packsBytes += Math.ceil(objects / 8)
    const walked = walkedPack(pack, objects)
    this.#walked.push(walked)
    this.#walkedBySequence.set(pack.sequence, walked)
    walked.isIndexed = await this.#places.index.add(walked, ids, pack.record, this.#yielder)
    return walked
  }

  /** Leases the memory of the walk, and so many bytes besides. */
  #hold(besideBytes = 0): Promise<void> | undefined {
    const unresolvedBytes = this.#unresolved.memoryBytes + (this.#resolving?.memoryBytes ?? 0)
    const otherIdsBytes = this.#heldNowhere.memoryBytes + this.#places.inDoubt.memoryBytes + this.#unsure.memoryBytes
    return this.#memory.setTables(unresolvedBytes + otherIdsBytes + this.#packsBytes + besideBytes)
  }

  /** `undefined` if there is nothing to wait for: it is called thousands of times. */
  #breathe(): Promise<void> | undefined {
    this.#steps = 0
    this.#signal.throwIfAborted()
    return this.#hold()?.then(() => this.#yielder.due()) ?? this.#yielder.due()
  }
}
