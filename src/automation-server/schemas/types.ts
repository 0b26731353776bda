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
  readonly automationId?: string
  readonly modelId?: string
  readonly versionId?: string
  readonly status?: RunStatus
}

/** Which annotations of a run, and which part of them. */
export interface AnnotationFilter extends PageRequest {
  readonly level?: AnnotationLevel
  readonly category?: string
  readonly objectId?: string
}
