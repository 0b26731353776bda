import { checkProjectId } from '../object/id.ts'
import type { CallOptions } from '../storage/backend.ts'
import type { Domain } from './domain/domain.ts'
import type { StartOptions } from './domain/runs.ts'
import type {
  Automation,
  AutomationChange,
  DeletableFilter,
  LogLine,
  Model,
  ModelChange,
  NewAutomation,
  NewModel,
  NewModelVersion,
  Annotation,
  Page,
  PageRequest,
  PruneRequest,
  PruneResult,
  AnnotationFilter,
  Run,
  RunDetails,
  RunFilter,
  Version,
  VersionChange,
} from './schemas/types.ts'

/** The models of a project. */
export interface ProjectModels {
  /** Names need not be unique. */
  create(model: NewModel): Promise<Model>
  /** Rejects with `not_found`. */
  get(modelId: string): Promise<Model>
  /** The oldest first. */
  list(request?: DeletableFilter): Promise<Page<Model>>
  /** Rejects with `not_found`, and with `conflict` for a deleted one. */
  change(modelId: string, change: ModelChange): Promise<Model>
  /**
   * It leaves lists and its automations start no more; it can be restored within the grace (`deletionGraceMs`). Rejects
   * with `not_found`.
   */
  delete(modelId: string): Promise<Model>
  /** Rejects with `not_found`, also after the grace. */
  restore(modelId: string): Promise<Model>
  /**
   * Deletes the versions that the retention rule does not keep, at most 1,000. Rejects with `not_found`, and with
   * `conflict` without a rule.
   */
  prune(modelId: string, request?: PruneRequest): Promise<PruneResult>
}

/** The versions of the models of a project. */
export interface ProjectVersions {
  /**
   * Rejects with `objects_missing` when the root is not held or something below it is missing. Starts the automations
   * that wait for it.
   */
  create(modelId: string, version: NewModelVersion, options?: CallOptions): Promise<Version>
  /** Rejects with `not_found`. */
  get(modelId: string, versionId: string): Promise<Version>
  /** The newest first. Rejects with `not_found` for a model that there is not. */
  list(modelId: string, request?: DeletableFilter): Promise<Page<Version>>
  /** Rejects with `not_found`. */
  change(modelId: string, versionId: string, change: VersionChange): Promise<Version>
  /**
   * It leaves lists; it can be restored within the grace (`deletionGraceMs`). Rejects with `not_found`, and with
   * `conflict` while its model is deleted.
   */
  delete(modelId: string, versionId: string): Promise<Version>
  /** Rejects as `delete`, and with `not_found` after the grace. */
  restore(modelId: string, versionId: string): Promise<Version>
}

/** The automations of a project. Secrets among their inputs are shown as `******`. */
export interface ProjectAutomations {
  /**
   * Rejects with `not_found` if the function or the model does not exist, with `InputsError` for inputs that the
   * function does not accept, and with `not_supported` for secrets without a key.
   */
  create(automation: NewAutomation): Promise<Automation>
  /** Rejects with `not_found`. */
  get(automationId: string): Promise<Automation>
  /** The oldest first. */
  list(request?: PageRequest): Promise<Page<Automation>>
  /** Runs that exist keep the inputs that they were made with. Rejects as `create`. */
  change(automationId: string, change: AutomationChange): Promise<Automation>
  /** Its runs stay. Rejects with `not_found`. */
  remove(automationId: string): Promise<void>
}

/** The runs of a project. */
export interface ProjectRuns {
  /**
   * On the latest version by default. Rejects with `not_found`, and with `conflict` if the model has no version yet.
   */
  start(automationId: string, options?: StartOptions): Promise<Run>
  /** Rejects with `not_found`. */
  get(runId: string): Promise<RunDetails>
  /** The newest first. */
  list(filter?: RunFilter): Promise<Page<Run>>
  /** Of a canceled run nothing is taken any more. Rejects with `conflict` for one that has ended. */
  cancel(runId: string): Promise<Run>
  /**
   * The same function on the same version with the same inputs, as a new run. Rejects with `conflict` while the run has
   * not ended.
   */
  rerun(runId: string, options?: Pick<StartOptions, 'startedBy'>): Promise<Run>
  /** Annotations, in the order in which they were reported. */
  annotations(runId: string, filter?: AnnotationFilter): Promise<Page<Annotation>>
  /** Log lines, in the order of their arrival. */
  logs(runId: string, request?: PageRequest): Promise<Page<LogLine>>
}

/**
 * Automation of one project in process: everything that HTTP does, without HTTP and without access control. Throws
 * `StowageError` as HTTP would answer it.
 */
export interface AutomationProject {
  /** Models of the project. */
  readonly models: ProjectModels
  /** Versions of the models. */
  readonly versions: ProjectVersions
  /** Automations of the project. */
  readonly automations: ProjectAutomations
  /** Runs of the project. */
  readonly runs: ProjectRuns
}

/** Throws `invalid_id`. */
export function automationProject(
  { domain, ready }: { readonly domain: Domain; readonly ready: () => Promise<void> },
  projectId: string,
): AutomationProject {
  checkProjectId(projectId)
  const { models, versions, deletion, retention, automations, runs } = domain
  const opened = async <T>(work: () => Promise<T>): Promise<T> => {
    await ready()
    return work()
  }
  return {
    models: {
      create: (model) => opened(() => models.create(projectId, model)),
      get: (modelId) => opened(() => models.get(projectId, modelId)),
      list: (request) => opened(() => models.list(projectId, request)),
      change: (modelId, change) => opened(() => models.change(projectId, modelId, change)),
      delete: (modelId) => opened(() => deletion.deleteModel(projectId, modelId)),
      restore: (modelId) => opened(() => deletion.restoreModel(projectId, modelId)),
      prune: (modelId, request) => opened(() => retention.prune(projectId, modelId, request)),
    },
    versions: {
      create: (modelId, version, options) =>
        opened(() =>
          domain.createVersion(projectId, modelId, version, {
            signal: options?.signal ?? new AbortController().signal,
          }),
        ),
      get: (modelId, versionId) => opened(() => versions.get(projectId, modelId, versionId)),
      list: (modelId, request) => opened(() => versions.list(projectId, modelId, request)),
      change: (modelId, versionId, change) => opened(() => versions.change(projectId, modelId, versionId, change)),
      delete: (modelId, versionId) => opened(() => deletion.deleteVersion(projectId, modelId, versionId)),
      restore: (modelId, versionId) => opened(() => deletion.restoreVersion(projectId, modelId, versionId)),
    },
    automations: {
      create: (automation) => opened(() => automations.create(projectId, automation)),
      get: (automationId) => opened(() => automations.get(projectId, automationId)),
      list: (request) => opened(() => automations.list(projectId, request)),
      change: (automationId, change) => opened(() => automations.change(projectId, automationId, change)),
      remove: (automationId) => opened(() => automations.remove(projectId, automationId)),
    },
    runs: {
      start: (automationId, options) => opened(() => runs.start(projectId, automationId, options)),
      get: (runId) => opened(() => runs.get(projectId, runId)),
      list: (filter) => opened(() => runs.list(projectId, filter)),
      cancel: (runId) => opened(() => runs.cancel(projectId, runId)),
      rerun: (runId, options) => opened(() => runs.rerun(projectId, runId, options)),
      annotations: (runId, filter = {}) => opened(() => domain.listAnnotations(projectId, runId, filter)),
      logs: (runId, request = {}) => opened(() => domain.listLogs(projectId, runId, request)),
    },
  }
}
