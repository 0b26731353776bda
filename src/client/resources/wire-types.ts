/* Generated from the shapes of the wire (`src/openapi/description/shape.ts`): run `npm run schemas`. */

/**
 * Which versions of a model are kept: those that one of the members keeps. The latest version,
 * versions with `kept`, and versions whose root is pinned are always kept. The server deletes the
 * others once a day.
 */
export interface RetentionRule {
  /** Keeps that many of the newest versions. */
  readonly keepLastCount?: number
  /** Keeps the last version of each day (UTC) for that many days. */
  readonly keepDailyDays?: number
  /** Keeps every version for that many days. */
  readonly keepAllDays?: number
}

/** A named series of versions. */
export interface Model {
  /** Names the model. */
  readonly id: string
  /** One line. */
  readonly name: string
  /** The time of creation. */
  readonly createdAt: string
  /** The number of versions. */
  readonly versionCount: number
  /** `null` before the first version. */
  readonly latestVersionId: string | null
  /** `null` if all versions are kept. */
  readonly retention: RetentionRule | null
  /** When it was deleted; `null` unless it is. It can be restored within the grace period of the server. */
  readonly deletedAt: string | null
}

/** Members that are left out stay as they are. */
export interface ModelChange {
  /** One line. */
  readonly name?: string
  /** `null` keeps all versions. */
  readonly retention?: RetentionRule | null
}

/** A version to create. Everything below its root must have been uploaded before. */
export interface NewModelVersion {
  /** The root of the graph that the version consists of. */
  readonly rootObjectId: string
  /** For people; it may have several lines. */
  readonly message: string
  /** What creates it, such as the name of an application. */
  readonly source?: string | null
}

/** A state of a model: the graph below one object. */
export interface Version {
  /** Names the version. */
  readonly id: string
  /** The model that the version belongs to. */
  readonly modelId: string
  /** The root of the graph that the version consists of. */
  readonly rootObjectId: string
  /** For people; it may have several lines. */
  readonly message: string
  /** What created it, such as the name of an application; `null` if unknown. */
  readonly source: string | null
  /** The run that created it; `null` for versions that people and applications created. */
  readonly runId: string | null
  /** The time of creation. */
  readonly createdAt: string
  /** Whether no retention rule deletes it. */
  readonly kept: boolean
  /** When it was deleted; `null` unless it is. It can be restored within the grace period of the server. */
  readonly deletedAt: string | null
}

/** Which versions to delete: those that the rule does not keep; that of the model by default. */
export interface PruneRequest {
  /** `true` lists the versions that would be deleted, and deletes nothing. */
  readonly dryRun?: boolean
  /** The rule to apply; that of the model by default. */
  readonly retention?: RetentionRule
}

/** Versions that were deleted, or would be. */
export interface PruneResult {
  /** Whether nothing was deleted. */
  readonly dryRun: boolean
  /** The versions, the newest first. */
  readonly versions: readonly Version[]
  /** Whether more are to be deleted than one call does. */
  readonly hasMore: boolean
}

/**
 * Statuses rank `pending` 0, `initializing` 1, `running` 2, `succeeded` and `failed` 3, `canceled` 4,
 * `exception` and `timeout` 5. Only a higher rank may follow, and from rank 3 on a run has ended.
 * `failed` is a finding of the function; `exception` is an unexpected error.
 */
export type RunStatus =
  | 'pending'
  | 'initializing'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'canceled'
  | 'exception'
  | 'timeout'

/** A version that the run created. `projectId` is present if it is not the project of the run. */
export interface CreatedVersion {
  /** The project of the version, if it is not the project of the run. */
  readonly projectId?: string
  /** The model of the version. */
  readonly modelId: string
  /** The version. */
  readonly versionId: string
}

/** A file that the run stored. */
export interface RunArtifact {
  /** Names the artifact. */
  readonly id: string
  /** The name of the file. */
  readonly name: string
  /** The size of the file. */
  readonly sizeBytes: number
}

/** The number of annotations of each level. */
export interface AnnotationCounts {
  /** Annotations that confirm something. */
  readonly SUCCESS: number
  /** Annotations that inform. */
  readonly INFO: number
  /** Annotations that warn. */
  readonly WARNING: number
  /** Annotations that report errors. */
  readonly ERROR: number
}

/** The progress of a run. `null` if the function reported none. */
export interface RunProgress {
  /** The share that is done, from 0 to 1. */
  readonly fraction: number
  /** The current step. */
  readonly message: string | null
}

/** The cause of a run. */
export interface RunCause {
  /** `external`: a person runs the function on a machine of their own, and it reports here. */
  readonly kind: 'version' | 'manual' | 'rerun' | 'external'
  /** With `rerun`: the run that was repeated. */
  readonly runId: string | null
}

/** One run of an automation, as lists show it. */
export interface Run {
  /** Names the run. */
  readonly id: string
  /** The automation that the run belongs to. */
  readonly automationId: string
  /** The function that runs. */
  readonly functionId: string
  /** The version of the function that runs; `null` while no server with the function has claimed the run. */
  readonly functionVersion: string | null
  /** The model that the function runs on. */
  readonly modelId: string
  /** The version that the function runs on. */
  readonly versionId: string
  /** The current status. */
  readonly status: RunStatus
  /** The message of the function, or of the server, about the status. */
  readonly message: string | null
  /** The progress that the function reported last; `null` if it reported none. */
  readonly progress: RunProgress | null
  /** The versions that the run created. */
  readonly createdVersions: readonly CreatedVersion[]
  /** The files that the run stored. */
  readonly artifacts: readonly RunArtifact[]
  /** The number of annotations of each level. */
  readonly annotations: AnnotationCounts
  /** The cause of the run. */
  readonly triggeredBy: RunCause
  /** Whether log lines were left out because the run had reached the limit for them. */
  readonly logsTruncated: boolean
  /** The parts that are gone, since a retention time of the server has passed for them. */
  readonly expired: readonly ('annotations' | 'logs' | 'artifacts')[]
  /** The time of creation. */
  readonly createdAt: string
  /** `null` until a server claims the run. */
  readonly startedAt: string | null
  /** `null` until the run ends. */
  readonly endedAt: string | null
}

/** A pin to create. */
export interface NewPin {
  /** The object that is kept, with everything below it. */
  readonly rootObjectId: string
  /** `null` for none. */
  readonly name?: string | null
  /** `null` for none. */
  readonly reason?: string | null
  /** From then on the pin keeps nothing; `null` for a pin without an end. */
  readonly endsAt?: string | null
  /**
   * How long the pin keeps the object, from its creation on by the clock of the server. If `endsAt` is
   * given too, the earlier end counts.
   */
  readonly lifetimeMs?: number
}

/** Keeps an object and everything below it. */
export interface Pin {
  /** Names the pin. */
  readonly id: string
  /** The object that is kept, with everything below it. */
  readonly rootObjectId: string
  /** `null` for none. */
  readonly name: string | null
  /** `null` for none. */
  readonly reason: string | null
  /** The time of creation. */
  readonly createdAt: string
  /** From then on the pin keeps nothing; `null` for a pin without an end. */
  readonly endsAt: string | null
}

/**
 * The usage of all versions of a model; `own` counts objects that no other model and no pin holds.
 * Deleted versions count until they are removed.
 */
export interface ModelUsage {
  /** The model. */
  readonly modelId: string
  /** The number of versions. */
  readonly versions: number
  /** Objects that can be reached from here. */
  readonly objects: number
  /** Their bytes of JSON. */
  readonly jsonBytes: number
  /** Objects that can be reached from here alone. */
  readonly ownObjects: number
  /** Their bytes of JSON. */
  readonly ownJsonBytes: number
}

/** The usage of one version or pin; `own` counts objects that no other version and no pin holds. */
export interface RootUsage {
  /** `version` or `pin`. */
  readonly kind: string
  /** Names the version or the pin. */
  readonly id: string
  /** The model of a version; `null` for a pin. */
  readonly modelId: string | null
  /** The root of the graph that it consists of. */
  readonly rootObjectId: string
  /** Objects that can be reached from here. */
  readonly objects: number
  /** Their bytes of JSON. */
  readonly jsonBytes: number
  /** Objects that can be reached from here alone. */
  readonly ownObjects: number
  /** Their bytes of JSON. */
  readonly ownJsonBytes: number
}

/**
 * What a project holds. Unreferenced objects are those that no version and no pin leads to. The
 * storage also holds files of runs and records, which are not counted here.
 */
export interface ProjectUsage {
  /** All objects of the project. */
  readonly objects: number
  /** Their bytes of JSON. */
  readonly jsonBytes: number
  /** Bytes of its packs in storage, compressed. */
  readonly storedBytes: number
  /** Bytes of packs that a merge replaced, and that stay in storage for a day. */
  readonly retiredBytes: number
  /**
   * Bytes of its plans in storage, which make downloads fast, with those that were replaced and stay for
   * a day.
   */
  readonly planBytes: number
  /** Objects that no version and no pin leads to. */
  readonly unreferencedObjects: number
  /** Their bytes of JSON. */
  readonly unreferencedJsonBytes: number
  /** The usage of each model. */
  readonly models: readonly ModelUsage[]
  /** The usage of each version and pin. */
  readonly roots: readonly RootUsage[]
}
