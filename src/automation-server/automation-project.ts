import { checkProjectId } from '../object/id.ts'
import type { CallOptions } from '../storage/backend.ts'
import type { Domain } from './domain/domain.ts'
import type {
  Automation, AutomationChange, LogLine, Model, NewAutomation, NewModel, NewModelVersion, ObjectResult, Page, PageRequest, ResultFilter, Run, RunDetails, RunFilter, Version,
} from './types.ts'

/** Automation of one project in process: everything that HTTP does, without HTTP and without access control. Throws `StowageError` as HTTP would answer it. */
export interface AutomationProject {
  readonly models: {
    create(model: NewModel): Promise<Model>
    get(modelId: string): Promise<Model>
    list(request?: PageRequest): Promise<Page<Model>>
  }
  readonly versions: {
    /** Rejects with `objects_missing` when the root is not held or something below it is missing. Starts the automations that wait for it. */
    create(modelId: string, version: NewModelVersion, options?: CallOptions): Promise<Version>
    get(modelId: string, versionId: string): Promise<Version>
    list(modelId: string, request?: PageRequest): Promise<Page<Version>>
  }
  readonly automations: {
    create(automation: NewAutomation): Promise<Automation>
    get(automationId: string): Promise<Automation>
    list(request?: PageRequest): Promise<Page<Automation>>
    change(automationId: string, change: AutomationChange): Promise<Automation>
    remove(automationId: string): Promise<void>
  }
  readonly runs: {
    /** On the latest version by default. */
    start(automationId: string, options?: { readonly versionId?: string }): Promise<Run>
    get(runId: string): Promise<RunDetails>
    list(filter?: RunFilter): Promise<Page<Run>>
    cancel(runId: string): Promise<Run>
    rerun(runId: string): Promise<Run>
    results(runId: string, filter?: ResultFilter): Promise<Page<ObjectResult>>
    logs(runId: string, request?: PageRequest): Promise<Page<LogLine>>
  }
}

/** Throws `invalid_id`. */
export function automationProject({ domain, ready }: { readonly domain: Domain; readonly ready: () => Promise<void> }, projectId: string): AutomationProject {
  checkProjectId(projectId)
  const { models, versions, automations, runs } = domain
  const opened = async <T>(work: () => Promise<T>): Promise<T> => {
    await ready()
    return work()
  }
  return {
    models: {
      create: (model) => opened(() => models.create(projectId, model)),
      get: (modelId) => opened(() => models.get(projectId, modelId)),
      list: (request) => opened(() => models.list(projectId, request)),
    },
    versions: {
      create: (modelId, version, options) => opened(() => domain.createVersion(projectId, modelId, version, { signal: options?.signal ?? new AbortController().signal })),
      get: (modelId, versionId) => opened(() => versions.get(projectId, modelId, versionId)),
      list: (modelId, request) => opened(() => versions.list(projectId, modelId, request)),
    },
    automations: {
      create: (automation) => opened(() => automations.create(projectId, automation)),
      get: (automationId) => opened(() => automations.get(projectId, automationId)),
      list: (request) => opened(() => automations.list(projectId, request)),
      change: (automationId, change) => opened(() => automations.change(projectId, automationId, change)),
      remove: (automationId) => opened(() => automations.remove(projectId, automationId)),
    },
    runs: {
      start: (automationId, options) => opened(() => runs.start(projectId, automationId, options?.versionId)),
      get: (runId) => opened(() => runs.get(projectId, runId)),
      list: (filter) => opened(() => runs.list(projectId, filter)),
      cancel: (runId) => opened(() => runs.cancel(projectId, runId)),
      rerun: (runId) => opened(() => runs.rerun(projectId, runId)),
      results: (runId, filter = {}) => opened(() => domain.listResults(projectId, runId, filter)),
      logs: (runId, request = {}) => opened(() => domain.listLogs(projectId, runId, request)),
    },
  }
}
