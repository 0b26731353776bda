import { StowageError } from '../../errors.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import { isStorageError } from '../../storage/storage-errors.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { ByteCache } from '../../memory/byte-cache.ts'
import { headKey, packBlobName, packKey } from './keys.ts'
import { decodeTables, type PackTables } from '../pack/pack-format.ts'
import { decodeHead, decodePackRecord, type PackRecord } from './records.ts'
import type { ByteSource } from '../pack/segment.ts'
import { readSource } from '../pack/segment-reader.ts'

/** A project as one request sees it. */
export interface ProjectView {
  readonly projectId: string
  readonly generation: number
  readonly sequence: number
}

export interface Pack {
  readonly projectId: string
  readonly sequence: number
  readonly record: PackRecord
  readonly source: ByteSource
}

/** Loads packs' records and tables, and keeps the ones used last. */
export class PackCatalog {
  readonly #records: RecordStore
  readonly #blobs: BlobStore
  readonly #packs: ByteCache<Pack>
  readonly #tables: ByteCache<PackTables>

  constructor(records: RecordStore, blobs: BlobStore, cacheBytes: number) {
    this.#records = records
    this.#blobs = blobs
    this.#packs = new ByteCache(
      cacheBytes >> 2,
      (pack) => 512 + (pack.record.inline?.length ?? 0) + (pack.record.owned?.bytes.length ?? 0),
    )
    this.#tables = new ByteCache(cacheBytes - (cacheBytes >> 2), tablesBytes)
  }

  /**
   * The pack with this number. Throws `corrupt_data` when its record is not there, `not_found` when the project was
   * removed meanwhile.
   */
  async pack({ projectId, generation }: ProjectView, sequence: number): Promise<Pack> {
    const cacheKey = `${generation}\0${sequence}\0${projectId}`
    const pack = await this.#packs.get(cacheKey, async () => {
      const key = packKey(projectId, generation, sequence)
      const [value] = await this.#records.getMany([key])
      if (value === undefined) return this.#noPack(projectId, generation, sequence)
      return packOf(projectId, sequence, decodePackRecord(key, value))
    })
    // The owned objects are known only once the pack is applied; until then they are looked up each time.
    if (pack.record.owned === undefined) this.#packs.delete(cacheKey)
    return pack
  }

  tables(pack: Pack): Promise<PackTables> {
    return this.#tables.get(`${pack.record.packId}\0${pack.projectId}`, () => readTables(this.#blobs, pack))
  }

  clear(): void {
    this.#packs.clear()
    this.#tables.clear()
  }

  /**
   * The reason of a failed read. The sweep of a removed project takes its blobs while downloads still read them: that is
   * `not_found`, and not damage.
   */
  async reasonOf(error: unknown, project: Pick<ProjectView, 'projectId' | 'generation'>): Promise<unknown> {
    const isGone = isStorageError(error, 'BlobNotFoundError') && (await this.#isRemoved(project))
    return isGone ? removedWhileRead() : error
  }

  /** The items, with the reason of a failure as `reasonOf` finds it. */
  async *reading<T>(project: ProjectView, items: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* items
    } catch (error) {
      throw await this.reasonOf(error, project)
    }
  }

  async #noPack(projectId: string, generation: number, sequence: number): Promise<never> {
    if (await this.#isRemoved({ projectId, generation })) throw removedWhileRead()
    throw corrupt(`the record of pack ${sequence} is missing, though objects lie in it`)
  }

  async #isRemoved({ projectId, generation }: Pick<ProjectView, 'projectId' | 'generation'>): Promise<boolean> {
    const key = headKey(projectId)
    const [value] = await this.#records.getMany([key])
    const head = value === undefined ? undefined : decodeHead(key, value)
    return head !== undefined && (head.generation > generation || (head.generation === generation && head.removed))
  }
}

/** For who can do without a pack that is gone, or damaged: whoever needs it meets that. */
export function onlyIfDamaged(error: unknown): undefined {
  if (error instanceof StowageError && error.code === 'corrupt_data') return undefined
  throw error
}

function removedWhileRead(): StowageError {
  return new StowageError('not_found', 'the project was removed while it was read')
}

export function packOf(projectId: string, sequence: number, record: PackRecord): Pack {
  const source =
    record.inline === undefined ? { blob: packBlobName(projectId, record.packId) } : { bytes: record.inline }
  return { projectId, sequence, record, source }
}

export async function readTables(blobs: BlobStore, { record, source }: Pack): Promise<PackTables> {
  const bytes = await readSource(blobs, source, record.tablesStart, record.packBytes)
  const tables = decodeTables(bytes)
  if (tables.objects !== record.objects)
    throw corrupt('the tables of a pack and its record disagree on the number of objects')
  return tables
}

function tablesBytes(tables: PackTables): number {
  return tables.lineBytes.buffer.byteLength
}
