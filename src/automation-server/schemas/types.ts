import type { AnnotationLevel } from '../../automation/author/wire-types.ts'
import type { PageRequest } from '../../client/resources/types.ts'

export type { Annotation, LogLine } from '../../automation/author/wire-types.ts'
export type { DeletableFilter, Page, PageRequest, RunFilter } from '../../client/resources/types.ts'
export type {
  AnnotationCounts,
  CreatedVersion,
  Model,
  ModelChange,
  ModelUsage,
  NewModelVersion,
  NewPin,
  Pin,
  ProjectUsage,
  PruneRequest,
  PruneResult,
  RetentionRule,
  RootUsage,
  Run,
  RunArtifact,
  RunCause,
  RunProgress,
  Version,
} from '../../client/resources/wire-types.ts'
export type { UnreferencedObject } from '../../object/upkeep-wire-types.ts'
export type {
  Automation,
  AutomationChange,
  AutomationTrigger,
  RunCauseCount,
  FunctionInfo,
  NewAutomation,
  NewModel,
  RunDetails,
  VersionChange,
} from './wire-types.ts'

/** Which annotations of a run, and which part of them. */
export interface AnnotationFilter extends PageRequest {
  /** Only annotations of this level. */
  readonly level?: AnnotationLevel
  /** Only annotations of this category. */
  readonly category?: string
  /** Only annotations of this object. */
  readonly objectId?: string
}
