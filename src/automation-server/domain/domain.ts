import type { ServiceContext } from '../../service/extension.ts'
import type { StoreEpochs } from '../../object/epochs.ts'
import type { AutomationLimits, RunTimes } from './options.ts'
import { AutomationStore } from '../records/store.ts'
import type {
  Page,
  AnnotationFilter,
  PageRequest,
  LogLine,
  Annotation,
  Version,
  NewModelVersion,
} from '../schemas/types.ts'
import { Artifacts } from './artifacts.ts'
import { Automations } from './automations.ts'
import { Causes } from './causes.ts'
import { Deletion } from './deletion.ts'
import { checkPage } from '../schemas/checks.ts'
import { RemoteChanges } from './remote-changes.ts'
import type { FunctionRegistry } from './functions.ts'
import { Logs } from './logs.ts'
import { Models } from './models.ts'
import { Retention } from './retention.ts'
import { Reports } from './reports.ts'
import { Annotations } from './annotations.ts'
import { RunChanges } from './run-changes.ts'
import { RunSecrets } from './run-secrets.ts'
import { RunSignals } from './run-signals.ts'
import { RunTokens } from './run-tokens.ts'
import { Runs } from './runs.ts'
import type { SecretBox } from './secrets.ts'
import { Triggers } from './triggers.ts'
import { Versions } from './versions.ts'
import { WaitingRuns } from './waiting-runs.ts'

export interface DomainOptions extends Pick<
  ServiceContext<never>,
  'graphs' | 'pins' | 'emit' | 'clock' | 'environment' | 'newId' | 'logger'
> {
  readonly backend: NonNullable<ServiceContext<never>['backend']>
  readonly epochs: StoreEpochs
  readonly functions: FunctionRegistry
  readonly secrets: SecretBox
  readonly limits: AutomationLimits
  readonly times: RunTimes
  /** Called when there may be a run to start. */
  readonly onPending: () => void
}

/** Everything that automation knows and does, but for running functions and for HTTP. */
export class Domain {
  readonly options: DomainOptions
  readonly store: AutomationStore
  readonly signals: RunSignals = new RunSignals()
  readonly remoteChanges: RemoteChanges
  readonly models: Models
  readonly versions: Versions
  readonly deletion: Deletion
  readonly retention: Retention
  readonly automations: Automations
  readonly changes: RunChanges
  readonly runs: Runs
  readonly reports: Reports
  readonly annotations: Annotations
  readonly logs: Logs
  readonly artifacts: Artifacts
  readonly triggers: Triggers
  readonly tokens: RunTokens
  readonly runSecrets: RunSecrets

  constructor(options: DomainOptions) {
    this.options = options
    const store = new AutomationStore(options.backend, options)
    const parts = { ...options, store, signals: this.signals }
    this.store = store
    this.remoteChanges = new RemoteChanges(parts)
    this.models = new Models(parts)
    this.versions = new Versions({ ...parts, models: this.models })
    this.deletion = new Deletion({ ...parts, models: this.models, versions: this.versions })
    this.retention = new Retention({ ...parts, models: this.models, deletion: this.deletion })
    this.automations = new Automations({ ...parts, models: this.models })
    this.changes = new RunChanges(parts)
    const waiting = new WaitingRuns({ ...parts, changes: this.changes })
    this.tokens = new RunTokens(store, options.environment)
    this.runs = new Runs({
      ...parts,
      tokens: this.tokens,
      models: this.models,
      versions: this.versions,
      automations: this.automations,
      changes: this.changes,
      waiting,
      causes: new Causes(store, options.limits),
    })
    this.annotations = new Annotations(store, options.limits)
    this.logs = new Logs(store, options.limits.logBytesMax)
    this.reports = new Reports({ ...parts, changes: this.changes, annotations: this.annotations, logs: this.logs })
    this.artifacts = new Artifacts({ ...parts, changes: this.changes })
    this.triggers = new Triggers({ ...parts, models: this.models, automations: this.automations, runs: this.runs })
    this.runSecrets = new RunSecrets({ secrets: options.secrets, changes: this.changes, runs: this.runs })
  }

  /**
   * Creates a version and starts the automations that wait for it. If that start fails, the version is created all the
   * same: the sweep retries it.
   */
  async createVersion(
    projectId: string,
    modelId: string,
    wanted: NewModelVersion,
    options: Parameters<Versions['create']>[3],
  ): Promise<Version> {
    const version = await this.versions.create(projectId, modelId, wanted, options)
    if (options.run !== undefined) this.signals.changed(options.run.runId)
    await this.triggers.runVersion(projectId, { modelId, versionId: version.id }).catch((error: unknown) => {
      this.options.logger?.error({ err: error }, 'automations on a new version could not be started; it is tried again')
    })
    return version
  }

  /** Throws `not_found`. */
  async listAnnotations(projectId: string, runId: string, filter: AnnotationFilter): Promise<Page<Annotation>> {
    checkPage(filter)
    const { scope, stored } = await this.changes.found(projectId, runId)
    return this.annotations.list(scope, stored.value, filter)
  }

  /** Throws `not_found`. */
  async listLogs(projectId: string, runId: string, request: PageRequest): Promise<Page<LogLine>> {
    checkPage(request)
    const { scope } = await this.changes.found(projectId, runId)
    return this.logs.list(scope, runId, request)
  }
}
