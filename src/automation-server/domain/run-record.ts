import { type AnnotationLevel, RUN_STATUS_RANK, type RunStatus } from '../../automation/author/run-data.ts'
import type { AllowedProjects } from './allowed-projects.ts'
import type { Run } from '../schemas/types.ts'

/**
 * A run as it is kept. Everything that changes while it runs is here, so that a change of it is one compare-and-set.
 */
export interface RunRecord extends Run {
  /** The automations that led here, this run's own last. */
  readonly chain: readonly string[]
  /** The version or the run at the beginning: the act of a person. */
  readonly causeId: string
  readonly reach: AllowedProjects
  /**
   * How often a queue started it. A token names the attempt that it was made for, so that an attempt that was given up
   * is no longer accepted.
   */
  readonly attempt: number
  /**
   * The lease of its runner, which raises this number again and again; `null` before it starts and after its end. A
   * server that has seen the same number for the length of a lease takes the runner for dead.
   */
  readonly leaseBeat: number | null
  /** The epoch of the store in which it was made. */
  readonly createdEpoch: number
  /** Goes up with every change. */
  readonly revision: number
  /** Of the last report that was taken. */
  readonly sequence: number
  /** The number of records that hold the function's result. */
  readonly finalParts: number
  readonly annotationBatches: number
  readonly annotationObjects: number
  readonly annotationBytes: number
  readonly logLines: number
  readonly logBytes: number
}

const FINAL_RANK = RUN_STATUS_RANK.succeeded

export function isFinal(status: RunStatus): boolean {
  return RUN_STATUS_RANK[status] >= FINAL_RANK
}

/** Whether it may be started, perhaps once more: its last attempt, if any, reported nothing. */
export function mayStart(
  { status, attempt, sequence }: Pick<RunRecord, 'status' | 'attempt' | 'sequence'>,
  attemptsMax: number,
): boolean {
  return status === 'pending' && sequence === 0 && attempt < attemptsMax
}

/**
 * Whether nothing has started it yet. A run that was started and lost is pending, too, but no longer waits: its
 * deadline bounds what it may still take.
 */
export function isWaiting({ status, attempt }: Pick<RunRecord, 'status' | 'attempt'>): boolean {
  return status === 'pending' && attempt === 0
}

export const NO_ANNOTATIONS: { readonly [L in AnnotationLevel]: number } = { SUCCESS: 0, INFO: 0, WARNING: 0, ERROR: 0 }

/** The public view of a run. */
export function runView(record: RunRecord): Run {
  const {
    id,
    automationId,
    functionId,
    functionVersion,
    modelId,
    versionId,
    status,
    message,
    progress,
    createdVersions,
    artifacts,
    annotations,
  } = record
  const { triggeredBy, logsTruncated, expired, createdAt, startedAt, endedAt } = record
  return {
    id,
    automationId,
    functionId,
    functionVersion,
    modelId,
    versionId,
    status,
    message,
    progress,
    createdVersions,
    artifacts,
    annotations,
    triggeredBy,
    logsTruncated,
    expired,
    createdAt,
    startedAt,
    endedAt,
  }
}
