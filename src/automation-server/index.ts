/// <reference types="node" preserve="true" />

export { automation, type AutomationExtension, type AutomationOptions } from './automation.ts'
export type {
  AutomationProject,
  ProjectAutomations,
  ProjectModels,
  ProjectRuns,
  ProjectVersions,
} from './automation-project.ts'
export type { FunctionDefinition } from './domain/functions.ts'
export type { CommandOptions } from './executors/command.ts'
export { readCommandSchema } from './executors/command-schema.ts'
export type { CommandFunction, InProcessFunction, RegisteredAs } from './executors/definitions.ts'
export { secretKeyFromFolder } from './secret-key-file.ts'
export type { SecretKey } from './domain/secrets.ts'
export type { RunExecutor, RunHandle, RunStart, StopReason } from './executor.ts'
export { type AutomationLimits, DEFAULT_AUTOMATION_LIMITS, DEFAULT_RUN_TIMES, type RunTimes } from './options.ts'
export type {
  Automation,
  AutomationChange,
  AutomationTrigger,
  FunctionView,
  Model,
  NewAutomation,
  NewModel,
  NewModelVersion,
  Page,
  PageRequest,
  ResultFilter,
  Run,
  RunArtifact,
  RunCause,
  RunDetails,
  RunFilter,
  Version,
} from './types.ts'
