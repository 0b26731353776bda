import type { Client } from '../../client/client.ts'
import type { RunReport, RunStatus } from '../author/run-data.ts'

/** The version that started the run, and the root of its objects. */
export interface TriggeringVersion {
  /** The model of the version. */
  readonly modelId: string
  /** The version. */
  readonly versionId: string
  /** The root of the graph that the version consists of. */
  readonly rootObjectId: string
  /** The message of the version. */
  readonly message: string
}

/** A version that a run wants to create. */
export interface NewVersion {
  /** The project of the model. */
  readonly projectId: string
  /** The model that gets the version. */
  readonly modelId: string
  /** The root of the graph that the version consists of. */
  readonly rootObjectId: string
  /** The message for people. */
  readonly message: string
  /** Names the call: a repetition with the same key is answered with the version that exists already. */
  readonly idempotencyKey: string
}

/** A file that a run wants to keep. */
export interface NewArtifact {
  /** The display name. */
  readonly name: string
  /** Can be iterated again when the call is repeated. */
  readonly content: AsyncIterable<Uint8Array>
  /** The size of the content, in bytes. */
  readonly sizeBytes: number
  /** Names the call: a repetition with the same key is answered with the artifact that exists already. */
  readonly idempotencyKey: string
}

/** Options of every call. */
export interface SignalOptions {
  /** Aborts the call, which then rejects with the reason of the signal. */
  readonly signal?: AbortSignal
}

/** The answer that a run receives when it asks for its own status. */
export interface RunLease {
  /** The status of the run on the server. */
  readonly status: RunStatus
  /** Somebody asked for the run to end. */
  readonly canceled: boolean
}

/**
 * The place that a run reports to: the service's own stores in the same process, or a server over HTTP. Calls may be
 * repeated after a failure: each takes effect once. Throws `StowageError`, or `ClientError` if it asks a server; both
 * have `code` and `isRetryable`, which says whether a repetition can help.
 */
export interface RunBackend {
  /** Authenticated for the run's project, and nothing else. */
  readonly client: Client
  /** The version that triggered the run. */
  triggeringVersion(options?: SignalOptions): Promise<TriggeringVersion>
  /** Resolves when the report is stored. Throws `conflict` for a status that may not follow the one the run has. */
  report(report: RunReport, options?: SignalOptions): Promise<void>
  /** Resolves to the version's id. Throws `objects_missing` if the root is not held or its closure is incomplete. */
  createVersion(version: NewVersion, options?: SignalOptions): Promise<string>
  /** Streams; resolves to the artifact's id. Throws `artifact_too_large`. */
  storeArtifact(artifact: NewArtifact, options?: SignalOptions): Promise<string>
  /**
   * Called at intervals while the function runs, so that it learns of a cancellation. Our own server holds the lease
   * itself while it looks after the run. For other backends the call is the sign of life that distinguishes a slow run
   * from a lost one.
   */
  renewLease?(options?: SignalOptions): Promise<RunLease>
}
