import type { BlobStore, Expectation, RecordStore } from '../../storage/backend.ts'
import { condemnedBlobEntry } from '../records/condemned-blobs.ts'
import { condemnedBlobKey, planBlobName } from '../records/keys.ts'
import type { StoredProject } from '../records/project-view.ts'
import { isRemoved, readHead } from '../records/projects.ts'
import { decodePlanRecord } from '../records/records.ts'
import type { LoadedPlan } from './planned-selection.ts'

export interface PlanRecordsParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  /** The store's own time. */
  readonly recentEpoch: () => Promise<number>
}

/** A plan's record as it is in storage, with the blob that it names. */
export interface PlanEntry {
  readonly key: Uint8Array
  readonly value: Uint8Array
  readonly blobName: string
}

/**
 * The records of plans, which several servers change. A blob that loses its record is condemned in the same commit, and
 * stays for a day: answers of other servers read on.
 */
export class PlanRecords {
  readonly #parts: PlanRecordsParts

  constructor(parts: PlanRecordsParts) {
    this.#parts = parts
  }

  async value(key: Uint8Array): Promise<Uint8Array | undefined> {
    const [value] = await this.#parts.records.getMany([key])
    return value
  }

  /**
   * Puts the record of a plan in the place of the one that was there before it was made. `false` if another server was
   * faster: then its plan counts, and the blob of this one is gone.
   */
  async put(projectId: string, { key, value, blobName }: PlanEntry, before: Uint8Array | undefined): Promise<boolean> {
    const { records, blobs, recentEpoch } = this.#parts
    const replaced = before === undefined ? undefined : blobNamedBy(projectId, key, before)
    const mark = replaced === undefined ? [] : [condemnedBlobEntry(projectId, replaced, await recentEpoch())]
    const { ok } = await records.commit({
      put: [{ key, value }, ...mark],
      expect: [
        { key, value: before },
        { key: condemnedBlobKey(projectId, blobName), value: undefined },
      ],
    })
    if (!ok) await blobs.remove([blobName])
    return ok
  }

  /** Takes a plan away, unless it was replaced meanwhile, and as long as `fence` holds. A damaged record names no blob. */
  async drop(
    projectId: string,
    { key, value, blobName }: Omit<PlanEntry, 'blobName'> & { readonly blobName: string | undefined },
    fence?: Expectation,
  ): Promise<void> {
    const { records, recentEpoch } = this.#parts
    await records.commit({
      put: blobName === undefined ? [] : [condemnedBlobEntry(projectId, blobName, await recentEpoch())],
      remove: [key],
      expect: [{ key, value }, ...(fence === undefined ? [] : [fence])],
    })
  }

  /** Whether the plan of this loaded one still counts. Looks now and then: its blob stays for a day after it is dropped. */
  async stillNames(plan: LoadedPlan, { projectId }: StoredProject, key: Uint8Array): Promise<boolean> {
    if (!('blob' in plan.source) || !plan.isDueForLook) return true
    const value = await this.value(key)
    if (value === undefined || blobNamedBy(projectId, key, value) !== plan.source.blob) return false
    plan.looked()
    return true
  }

  /** The sweep of a removed project may have been here before the plan was. Returns whether the project is gone. */
  async dropIfRemoved(project: StoredProject, { key, value, blobName }: PlanEntry): Promise<boolean> {
    const { records, blobs } = this.#parts
    const { head } = await readHead(records, project.projectId)
    if (!isRemoved(head, project.generation)) return false
    await records.commit({ remove: [key], expect: [{ key, value }] })
    await blobs.remove([blobName])
    return true
  }
}

/** `undefined` for a damaged record. */
function blobNamedBy(projectId: string, key: Uint8Array, value: Uint8Array): string | undefined {
  try {
    return planBlobName(projectId, decodePlanRecord(key, value).planId)
  } catch {
    return undefined
  }
}
