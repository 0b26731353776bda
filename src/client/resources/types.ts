/* What a server tells of models, versions and runs. Times are ISO 8601 in UTC, ids are 32 hex digits that sort by age. */

/** A part of a list, and where the next one begins; `null` at the end. A part may be short, or empty, before the end. */
export interface RemotePage<T> {
  /** The items of this part. */
  readonly items: readonly T[]
  /** The cursor of the next part; `null` at the end. */
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
  /** The new name. */
  readonly name?: string
  /** `null` keeps all versions. */
  readonly retention?: RemoteRetentionRule | null
}

/** A named line of versions. */
export interface RemoteModel {
  /** Names the model. */
  readonly id: string
  /** The name, for people. */
  readonly name: string
  /** The time of creation, in ISO 8601. */
  readonly createdAt: string
  /** The number of versions. */
  readonly versionCount: number
  /** The latest version; `null` before the first one. */
  readonly latestVersionId: string | null
  /** `null` if all versions are kept. */
  readonly retention: RemoteRetentionRule | null
  /** `null` unless it is deleted. */
  readonly deletedAt: string | null
}

/** A state of a model: the graph below one object. */
export interface RemoteVersion {
  /** Names the version. */
  readonly id: string
  /** The model that the version belongs to. */
  readonly modelId: string
  /** The root of the graph that the version consists of. */
  readonly rootObjectId: string
  /** What changed, for people. */
  readonly message: string
  /** What made it, such as the name of an application; `null` where nobody said. */
  readonly source: string | null
  /** The run that made it; `null` for versions that people and applications made. */
  readonly runId: string | null
  /** The time of creation, in ISO 8601. */
  readonly createdAt: string
  /** Whether no retention rule deletes it. */
  readonly kept: boolean
  /** `null` unless it is deleted. */
  readonly deletedAt: string | null
}

/** A version to create. */
export interface NewRemoteVersion {
  /** The root of the graph that the version consists of. */
  readonly rootObjectId: string
  /** What changed, for people. */
  readonly message: string
  /** What creates it, such as the name of an application. */
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
  /** Names the run. */
  readonly id: string
  /** The automation that the run belongs to. */
  readonly automationId: string
  /** The function that runs. */
  readonly functionId: string
  /** `null` for a run that waits for a server that has the function. */
  readonly functionVersion: string | null
  /** The model that the function runs on. */
  readonly modelId: string
  /** The version that the function runs on. */
  readonly versionId: string
  /** The current status. */
  readonly status: RemoteRunStatus
  /** The message about the status. */
  readonly message: string | null
  /** The progress that the function reported last; `null` if it reported none. */
  readonly progress: { readonly fraction: number; readonly message: string | null } | null
  /** `projectId` is told where it is not the run's own. */
  readonly createdVersions: readonly {
    readonly projectId?: string
    readonly modelId: string
    readonly versionId: string
  }[]
  /** The files that the run stored. */
  readonly artifacts: readonly { readonly id: string; readonly name: string; readonly sizeBytes: number }[]
  /** How many annotations there are of each level. */
  readonly annotations: { readonly [L in 'SUCCESS' | 'INFO' | 'WARNING' | 'ERROR']: number }
  /** The cause of the run. */
  readonly triggeredBy: { readonly kind: 'version' | 'manual' | 'rerun' | 'external'; readonly runId: string | null }
  /** Whether log lines were left out because the run had reached the limit for them. */
  readonly logsTruncated: boolean
  /** The time of creation, in ISO 8601. */
  readonly createdAt: string
  /** The time at which a server claimed the run, in ISO 8601; `null` until then. */
  readonly startedAt: string | null
  /** The time of the end, in ISO 8601; `null` until the run ends. */
  readonly endedAt: string | null
}

/** Which runs, and which part of them. */
export interface RemoteRunFilter extends RemotePageRequest {
  /** Only runs of this automation. */
  readonly automationId?: string
  /** Only runs on versions of this model. */
  readonly modelId?: string
  /** Only runs on this version. */
  readonly versionId?: string
  /** Only runs with this status. */
  readonly status?: RemoteRunStatus
}
