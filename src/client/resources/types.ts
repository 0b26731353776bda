/* What a server tells of models, versions and runs. Times are ISO 8601 in UTC, ids are 32 hex digits that sort by age. */

/** A part of a list, and where the next one begins; `null` at the end. A part may be short, or empty, before the end. */
export interface RemotePage<T> {
  readonly items: readonly T[]
  readonly cursor: string | null
}

/** Which part of a list. */
export interface RemotePageRequest {
  /** From 1 to 1,000; 100 by default. */
  readonly limit?: number
  /** As a page gave it. */
  readonly cursor?: string
}

/** Which models or versions, and which part of them. */
export interface RemoteDeletableFilter extends RemotePageRequest {
  /** Whether deleted ones are in the list too. */
  readonly deleted?: boolean
}

/** Which versions of a model are kept: those that one of the members keeps. */
export interface RemoteRetentionRule {
  /** Keeps that many of the newest versions. */
  readonly keepLastCount?: number
  /** Keeps the last version of each day (UTC) for that many days. */
  readonly keepDailyDays?: number
  /** Keeps every version for that many days. */
  readonly keepAllDays?: number
}

/** Changes of a model; members that are left out stay as they are. */
export interface RemoteModelChange {
  readonly name?: string
  /** `null` keeps all versions. */
  readonly retention?: RemoteRetentionRule | null
}

/** A named line of versions. */
export interface RemoteModel {
  readonly id: string
  readonly name: string
  readonly createdAt: string
  readonly versionCount: number
  readonly latestVersionId: string | null
  /** `null` if all versions are kept. */
  readonly retention: RemoteRetentionRule | null
  /** `null` unless it is deleted. */
  readonly deletedAt: string | null
}

/** A state of a model: the graph below one object. */
export interface RemoteVersion {
  readonly id: string
  readonly modelId: string
  readonly rootObjectId: string
  readonly message: string
  /** What made it, such as the name of an application; `null` where nobody said. */
  readonly source: string | null
  /** The run that made it; `null` for versions that people and applications made. */
  readonly runId: string | null
  readonly createdAt: string
  /** Whether no retention rule deletes it. */
  readonly kept: boolean
  /** `null` unless it is deleted. */
  readonly deletedAt: string | null
}

/** A version to create. */
export interface NewRemoteVersion {
  readonly rootObjectId: string
  readonly message: string
  readonly source?: string | null
}

/** Where a run is. */
export type RemoteRunStatus =
  | 'pending'
  | 'initializing'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'canceled'
  | 'exception'
  | 'timeout'

/** One run of an automation, as lists show it. */
export interface RemoteRun {
  readonly id: string
  readonly automationId: string
  readonly functionId: string
  /** `null` for a run that waits for a server that has the function. */
  readonly functionVersion: string | null
  readonly modelId: string
  readonly versionId: string
  readonly status: RemoteRunStatus
  readonly message: string | null
  readonly progress: { readonly fraction: number; readonly message: string | null } | null
  /** `projectId` is told where it is not the run's own. */
  readonly createdVersions: readonly {
    readonly projectId?: string
    readonly modelId: string
    readonly versionId: string
  }[]
  readonly artifacts: readonly { readonly id: string; readonly name: string; readonly sizeBytes: number }[]
  /** How many annotations there are of each level. */
  readonly annotations: { readonly [L in 'SUCCESS' | 'INFO' | 'WARNING' | 'ERROR']: number }
  readonly triggeredBy: { readonly kind: 'version' | 'manual' | 'rerun' | 'external'; readonly runId: string | null }
  /** Whether log lines were left out because the run had reached the limit for them. */
  readonly logsTruncated: boolean
  readonly createdAt: string
  readonly startedAt: string | null
  readonly endedAt: string | null
}

/** Which runs, and which part of them. */
export interface RemoteRunFilter extends RemotePageRequest {
  readonly automationId?: string
  readonly modelId?: string
  readonly versionId?: string
  readonly status?: RemoteRunStatus
}
