import type { RunStatus } from './wire-types.ts'
export type {
  ChosenReport as RemoteChosenReport,
  CollectedAmount as RemoteCollectedAmount,
  CollectionProgress as RemoteCollectionProgress,
  CollectionReport as RemoteCollectionReport,
  CollectObjectsRequest,
  CollectRequest,
  CompactionProgress as RemoteCompactionProgress,
  CompactionReport as RemoteCompactionReport,
  DamagedPack as RemoteDamagedPack,
  CompactRequest,
  ObjectAmount as RemoteObjectAmount,
  UnreferencedObject as RemoteUnreferencedObject,
} from '../../object/upkeep-wire-types.ts'

/* What a server tells of models, versions and runs. Times are ISO 8601 in UTC, ids are 32 hex digits that sort by age. */

export type {
  Model as RemoteModel,
  ModelChange as RemoteModelChange,
  NewModelVersion as NewRemoteVersion,
  NewPin as NewRemotePin,
  Pin as RemotePin,
  ProjectUsage as RemoteUsage,
  PruneRequest,
  PruneResult,
  RetentionRule as RemoteRetentionRule,
  Run as RemoteRun,
  RunStatus as RemoteRunStatus,
  Version as RemoteVersion,
} from './wire-types.ts'

/**
 * A part of a list, and the start of the next one; `null` at the end. A part may be short, or empty, before the end.
 */
export interface Page<T> {
  /** The items of this part. */
  readonly items: readonly T[]
  /** The cursor of the next part; `null` at the end. */
  readonly cursor: string | null
}

/** Which part of a list. */
export interface PageRequest {
  /** From 1 to 1,000; 100 by default. */
  readonly limit?: number
  /** Where to continue: the `cursor` of the page before. */
  readonly cursor?: string
}

/** Which models or versions, and which part of them. */
export interface DeletableFilter extends PageRequest {
  /** Whether deleted ones are in the list too. */
  readonly deleted?: boolean
}

/** Which runs, and which part of them. */
export interface RunFilter extends PageRequest {
  /** Only runs of this automation. */
  readonly automationId?: string
  /** Only runs on versions of this model. */
  readonly modelId?: string
  /** Only runs on this version. */
  readonly versionId?: string
  /** Only runs with this status. */
  readonly status?: RunStatus
}
