/// <reference types="node" preserve="true" />

/**
 * Models, versions, automations and runs on a service.
 *
 * @module stowage/automation/server
 *
 * @example
 * import { createObjectService, openAccess } from 'stowage'
 * import { defineFunction, defineInputs, number } from 'stowage/automation'
 * import { automation } from 'stowage/automation/server'
 * import { memoryBackend } from 'stowage/memory'
 *
 * class Inputs extends defineInputs({ heightMax: number() }) {}
 * const checker = defineFunction((context) => context.markRunSuccess('done'), Inputs)
 *
 * const automations = automation({ functions: [{ id: 'height-checker', release: '1.0.0', function: checker }] })
 * const service = createObjectService({ backend: memoryBackend(), access: openAccess(), extensions: [automations] })
 * await service.ready()
 * const { id } = await automations.project('demo').models.create({ name: 'House' })
 * console.log(id)
 * await service.close()
 */

export { automation, type AutomationExtension, type AutomationOptions } from './automation.ts'
export type {
  AutomationProject,
  ProjectAutomations,
  ProjectModels,
  ProjectRuns,
  ProjectVersions,
} from './automation-project.ts'
export type { FunctionDefinition } from './domain/functions.ts'
export type { StartOptions } from './domain/runs.ts'
export type { CommandOptions } from './runner/executors/command.ts'
export { readCommandSchema } from './runner/executors/command-schema.ts'
export type { IsolationOptions, IsolationStatus } from './runner/executors/isolation/command-runner.ts'
export type { CommandFunction, InProcessFunction, FunctionRegistration } from './runner/executors/definitions.ts'
export { storedSecretKeys } from './secret-keys.ts'
export type { SecretKey, SecretKeySource } from './domain/secrets.ts'
export type { RunExecutor, RunHandle, RunStart, StopReason } from './domain/executor.ts'
export { type AutomationLimits, DEFAULT_AUTOMATION_LIMITS, DEFAULT_RUN_TIMES, type RunTimes } from './domain/options.ts'
export type {
  Automation,
  AutomationChange,
  AutomationTrigger,
  RunCauseCount,
  CreatedVersion,
  DeletableFilter,
  FunctionInfo,
  Model,
  ModelChange,
  ModelUsage,
  NewAutomation,
  NewModel,
  NewModelVersion,
  NewPin,
  Pin,
  ProjectUsage,
  PruneRequest,
  PruneResult,
  Page,
  PageRequest,
  AnnotationCounts,
  AnnotationFilter,
  Run,
  RunArtifact,
  RunCause,
  RunDetails,
  RunFilter,
  RetentionRule,
  RootUsage,
  RunProgress,
  Version,
  VersionChange,
} from './schemas/types.ts'
