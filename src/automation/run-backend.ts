import type { Client } from '../client/client.ts'
import type { RunReport } from './run-data.ts'

/** The version that started the run, and the root of its objects. */
export interface TriggeringVersion {
  readonly modelId: string
  readonly versionId: string
  readonly rootObjectId: string
  readonly message: string
}

/** A version that a run wants to create. */
export interface NewVersion {
  readonly projectId: string
  readonly modelId: string
  readonly rootObjectId: string
  readonly message: string
}

/** A file that a run wants to keep. */
export interface NewArtifact {
  /** The display name. */
  readonly name: string
  readonly content: AsyncIterable<Uint8Array>
  readonly sizeBytes: number
}

/** What every call can be told. */
export interface SignalOptions {
  readonly signal?: AbortSignal
}

/**
 * Where a run reports: the service's own stores in the same process, or a server over HTTP. Calls may be repeated after a failure: each takes
 * effect once. Throws `StowageError`; `retryable` says whether a repetition can help.
 */
export interface RunBackend {
  /** Authenticated for the run's project, and nothing else. */
  readonly client: Client
  /** The version that triggered the run. */
  triggeringVersion(options?: SignalOptions): Promise<TriggeringVersion>
  /** Resolves when the report is stored. Throws `conflict` for a status that may not follow the one the run has. */
  report(report: RunReport, options?: SignalOptions): Promise<void>
  /** Resolves to the version's id. Throws where the root is not held or its closure is incomplete. */
  createVersion(version: NewVersion, options?: SignalOptions): Promise<string>
  /** Streams; resolves to the artifact's id. Throws `artifact_too_large`. */
  storeArtifact(artifact: NewArtifact, options?: SignalOptions): Promise<string>
}
