import type { DeflatePool } from '../../compression/deflate-pool.ts'
import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import { type MemoryBudget, type MemoryLease } from '../../memory/memory-budget.ts'
import type { ObjectBatch } from '../../object/batch.ts'
import { DIFFERING_IDS_MAX, type ObjectWriter, type PutOptions, type PutResult } from '../../object/graph-store.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import { Admission } from './admission.ts'
import type { CommittedPack } from '../records/committed-pack.ts'
import type { Committer } from './committer.ts'
import type { QuotaReservation, Quotas } from './quotas.ts'
import { readTotals } from '../records/totals.ts'
import { packBlobName } from '../records/keys.ts'
import { unreferencedOrdinals } from '../pack/unreferenced.ts'
import { tableEntry } from '../pack/pack-format.ts'
import { PackWriter, UPLOAD_BASE_BYTES } from './pack-writer.ts'
import { storePack } from '../pack/store-pack.ts'
import { readHead, writingGeneration } from '../records/projects.ts'
import { newPackRecord, type PackRecord } from '../records/pack-record.ts'

/** After these the commit was not made. */
const REFUSED: ReadonlySet<string> = new Set(['project_removed', 'quota_exceeded'])

export interface IngestParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly committer: Committer
  readonly quotas: Quotas | undefined
  readonly deflate: DeflatePool
  readonly budget: MemoryBudget
  readonly newId: () => string
  readonly nowMs: () => number
  /** The store's own time. */
  readonly recentEpoch: () => Promise<number>
  readonly environment: Environment
  /**
   * Called after the commit with the only object of the pack that no other in it refers to: the root of a model,
   * perhaps.
   */
  readonly onRoot: (projectId: string, rootId: string) => void
  /** Called when a pack was committed and could not be applied. */
  readonly onUnapplied: (pack: CommittedPack) => void
}

/** Takes uploads in: pack, commit, apply. */
export class Ingest implements ObjectWriter {
  readonly #parts: IngestParts

  constructor(parts: IngestParts) {
    this.#parts = parts
  }

  async put(projectId: string, batches: AsyncIterable<ObjectBatch>, options: PutOptions): Promise<PutResult> {
    const { signal, memory } = options
    if (memory !== undefined) return this.#within(projectId, batches, { ...options, memory })
    const own = this.#parts.budget.open({ signal, party: { principal: '', projectId } })
    try {
      await own.hold(UPLOAD_BASE_BYTES)
      return await this.#within(projectId, batches, { ...options, memory: own })
    } finally {
      own.release()
    }
  }

  /** Reserves before the first batch is asked for, and settles when the upload is committed or has failed. */
  async #within(
    projectId: string,
    batches: AsyncIterable<ObjectBatch>,
    options: PutOptions & { readonly memory: MemoryLease },
  ): Promise<PutResult> {
    const { records, quotas } = this.#parts
    const quota = await quotas?.reserve(projectId, options.bodyBytes ?? 0, async () => {
      const { head } = await readHead(records, projectId, options.signal)
      const generation = writingGeneration(head)
      return (await readTotals(this.#parts, { projectId, generation })).totals
    })
    try {
      return await this.#put(projectId, batches, { ...options, quota })
    } finally {
      quota?.settle()
    }
  }

  async #put(
    projectId: string,
    batches: AsyncIterable<ObjectBatch>,
    options: PutOptions & { readonly memory: MemoryLease; readonly quota: QuotaReservation | undefined },
  ): Promise<PutResult> {
    const { memory, quota, signal } = options
    const { records, deflate, committer, newId, nowMs, environment, recentEpoch } = this.#parts
    const { head } = await readHead(records, projectId, signal)
    const generation = writingGeneration(head)
    const packId = newId()
    const admission = new Admission(records, { projectId, generation, head }, environment)
    const writer = new PackWriter(
      { projectId, generation, packId, timeMs: nowMs() },
      { deflate, admission, memory, quota, environment },
    )
    const inline = await storePack(
      this.#parts.blobs,
      packBlobName(projectId, packId),
      writer.content(batches, signal),
      signal,
    )
    const { objects } = admission
    if (writer.objects === 0)
      return { objects, inserted: 0, differing: admission.differing, differingIds: admission.differingIds }
    const { tables, tablesStart } = writer.finished
    const { packBytes } = writer
    const epoch = await recentEpoch()
    const record = newPackRecord({
      packId,
      objects: tables.objects,
      packBytes,
      tablesStart,
      epoch,
      content: inline ?? 'blob',
    })
    await this.#abandonUnlessLive(projectId, record, signal)
    const pack = await committer
      .commit(projectId, generation, record, { tables, quota })
      .catch((error: unknown) => this.#notCommitted(projectId, record, error))
    const applied = await committer.apply(pack, tables).catch((error: unknown) => {
      this.#parts.onUnapplied(pack)
      throw error
    })
    const unreferenced = unreferencedOrdinals(tables)
    if (unreferenced.length === 1)
      this.#parts.onRoot(projectId, Buffer.from(tableEntry(tables.ids, unreferenced[0])).toString('utf8'))
    const differingIds = [...admission.differingIds, ...applied.differingIds].slice(0, DIFFERING_IDS_MAX)
    return {
      objects,
      inserted: applied.record.owned?.count ?? 0,
      differing: admission.differing + applied.differing,
      differingIds,
    }
  }

  async #abandonUnlessLive(projectId: string, record: PackRecord, signal: AbortSignal): Promise<void> {
    if (!signal.aborted) return
    await this.#removeBlob(projectId, record)
    throw signal.reason
  }

  /**
   * Only a refused commit is certainly none: after any other failure the blob stays, since the record may name it. The
   * sweep decides later.
   */
  async #notCommitted(projectId: string, record: PackRecord, error: unknown): Promise<never> {
    if (error instanceof StowageError && REFUSED.has(error.code)) await this.#removeBlob(projectId, record)
    throw error
  }

  async #removeBlob(projectId: string, { content, packId }: PackRecord): Promise<void> {
    if (content === 'blob') await this.#parts.blobs.remove([packBlobName(projectId, packId)])
  }
}
