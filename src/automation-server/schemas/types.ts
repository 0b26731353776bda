import type { AnnotationLevel, RunStatus } from '../../automation/author/wire-types.ts'
import type { PageRequest } from './page.ts'

export type { Annotation, LogLine } from '../../automation/author/wire-types.ts'
export type { Page, PageRequest } from './page.ts'
export type {
  AnnotationCounts,
  Automation,
  AutomationChange,
  AutomationTrigger,
  RunCauseCount,
  CreatedVersion,
  FunctionInfo,
  Model,
  ModelChange,
  NewAutomation,
  NewModel,
  NewModelVersion,
  Run,
  RunArtifact,
  RunCause,
  RunDetails,
  RunProgress,
  RetentionRule,
  Version,
  VersionChange,
} from './wire-types.ts'

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

/** Which annotations of a run, and which part of them. */
export interface AnnotationFilter extends PageRequest {
  /** Only annotations of this level. */
  readonly level?: AnnotationLevel
  /** Only annotations of this category. */
  readonly category?: string
  /** Only annotations of this object. */
  readonly objectId?: string
}
