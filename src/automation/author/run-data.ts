import type { JsonObject } from './json.ts'
import type { RunStatus } from '../../client/resources/wire-types.ts'

export type { JsonObject, JsonValue } from './json.ts'
export type { Annotation, AnnotationLevel, LogLevel, LogLine, RunReport } from './wire-types.ts'
export type { RunStatus } from '../../client/resources/wire-types.ts'

/** The rank of each status of a run. Only a strictly higher rank may follow, so the first of two final reports wins. */
export const RUN_STATUS_RANK: { readonly [S in RunStatus]: number } = {
  pending: 0,
  initializing: 1,
  running: 2,
  succeeded: 3,
  failed: 3,
  canceled: 4,
  exception: 5,
  timeout: 5,
}

/** The final statuses that a function itself can set. */
export type FinalRunStatus = 'succeeded' | 'failed' | 'exception'

/** That a new version of a model started the run. */
export interface VersionTrigger {
  /** The kind of the trigger. */
  readonly triggerType: 'versionCreation'
  /** The version that the run is about. */
  readonly payload: { readonly modelId: string; readonly versionId: string }
}

/** The model, the version and the ids of a run. */
export interface AutomationRunData {
  /** The project of the run. */
  readonly projectId: string
  /** The base URL of the server's paths, with the prefix under which Stowage is mounted. */
  readonly speckleServerUrl: string
  /** The automation. */
  readonly automationId: string
  /** The run. */
  readonly automationRunId: string
  /** The run, by the name that reports use. */
  readonly functionRunId: string
  /** The versions that the run is about: exactly one. */
  readonly triggers: readonly VersionTrigger[]
}

/** The file with which a runner starts a function. It holds a token: mode 0600. */
export interface RunFile {
  /** The token of the run, with which the function reports. */
  readonly speckleToken: string
  /** The inputs as they were given; `null` if there are none. */
  readonly functionInputs: JsonObject | null
  /** The data of the run. */
  readonly automationRunData: AutomationRunData
}

/** Whether a run may change from one status to the other. */
export function canTransition(from: RunStatus, to: RunStatus): boolean {
  return RUN_STATUS_RANK[to] > RUN_STATUS_RANK[from]
}
