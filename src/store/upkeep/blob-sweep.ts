import type { Environment } from '../../environment.ts'
import type { StoreEpochs } from '../../object/epochs.ts'
import type { BlobStore, Entry, RecordStore } from '../../storage/backend.ts'
import { condemnedBlobEntry } from '../records/condemned-blobs.ts'
import {
  condemnedBlobKey,
  isOfExtension,
  keyBounds,
  keyParts,
  packBlobName,
  planBlobName,
  projectFolder,
} from '../records/keys.ts'
import { decodePackRecord } from '../records/pack-record.ts'
import { decodeCondemnedBlob, decodePlanRecord, encodeCondemnedBlob } from '../records/records.ts'
import { isTombstone } from './tombstone.ts'

/** Longer than any download, and than any upload takes from its blob to its commit. */
const BLOB_GRACE_MS = 24 * 60 * 60_000
/** A server condemns a blob that it has seen without a name for so long. */
const UNNAMED_MS = 60 * 60_000
const UNNAMED_MAX = 10_000
/** Marks that are dealt with together. */
const MARKS_AT_ONCE = 24

export interface BlobSweepParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly epochs: StoreEpochs
  readonly environment: Pick<Environment, 'monotonicMs'>
  /** Removes the records of packs that were merged, as far as their blobs are due. */
  readonly dropRetired: (
    projectId: string,
    isDue: (blobName: string) => boolean,
    signal: AbortSignal,
  ) => Promise<unknown>
}

interface Mark extends Entry {
  readonly blobName: string
  readonly isRemoved: boolean
}

/**
 * Removes blobs that nothing needs any more: of uploads that never were committed, replaced or evicted plans, and packs
 * that were merged. A blob is marked first, and removed when its mark has stood for a day of the store's own time and
 * still no record names it. No record can come to name it meanwhile: the commits of packs and plans expect that their
 * blobs are not marked. The mark outlives the blob by another day, for a server that slept through all of it.
 */
export class BlobSweep {
  readonly #parts: BlobSweepParts
  readonly #graceEpochs: number
  /** Blobs that no record named, and when this server first saw that. */
  #unnamedSince = new Map<string, number>()
  #listedAtMs = -Infinity

  constructor(parts: BlobSweepParts) {
    this.#parts = parts
    // A mark may be as old as the epoch in which it was made.
    this.#graceEpochs = Math.ceil(BLOB_GRACE_MS / parts.epochs.epochMs) + 1
  }

  /** Removes the blobs whose marks are old enough. */
  async removeCondemned(signal: AbortSignal): Promise<void> {
    const { number: epoch } = await this.#parts.epochs.current()
    const due = new Map<string, Mark[]>()
    for await (const entries of this.#parts.records.range(keyBounds('condemnedBlob'), { signal })) {
      for (const { key, value } of entries) {
        const { epoch: since, isRemoved } = decodeCondemnedBlob(key, value)
        if (since + this.#graceEpochs > epoch) continue
        const [projectId, file] = keyParts(key)
        const mark = { key, value, isRemoved, blobName: `${projectFolder(projectId)}/${file}` }
        due.set(projectId, [...(due.get(projectId) ?? []), mark])
      }
    }
    for (const [projectId, marks] of due) {
      await this.#removeMarks(
        marks.filter(({ isRemoved }) => isRemoved),
        signal,
      )
      await this.#removeBlobs(
        projectId,
        marks.filter(({ isRemoved }) => !isRemoved),
        epoch,
        signal,
      )
    }
  }

  /**
   * Condemns blobs that no record names. Only for projects that have a record: if the records were lost, `reindex` needs
   * every blob. Lists the storage once an hour; returns whether it did.
   */
  async condemnUnnamed(signal: AbortSignal): Promise<boolean> {
    const { blobs, environment, epochs } = this.#parts
    const nowMs = environment.monotonicMs()
    if (nowMs - this.#listedAtMs < UNNAMED_MS) return false
    this.#listedAtMs = nowMs
    const unnamed = new Set<string>()
    for await (const batch of blobs.list('', { signal }))
      for (const { name } of batch) if (!isTombstone(name) && !isOfExtension(name)) unnamed.add(name)
    const projects = await this.#projectsByFolder(signal)
    for (const name of await this.#named(undefined, signal)) unnamed.delete(name)
    const before = this.#unnamedSince
    this.#unnamedSince = new Map()
    const old: Entry[] = []
    const { number: epoch } = await epochs.current()
    for (const name of unnamed) {
      const projectId = projects.get(name.split('/')[0])
      if (projectId === undefined || this.#unnamedSince.size === UNNAMED_MAX) continue
      const sinceMs = before.get(name) ?? nowMs
      if (nowMs - sinceMs >= UNNAMED_MS) old.push(condemnedBlobEntry(projectId, name, epoch))
      else this.#unnamedSince.set(name, sinceMs)
    }
    // A blob that is marked already keeps its mark.
    if (old.length > 0) await this.#parts.records.insertMany(old)
    return true
  }

  async #projectsByFolder(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const projects = new Map<string, string>()
    for await (const entries of this.#parts.records.range(keyBounds('head'), { signal })) {
      for (const { key } of entries) {
        const [projectId] = keyParts(key)
        projects.set(projectFolder(projectId), projectId)
      }
    }
    return projects
  }

  /** Blobs that the records of packs and plans name. Throws for a damaged one: which blob it names is not known. */
  async #named(projectId: string | undefined, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const { records } = this.#parts
    const named = new Set<string>()
    for await (const entries of records.range(keyBounds('pack', projectId), { signal })) {
      for (const { key, value } of entries)
        named.add(packBlobName(keyParts(key)[0], decodePackRecord(key, value).packId))
    }
    for await (const entries of records.range(keyBounds('plan', projectId), { signal })) {
      for (const { key, value } of entries)
        named.add(planBlobName(keyParts(key)[0], decodePlanRecord(key, value).planId))
    }
    return named
  }

  async #removeBlobs(projectId: string, marks: readonly Mark[], epoch: number, signal: AbortSignal): Promise<void> {
    if (marks.length === 0) return
    const due = new Set(marks.map(({ blobName }) => blobName))
    await this.#parts.dropRetired(projectId, (blobName) => due.has(blobName), signal)
    const named = await this.#named(projectId, signal)
    // What a record still names waits for another sweep.
    const free = marks.filter(({ blobName }) => !named.has(blobName))
    for (let i = 0; i < free.length; i += MARKS_AT_ONCE) {
      signal.throwIfAborted()
      const some = free.slice(i, i + MARKS_AT_ONCE)
      await this.#parts.blobs.remove(some.map(({ blobName }) => blobName))
      const put = some.map(({ blobName }) => {
        const key = condemnedBlobKey(projectId, blobName)
        return { key, value: encodeCondemnedBlob(key, { epoch, isRemoved: true }) }
      })
      await this.#parts.records.commit({ put, expect: some.map(({ key, value }) => ({ key, value })) })
    }
  }

  async #removeMarks(marks: readonly Mark[], signal: AbortSignal): Promise<void> {
    for (let i = 0; i < marks.length; i += MARKS_AT_ONCE) {
      signal.throwIfAborted()
      const some = marks.slice(i, i + MARKS_AT_ONCE)
      await this.#parts.records.commit({
        remove: some.map(({ key }) => key),
        expect: some.map(({ key, value }) => ({ key, value })),
      })
    }
  }
}
