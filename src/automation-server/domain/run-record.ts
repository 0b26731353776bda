import { type AnnotationLevel, RUN_STATUS_RANK, type RunStatus } from '../../automation/author/run-data.ts'
import type { AllowedProjects } from './allowed-projects.ts'
import type { Run } from '../schemas/types.ts'

/** A run as it is kept. Everything that changes while it runs is here, so that a change of it is one compare-and-set. */
export interface RunRecord extends Run {
  /** The automations that led here, this run's own last. */
  readonly chain: readonly string[]
  /** The version or the run at the beginning: what somebody did. */
  readonly causeId: string
  readonly reach: AllowedProjects
  /** How often it was taken up by a queue. A token names the one it was made for, so that what was given up as lost is not listened to any more. */
  readonly attempt: number
  /** Until when whoever runs it has to be heard from; `null` before it is taken up. */
  readonly leaseUntilMs: number | null
  /** When it must have ended; `null` before it is taken up. */
  readonly deadlineMs: number | null
  /** Goes up with every change. */
  readonly revision: number
  /** Of the last report that was taken. */
  readonly sequence: number
  /** Records that hold what the function handed over at its end. */
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

/** Whether nobody has taken it up yet. One that was taken up and lost is pending, too, and waits no more: what it may still take is bounded by its deadline. */
export function isWaiting({ status, attempt }: Pick<RunRecord, 'status' | 'attempt'>): boolean {
  return status === 'pending' && attempt === 0
}

export const NO_ANNOTATIONS: { readonly [L in AnnotationLevel]: number } = { SUCCESS: 0, INFO: 0, WARNING: 0, ERROR: 0 }

/** What everybody may see of a run. */
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
  const { triggeredBy, logsTruncated, createdAt, startedAt, endedAt } = record
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
    createdAt,
    startedAt,
    endedAt,
  }
}
