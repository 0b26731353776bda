import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import { isStorageError } from '../../storage/storage-errors.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { ByteCache } from '../../memory/byte-cache.ts'
import { BufferPool } from '../../memory/buffer-pool.ts'
import { keyParts, packKey, parseHex } from './keys.ts'
import type { PackTables } from '../pack/pack-format.ts'
import { type DecodedTables, decodeTablesInto, giveBackTables } from '../pack/stored-tables.ts'
import { type BorrowedTables, TableCache } from './table-cache.ts'
import { decodePackRecord, isRetired, type PackRecord } from './pack-record.ts'
import { isRemoved, readHead } from './projects.ts'
import type { ProjectView } from './project-view.ts'
import type { ByteSource } from '../pack/segment.ts'
import { readSource } from '../pack/read-source.ts'
import { type RecordedPack, sourceOf } from './retired-content.ts'

export interface Pack {
  readonly projectId: string
  readonly sequence: number
  readonly record: PackRecord
  readonly source: ByteSource
}

export interface CatalogParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly environment: Environment
  /** Where the memory of tables comes from. By default nothing is used again. */
  readonly bufferPool?: BufferPool
}

/** Records of packs that one call to the storage reads. */
const LOADED_AT_ONCE = 64

/** Loads packs' records and tables, and keeps the ones used last. */
export class PackCatalog {
  readonly #records: RecordStore
  readonly #blobs: BlobStore
  readonly #environment: Environment
  readonly #packs: ByteCache<Pack>
  readonly #tables: TableCache
  readonly #bufferPool: BufferPool

  constructor({ records, blobs, environment, bufferPool }: CatalogParts, cacheBytes: number) {
    this.#environment = environment
    this.#records = records
    this.#blobs = blobs
    this.#packs = new ByteCache(cacheBytes >> 2, packBytes)
    this.#bufferPool = bufferPool ?? new BufferPool(0)
    this.#tables = new TableCache(cacheBytes - (cacheBytes >> 2), this.#bufferPool)
  }

  /**
   * The pack with this number. Throws `corrupt_data` when its record or its content is not there, `not_found` when the
   * project was removed meanwhile, and `OutdatedViewError` when packs were merged so long after the view that it shows
   * no longer where objects lie.
   */
  async pack(project: ProjectView, sequence: number): Promise<Pack> {
    return inLayout(await this.packOfAnyLayout(project, sequence), project)
  }

  /** The same, also if the pack holds its objects only from a later layout on: its lines are there already. */
  packOfAnyLayout(project: ProjectView, sequence: number): Promise<Pack> {
    return this.#pack(project, sequence)
  }

  /** Loads all packs with these numbers into the cache, with few calls to the storage. Throws as `pack` does. */
  async load(project: ProjectView, sequences: readonly number[]): Promise<void> {
    const { projectId, generation } = project
    for (let first = 0; first < sequences.length; first += LOADED_AT_ONCE) {
      const some = sequences.slice(first, first + LOADED_AT_ONCE)
      const fresh = some.filter((sequence) => this.#packs.peek(packName(project, sequence)) === undefined)
      const keys = fresh.map((sequence) => packKey(projectId, generation, sequence))
      const values = keys.length === 0 ? [] : await this.#records.getMany(keys)
      const found = new Map(fresh.map((sequence, i) => [sequence, { value: values[i] }]))
      for (const sequence of some) inLayout(await this.#pack(project, sequence, found.get(sequence)), project)
    }
  }

  /** `found` is its record, if that was read already. */
  async #pack(
    project: ProjectView,
    sequence: number,
    found?: { readonly value: Uint8Array | undefined },
  ): Promise<Pack> {
    const cacheKey = packName(project, sequence)
    const pack = await this.#packs.get(cacheKey, async () => {
      const key = packKey(project.projectId, project.generation, sequence)
      const { value } = found ?? { value: (await this.#records.getMany([key]))[0] }
      if (value === undefined)
        throw await reasonGone(
          this.#records,
          project,
          `the record of pack ${sequence} is missing, though objects lie in it`,
        )
      return packIn(this.#records, project, sequence, decodePackRecord(key, value))
    })
    // The owned objects are known only once the pack is applied; until then they are looked up each time.
    if (pack.record.owned === undefined) this.#packs.delete(cacheKey)
    return pack
  }

  /**
   * The packs that hold everything that the view has, if it is known of each object of theirs whether they hold it, or
   * that it was condemned; `undefined` otherwise, and if there are more than `packsMax`.
   */
  async knownPacks(project: ProjectView, packsMax: number, signal: AbortSignal): Promise<Pack[] | undefined> {
    const packs: Pack[] = []
    for await (const pack of this.packsFrom(project, 0, signal)) {
      const { state, owned } = pack.record
      if (state === 'merging') continue
      if (owned === undefined || packs.push(pack) > packsMax) return undefined
    }
    return packs
  }

  /**
   * The packs that the view has from this number on, without those whose objects lie in merged packs. Throws
   * `corrupt_data` for a damaged record.
   */
  async *packsFrom(project: ProjectView, sequence: number, signal: AbortSignal): AsyncGenerator<Pack> {
    for await (const [at, record] of this.#recordsIn(project, [sequence, project.sequence - 1], signal))
      yield await packIn(this.#records, project, at, record)
  }

  /** The same from one number to another, both included, of the wanted ones, which are kept like those of `pack`. */
  async *packsBetween(
    project: ProjectView,
    bounds: readonly [first: number, last: number],
    isWanted: (sequence: number, record: PackRecord) => boolean,
    signal: AbortSignal,
  ): AsyncGenerator<Pack> {
    for await (const [sequence, record] of this.#recordsIn(project, bounds, signal)) {
      if (!isWanted(sequence, record)) continue
      yield await this.#packs.get(packName(project, sequence), () => packIn(this.#records, project, sequence, record))
    }
  }

  async *#recordsIn(
    { projectId, generation, layout }: ProjectView,
    [first, last]: readonly [first: number, last: number],
    signal: AbortSignal,
  ): AsyncGenerator<readonly [sequence: number, record: PackRecord]> {
    const bounds = { gte: packKey(projectId, generation, first), lt: packKey(projectId, generation, last + 1) }
    for await (const entries of this.#records.range(bounds, { signal })) {
      for (const { key, value } of entries) {
        const record = decodePackRecord(key, value)
        if (!isRetired(record, layout)) yield [parseHex(keyParts(key)[2]), record]
      }
    }
  }

  /** The tables, for callers that cannot say when they are done: their memory is not used again. */
  tables(pack: Pack): Promise<PackTables> {
    return this.#tables.get(tablesKey(pack), () => this.#readShared(pack))
  }

  /** The same tables, until they are given back: after that there must be no view of them. */
  sharedTables(pack: Pack): Promise<BorrowedTables> {
    return this.#tables.borrow(tablesKey(pack), () => this.#readShared(pack))
  }

  /** Lends the same tables to `use`, which keeps no view of them. */
  async withTables<T>(pack: Pack, use: (tables: PackTables) => T | Promise<T>): Promise<T> {
    const { tables, giveBack } = await this.sharedTables(pack)
    try {
      return await use(tables)
    } finally {
      giveBack()
    }
  }

  /**
   * The tables, until they are given back: after that there must be no view of them. Tables that are not in the cache
   * stay out of it: for whoever reads the tables of very many packs once.
   */
  async borrowTables(pack: Pack): Promise<BorrowedTables> {
    if (this.#tables.has(tablesKey(pack))) return this.sharedTables(pack)
    const decoded = await readTablesInto(this.#bufferPool, this.#blobs, pack, this.#environment)
    return { tables: decoded.tables, giveBack: () => giveBackTables(this.#bufferPool, decoded) }
  }

  /** Tables that are stored as they are stay in the memory of their read, which is then of their size. */
  #readShared(pack: Pack): Promise<DecodedTables> {
    const bufferPool = pack.record.sources.length > 0 ? this.#bufferPool : undefined
    return readTablesInto(bufferPool, this.#blobs, pack, this.#environment)
  }

  clear(): void {
    this.#packs.clear()
    this.#tables.clear()
  }

  /**
   * The reason of a failed read. The sweep of a removed project takes its blobs while downloads still read them: that is
   * `not_found`, and not damage. Neither is it damage if a merged pack took the place of the blob long ago.
   */
  async reasonOf(error: unknown, project: ProjectView): Promise<unknown> {
    if (!isStorageError(error, 'BlobNotFoundError')) return error
    return (await changeSince(this.#records, project)) ?? error
  }

  /** The items, with the reason of a failure as `reasonOf` finds it. */
  async *reading<T>(project: ProjectView, items: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* items
    } catch (error) {
      throw await this.reasonOf(error, project)
    }
  }
}

/** The pack, if its objects lie in it in this view. */
function inLayout(pack: Pack, { layout }: ProjectView): Pack {
  if (pack.record.activeAt > layout) throw new OutdatedViewError()
  return pack
}

function packName({ projectId, generation, layout }: ProjectView, sequence: number): string {
  return `${generation}\0${sequence}\0${layout}\0${projectId}`
}

/** What a reader sees is older than the packs that it needs: it must look at the project again. */
export class OutdatedViewError extends StowageError {
  constructor() {
    super('overloaded', 'the packs of the project were merged while it was read; try again', {
      headers: { 'Retry-After': '1' },
    })
  }
}

/** For who can do without a pack that is gone, or damaged: whoever needs it meets that. */
export function onlyIfDamaged(error: unknown): undefined {
  if (error instanceof StowageError && error.code === 'corrupt_data') return undefined
  throw error
}

/** How a project changed since the view, so that it lacks packs: it was removed, or they were merged long ago. */
async function changeSince(
  records: RecordStore,
  { projectId, generation, layout }: ProjectView,
): Promise<StowageError | undefined> {
  const { head } = await readHead(records, projectId)
  if (isRemoved(head, generation)) return removedWhileRead()
  return head !== undefined && head.layout > layout ? new OutdatedViewError() : undefined
}

async function reasonGone(records: RecordStore, project: ProjectView, otherwise: string): Promise<StowageError> {
  return (await changeSince(records, project)) ?? corrupt(otherwise)
}

function removedWhileRead(): StowageError {
  return new StowageError('not_found', 'the project was removed while it was read')
}

/**
 * The pack of a record that was read in this view. If its content is gone, throws the same errors as
 * `PackCatalog.pack` without a record.
 */
export async function packIn(
  records: RecordStore,
  project: ProjectView,
  sequence: number,
  record: PackRecord,
): Promise<Pack> {
  const { projectId, generation } = project
  const source = await sourceOf(records, { projectId, generation, sequence, record })
  if (source === undefined) throw await reasonGone(records, project, contentMissing(sequence))
  return { projectId, sequence, record, source }
}

/** The pack of a record, outside any view. Throws `corrupt_data` if its content is gone. */
export async function packOf(records: RecordStore, recorded: RecordedPack): Promise<Pack> {
  const { projectId, sequence, record } = recorded
  const source = await sourceOf(records, recorded)
  if (source === undefined) throw corrupt(contentMissing(sequence))
  return { projectId, sequence, record, source }
}

function contentMissing(sequence: number): string {
  return `the content of pack ${sequence} is missing, though its record says that it lies beside it`
}

/** What a pack takes in memory. */
function packBytes({ source, record: { owned, condemned, reached } }: Pack): number {
  const content = 'bytes' in source ? source.bytes : undefined
  return [content, owned?.bytes, condemned?.bytes, reached?.bytes].reduce((sum, part) => sum + (part?.length ?? 0), 512)
}

export async function readTables(blobs: BlobStore, pack: Pack, environment: Environment): Promise<PackTables> {
  return (await readTablesInto(undefined, blobs, pack, environment)).tables
}

/**
 * The tables of a pack, in memory that `buffers` lends. After a read that failed, the memory is left to the collector: a
 * thread may still write into it.
 */
async function readTablesInto(
  buffers: BufferPool | undefined,
  blobs: BlobStore,
  { record, source }: Pack,
  environment: Environment,
): Promise<DecodedTables> {
  const into = 'blob' in source ? buffers?.take(record.packBytes - record.tablesStart) : undefined
  const bytes = await readSource(blobs, source, record.tablesStart, record.packBytes, { into })
  if (into !== undefined && into.buffer !== bytes.buffer) buffers?.giveBack(into)
  const { tables, memory } = await decodeTablesInto(buffers, bytes, environment)
  if (tables.objects !== record.objects)
    throw corrupt('the tables of a pack and its record disagree on the number of objects')
  if (memory.buffer === bytes.buffer) return { tables, memory: bytes }
  buffers?.giveBack(bytes)
  return { tables, memory }
}

function tablesKey({ record, projectId }: Pack): string {
  return `${record.packId}\0${projectId}`
}
