import { StowageError } from '../../errors.ts'
import type { ProjectQuota, ProjectTotals } from '../../object/graph-store.ts'
import { addTotals, NO_TOTALS } from '../records/totals.ts'

/** The quota of a project; `undefined` for none. */
export type QuotaOf = (projectId: string) => ProjectQuota | undefined | Promise<ProjectQuota | undefined>

const MEASURES = [
  ['objects', 'objectsMax', 'objects'],
  ['jsonBytes', 'jsonBytesMax', 'bytes of JSON'],
  ['storedBytes', 'storedBytesMax', 'bytes in storage'],
] as const

/** The rest that one upload may add. */
export interface QuotaReservation {
  /**
   * Throws `quota_exceeded` if a project that holds `held` must not grow by so much. Without `held`: as it was when the
   * upload began.
   */
  check(added: Partial<ProjectTotals>, held?: ProjectTotals): void
  /** The upload has ended: its reservation is free, or committed. */
  settle(): void
}

/**
 * Bounds what projects hold. An upload whose length is known reserves it before it is read, so that of many at a time
 * no more begin than can end. The commit of each pack checks the totals that it is about to write, so that the quota
 * also holds where several servers share one storage.
 */
export class Quotas {
  readonly #quotaOf: QuotaOf
  /** Bytes of bodies under way, by project. */
  readonly #reserved = new Map<string, number>()

  constructor(quotaOf: QuotaOf) {
    this.#quotaOf = quotaOf
  }

  /**
   * Throws `quota_exceeded` for an upload that cannot fit, and `overloaded` for one that may fit once others have
   * ended.
   */
  async reserve(
    projectId: string,
    bodyBytes: number,
    totalsOf: () => Promise<ProjectTotals>,
  ): Promise<QuotaReservation | undefined> {
    const quota = await this.#quotaOf(projectId)
    if (quota === undefined) return undefined
    const atBegin = await totalsOf()
    for (const [measure, bound, words] of MEASURES) {
      const max = quota[bound]
      if (max !== undefined && atBegin[measure] >= max) throw exceeded(words, max, `and holds ${atBegin[measure]}`)
    }
    const max = quota.jsonBytesMax ?? Number.POSITIVE_INFINITY
    const reserved = this.#reserved.get(projectId) ?? 0
    if (atBegin.jsonBytes + bodyBytes > max)
      throw exceeded('bytes of JSON', max, `and holds ${atBegin.jsonBytes}; this upload has ${bodyBytes}`)
    if (atBegin.jsonBytes + reserved + bodyBytes > max)
      throw new StowageError(
        'overloaded',
        'other uploads in progress may use up the quota of this project; try again shortly',
        { headers: { 'Retry-After': '1' } },
      )
    this.#reserved.set(projectId, reserved + bodyBytes)
    return {
      check: (added, held = atBegin) => checkQuota(quota, addTotals(held, { ...NO_TOTALS, ...added })),
      settle: () => this.#settle(projectId, bodyBytes),
    }
  }

  #settle(projectId: string, bodyBytes: number): void {
    const left = (this.#reserved.get(projectId) ?? 0) - bodyBytes
    if (left > 0) this.#reserved.set(projectId, left)
    else this.#reserved.delete(projectId)
  }
}

function checkQuota(quota: ProjectQuota, totals: ProjectTotals): void {
  for (const [measure, bound, words] of MEASURES) {
    const max = quota[bound]
    if (max !== undefined && totals[measure] > max)
      throw exceeded(words, max, `and would hold ${totals[measure]} with this upload`)
  }
}

function exceeded(words: string, max: number, why: string): StowageError {
  return new StowageError(
    'quota_exceeded',
    `the project may hold at most ${max} ${words}, ${why}; nothing of this upload was stored`,
  )
}
