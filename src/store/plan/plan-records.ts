import { pauseBeforeRetry } from '../../async/backoff.ts'
import type { Environment } from '../../environment.ts'
import type { BlobStore, Expectation, RecordStore } from '../../storage/backend.ts'
import { condemnedBlobEntry } from '../records/condemned-blobs.ts'
import { condemnedBlobKey, planBlobName } from '../records/keys.ts'
import type { StoredProject } from '../records/project-view.ts'
import { isRemoved, readHead } from '../records/projects.ts'
import { decodePlanRecord } from '../records/records.ts'
import type { LoadedPlan } from './planned-selection.ts'

/** Uploads to the project, each of which changes its record, may come between so often. */
const TRIES_MAX = 20

export interface PlanRecordsParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly environment: Environment
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
   * Puts the record of a plan in the place of the one that was there before it was made. `late` if another server was
   * faster: then its plan counts. Unless it is `put`, its blob is gone. The commit expects the project's record: behind
   * the sweep of a removed project nobody would find the plan.
   */
  async put(
    project: StoredProject,
    { key, value, blobName }: PlanEntry,
    before: Uint8Array | undefined,
  ): Promise<'put' | 'late' | 'removed'> {
    const { records, blobs, environment, recentEpoch } = this.#parts
    const { projectId, generation } = project
    const replaced = before === undefined ? undefined : blobNamedBy(projectId, key, before)
    const mark = replaced === undefined ? [] : [condemnedBlobEntry(projectId, replaced, await recentEpoch())]
    const mine = [
      { key, value: before },
      { key: condemnedBlobKey(projectId, blobName), value: undefined },
    ]
    for (let tries = 1; ; tries++) {
      const { key: headKey, bytes, head } = await readHead(records, projectId)
      if (isRemoved(head, generation)) {
        await blobs.remove([blobName])
        return 'removed'
      }
      const outcome = await records.commit({
        put: [{ key, value }, ...mark],
        expect: [...mine, { key: headKey, value: bytes }],
      })
      if (outcome.ok) return 'put'
      if (tries === TRIES_MAX || !(await this.#areThere(mine))) {
        await blobs.remove([blobName])
        return 'late'
      }
      await pauseBeforeRetry(tries, environment)
    }
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

  async #areThere(expected: readonly Expectation[]): Promise<boolean> {
    const values = await this.#parts.records.getMany(expected.map(({ key }) => key))
    return expected.every(({ value }, i) => {
      const found = values[i]
      return value === undefined || found === undefined ? value === found : Buffer.compare(value, found) === 0
    })
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
