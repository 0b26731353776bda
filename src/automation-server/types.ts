import type { InputsSchema } from '../automation/inputs/schema.ts'
import type { JsonObject, LogLine, ObjectResult, ResultLevel, RunStatus } from '../automation/run-data.ts'

/* What the server tells of its resources, over HTTP and in process alike. Times are ISO 8601 in UTC, ids are 32 hex digits that sort by age. */

/** A part of a list, and where the next one begins; `null` at the end. A part may be short, or empty, before the end. */
export interface Page<T> {
  readonly items: readonly T[]
  readonly cursor: string | null
}

/** Which part of a list. */
export interface PageRequest {
  /** From 1 to 1,000; 100 by default. */
  readonly limit?: number
  /** As a page gave it. */
  readonly cursor?: string
}

/** A named line of versions. */
export interface Model {
  readonly id: string
  readonly name: string
  readonly createdAt: string
  readonly versionCount: number
  readonly latestVersionId: string | null
}

/** A state of a model: the graph below one object. */
export interface Version {
  readonly id: string
  readonly modelId: string
  readonly rootObjectId: string
  readonly message: string
  /** What made it, such as the name of an application; `null` where nobody said. */
  readonly source: string | null
  /** The run that made it; `null` for versions that people and applications made. */
  readonly runId: string | null
  readonly createdAt: string
}

/** What can be run. Its code is never named over HTTP: it is registered in process, or by the operator. */
export interface FunctionView {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly release: string
  /** Changes with the release and with the inputs: hex digits of a digest of both. */
  readonly version: string
  readonly inputs: InputsSchema
}

/** `version`: every new version of the model starts it, and it can be started by hand. `manual`: only by hand. */
export type AutomationTrigger = 'version' | 'manual'

/** A function that runs on the versions of a model, with inputs. */
export interface Automation {
  readonly id: string
  readonly name: string
  readonly functionId: string
  readonly modelId: string
  /** Secrets are `******`. */
  readonly inputs: JsonObject
  readonly trigger: AutomationTrigger
  readonly enabled: boolean
  readonly createdAt: string
  readonly updatedAt: string
}

/** What started a run. */
export interface RunCause {
  readonly kind: 'version' | 'manual' | 'rerun'
  /** The run that was run again. */
  readonly runId: string | null
}

/** A file that a run stored. */
export interface RunArtifact {
  readonly id: string
  readonly name: string
  readonly sizeBytes: number
}

/** One run of an automation, as lists show it. */
export interface Run {
  readonly id: string
  readonly automationId: string
  readonly functionId: string
  /** `null` for a run that waits for a server that has the function. */
  readonly functionVersion: string | null
  readonly modelId: string
  readonly versionId: string
  readonly status: RunStatus
  readonly message: string | null
  readonly progress: { readonly fraction: number; readonly message: string | null } | null
  readonly createdVersions: readonly { readonly modelId: string; readonly versionId: string }[]
  readonly artifacts: readonly RunArtifact[]
  /** How many annotations there are of each level. */
  readonly annotations: { readonly [L in ResultLevel]: number }
  readonly triggeredBy: RunCause
  /** Whether log lines were left out because the run had reached the limit for them. */
  readonly logsTruncated: boolean
  readonly createdAt: string
  readonly startedAt: string | null
  readonly endedAt: string | null
}

/** A run that was asked for by its id. */
export interface RunDetails extends Run {
  /** What the function handed over with its mark; `null` where it handed over nothing. */
  readonly result: JsonObject | null
}

/** Which runs, and which part of them. */
export interface RunFilter extends PageRequest {
  readonly automationId?: string
  readonly modelId?: string
  readonly versionId?: string
  readonly status?: RunStatus
}

/** Which annotations of a run, and which part of them. */
export interface ResultFilter extends PageRequest {
  readonly level?: ResultLevel
  readonly category?: string
  readonly objectId?: string
}

export type { LogLine, ObjectResult }

/** A model to create. */
export interface NewModel {
  readonly name: string
}

/** A version to create. */
export interface NewModelVersion {
  readonly rootObjectId: string
  readonly message: string
  readonly source?: string | null
}

/** An automation to create. */
export interface NewAutomation {
  readonly name: string
  readonly functionId: string
  readonly modelId: string
  readonly inputs: JsonObject
  readonly trigger: AutomationTrigger
  /** `true` by default. */
  readonly enabled?: boolean
}

/** A secret that is given as `******` stays what it is. */
export type AutomationChange = Partial<Pick<NewAutomation, 'name' | 'inputs' | 'trigger' | 'enabled'>>
