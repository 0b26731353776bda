/** Where a run is; see `RUN_STATUS_RANK` for what may follow what. */
export type RunStatus =
  | 'pending'
  | 'initializing'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'canceled'
  | 'exception'
  | 'timeout'

/** Where a run can be. Only a strictly higher rank follows, so that of two final reports the first holds. */
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

/** What a function itself can say in the end. */
export type FinalRunStatus = 'succeeded' | 'failed' | 'exception'

/** What a result says of the objects that it names. */
export type ResultLevel = 'SUCCESS' | 'INFO' | 'WARNING' | 'ERROR'

/** Anything that JSON can say (RFC 8259). */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [name: string]: JsonValue }

/** A JSON object. */
export interface JsonObject {
  readonly [name: string]: JsonValue
}

/** An annotation: what a function says about objects of the model. */
export interface ObjectResult {
  /** Groups annotations that belong together, such as the name of a rule. */
  readonly category: string
  readonly level: ResultLevel
  /** The application's id of each object by the object's id, `null` where it has none. */
  readonly objectAppIds: { readonly [objectId: string]: string | null }
  readonly message: string | null
  readonly metadata: JsonObject | null
}

/** That a new version of a model started the run. */
export interface VersionTrigger {
  readonly triggerType: 'versionCreation'
  readonly payload: { readonly modelId: string; readonly versionId: string }
}

/** What a run is about. */
export interface AutomationRunData {
  readonly projectId: string
  /** Where the server's paths begin, with the prefix under which Stowage is mounted. */
  readonly speckleServerUrl: string
  readonly automationId: string
  readonly automationRunId: string
  readonly functionRunId: string
  readonly triggers: readonly VersionTrigger[]
}

/** The file with which a runner starts a function. It holds a token: mode 0600. */
export interface RunFile {
  readonly speckleToken: string
  readonly functionInputs: JsonObject | null
  readonly automationRunData: AutomationRunData
}

/** How grave a line of a run's log is. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** One line of a run's log. */
export interface LogLine {
  readonly atMs: number
  readonly level: LogLevel
  readonly message: string
}

/** What a run tells the server, one report after the other. Parts that are absent say nothing. */
export interface RunReport {
  /** 1, 2, 3 ... within a run. One that was taken already is answered as delivered and changes nothing, so that a report can be sent again. */
  readonly sequence: number
  readonly status?: 'initializing' | 'running' | FinalRunStatus
  /** With a status. */
  readonly message?: string
  /** With a final status: what the function hands over, for people and programs that look at the run. */
  readonly result?: JsonObject
  /** Between 0 and 1. */
  readonly progress?: { readonly fraction: number; readonly message?: string }
  /** Added to those that were reported before. */
  readonly results?: readonly ObjectResult[]
  readonly logs?: readonly LogLine[]
}

/** Whether a run may go from one status to the other. */
export function mayFollow(from: RunStatus, to: RunStatus): boolean {
  return RUN_STATUS_RANK[to] > RUN_STATUS_RANK[from]
}
