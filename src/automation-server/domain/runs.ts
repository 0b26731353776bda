import type { Principal } from '../../access/access.ts'
import { StowageError } from '../../errors.ts'
import type { StoreEpochs } from '../../object/epochs.ts'
import type { Entry, Expectation } from '../../storage/backend.ts'
import { projectKey } from '../records/keys.ts'
import { expectAbsent, type ProjectScope } from '../records/store.ts'
import type { Page, Run, RunCause, RunDetails, RunFilter } from '../schemas/types.ts'
import type { AutomationRecord, Automations } from './automations.ts'
import type { Causes } from './causes.ts'
import { checkPage, checkResourceId, notFoundError } from '../schemas/checks.ts'
import { listRuns, newestRunsOf } from './run-list.ts'
import { allowedProjectsOf, type AllowedProjects } from './allowed-projects.ts'
import { readFinalResult } from './final-result.ts'
import type { Models } from './models.ts'
import type { DomainParts } from './parts.ts'
import { activeKey, type RunChanges, waitingKey } from './run-changes.ts'
import { isFinal, isWaiting, NO_ANNOTATIONS, type RunRecord, runView } from './run-record.ts'
import type { RunTokens } from './run-tokens.ts'
import type { SealedInputs } from './secrets.ts'
import type { VersionRecord, Versions } from './versions.ts'
import type { WaitingMark, WaitingRuns } from './waiting-runs.ts'

/** External runs of one automation that go on at a time. */
const EXTERNAL_RUNS_MAX = 20

export interface RunsParts extends Pick<DomainParts, 'store' | 'functions' | 'signals' | 'limits' | 'times'> {
  readonly epochs: StoreEpochs
  readonly tokens: RunTokens
  readonly models: Models
  readonly versions: Versions
  readonly automations: Automations
  readonly changes: RunChanges
  readonly waiting: WaitingRuns
  readonly causes: Causes
  /** Called when there is a run to start. */
  readonly onPending: () => void
}

/** Options of a run that a person starts. */
export interface StartOptions {
  /** The latest by default. */
  readonly versionId?: string | undefined
  /** The person who starts it. The run may write where that person may, according to their claims. */
  readonly startedBy?: Principal | undefined
}

/** A run of a person on a machine of their own, and the token with which it reports. */
export interface ExternalRun {
  readonly run: Run
  readonly token: string
}

interface NewRun {
  readonly automation: Pick<AutomationRecord, 'id' | 'functionId'>
  readonly version: Pick<VersionRecord, 'id' | 'modelId' | 'chain' | 'causeId'>
  readonly inputs: SealedInputs
  readonly triggeredBy: RunCause
  readonly reach: AllowedProjects
}

/** The operations on runs from outside: making, reading, canceling and repeating them. */
export class Runs {
  readonly #parts: RunsParts

  constructor(parts: RunsParts) {
    this.#parts = parts
  }

  /**
   * By hand, on a version of the automation's model, the latest by default. Throws `not_found`, `conflict` if the model
   * has no version yet, `too_many_runs`.
   */
  async start(projectId: string, automationId: string, options: StartOptions = {}): Promise<Run> {
    const { scope, wanted } = await this.#asked(projectId, automationId, options)
    return this.#createAsked(scope, wanted)
  }

  /**
   * By hand, on a machine of the person's own: no server takes it up, and it is lost when nothing is heard of it for
   * the time of a lease. Throws as `start`, and `too_many_runs` where as many such runs of the automation go on as may.
   */
  async startExternal(projectId: string, automationId: string, options: StartOptions = {}): Promise<ExternalRun> {
    const { store, times, tokens, waiting } = this.#parts
    const { scope, wanted } = await this.#asked(projectId, automationId, options)
    return waiting.inTurn(automationId, async () => {
      if ((await this.#externalCount(scope, automationId)) >= EXTERNAL_RUNS_MAX)
        throw new StowageError(
          'too_many_runs',
          `this automation has ${EXTERNAL_RUNS_MAX} external runs, the limit; wait until some end, or cancel some`,
        )
      const record: RunRecord = {
        ...(await this.#newRecord(store.newId(), { ...wanted, triggeredBy: { kind: 'external', runId: null } })),
        functionVersion: null,
        status: 'initializing',
        startedAt: store.nowText(),
        attempt: 1,
        leaseBeat: 1,
      }
      const run = await this.#create(scope, record, wanted.inputs)
      const deadlineMs = store.clock.now() + times.runMsMax
      return { run, token: await tokens.issue({ projectId, runId: run.id, attempt: record.attempt }, deadlineMs) }
    })
  }

  async #asked(
    projectId: string,
    automationId: string,
    { versionId, startedBy }: StartOptions,
  ): Promise<{ readonly scope: ProjectScope; readonly wanted: NewRun }> {
    const { automations, functions, models, versions } = this.#parts
    const {
      scope,
      stored: { value: automation },
    } = await automations.found(projectId, automationId)
    functions.get(automation.functionId)
    const { latestVersionId } = await models.getLive(projectId, automation.modelId)
    const id = versionId ?? latestVersionId
    if (id === null)
      throw new StowageError('conflict', 'the model has no version yet; create one, then run the automation on it')
    const version = await versions.liveRecord(projectId, automation.modelId, id)
    const reach = allowedProjectsOf(automation.projects, startedBy)
    const triggeredBy = { kind: 'manual', runId: null } as const
    return { scope, wanted: { automation, version, inputs: sealedOf(automation), triggeredBy, reach } }
  }

  /** Among the newest runs: older ones have ended, or will by their deadline. */
  async #externalCount(scope: ProjectScope, automationId: string): Promise<number> {
    const newest = await newestRunsOf(this.#parts.store, scope, automationId)
    return newest.filter(({ triggeredBy, status }) => triggeredBy.kind === 'external' && !isFinal(status)).length
  }

  /**
   * The same function on the same version with the same inputs. Throws `not_found`, `conflict` while the run has not
   * ended, `too_many_runs`.
   */
  async rerun(projectId: string, runId: string, { startedBy }: Pick<StartOptions, 'startedBy'> = {}): Promise<Run> {
    const { automations, changes, versions, functions } = this.#parts
    const {
      scope,
      stored: { value: run },
    } = await changes.found(projectId, runId)
    if (!isFinal(run.status))
      throw new StowageError(
        'conflict',
        `the run is ${run.status}; cancel it, or wait for its end, before it is run again`,
      )
    functions.get(run.functionId)
    const version = await versions.liveRecord(projectId, run.modelId, run.versionId)
    const automation = { id: run.automationId, functionId: run.functionId }
    return this.#createAsked(scope, {
      automation,
      version,
      inputs: await this.inputs(scope, runId),
      triggeredBy: { kind: 'rerun', runId },
      reach: allowedProjectsOf(await automations.projectsOf(scope, run.automationId), startedBy),
    })
  }

  /**
   * Because of a new version. The same automation and version make one run, however often they are requested. If the
   * queue is full, the oldest run gives way. No run is made if the cause has reached its bound.
   */
  async trigger(
    scope: ProjectScope,
    runId: string,
    automation: AutomationRecord,
    version: VersionRecord,
  ): Promise<void> {
    const { waiting } = this.#parts
    await waiting.inTurn(automation.id, async () => {
      await this.#createTriggered(scope, runId, {
        automation,
        version,
        inputs: sealedOf(automation),
        triggeredBy: { kind: 'version', runId: null },
        reach: allowedProjectsOf(automation.projects),
      })
      await waiting.giveWay(scope, automation.id)
    })
    this.#parts.onPending()
  }

  /** Throws `not_found`. */
  async get(projectId: string, runId: string): Promise<RunDetails> {
    const {
      scope,
      stored: { value: run },
    } = await this.#parts.changes.found(projectId, runId)
    const { store, causes } = this.#parts
    return { ...runView(run), result: await readFinalResult(store, scope, run), cause: await causes.view(run.causeId) }
  }

  /** The newest first. */
  async list(projectId: string, filter: RunFilter = {}): Promise<Page<Run>> {
    checkPage(filter)
    for (const [id, what] of [
      [filter.automationId, 'automation'],
      [filter.modelId, 'model'],
      [filter.versionId, 'version'],
    ] as const) {
      if (id !== undefined) checkResourceId(id, what)
    }
    const scope = await this.#parts.store.scope(projectId)
    return scope === undefined ? { items: [], cursor: null } : listRuns(this.#parts.store, scope, filter)
  }

  /** Throws `conflict` for a run that has ended. Of a canceled run nothing is taken any more. */
  async cancel(projectId: string, runId: string): Promise<Run> {
    const record = await this.#parts.changes.change(projectId, runId, (run) => {
      if (run.status === 'canceled') return undefined
      if (isFinal(run.status))
        throw new StowageError('conflict', `the run has ended (${run.status}), so it cannot be canceled`)
      return { run: { status: 'canceled', message: 'canceled' } }
    })
    return runView(record)
  }

  /** The inputs that a run was made with. */
  async inputs(scope: ProjectScope, runId: string): Promise<SealedInputs> {
    const stored = await this.#parts.store.get<SealedInputs>(scope, 'inputs', runId)
    if (stored === undefined) throw notFoundError('run', runId)
    return stored.value
  }

  async #createAsked(scope: ProjectScope, wanted: NewRun): Promise<Run> {
    const { store, waiting, onPending } = this.#parts
    const run = await waiting.inTurn(wanted.automation.id, async () => {
      await waiting.checkRoom(scope, wanted.automation.id)
      return this.#create(scope, await this.#newRecord(store.newId(), wanted), wanted.inputs)
    })
    onPending()
    return run
  }

  async #createTriggered(scope: ProjectScope, id: string, wanted: NewRun): Promise<void> {
    const { store, causes } = this.#parts
    await store.retried(async () => {
      if ((await store.get<RunRecord>(scope, 'run', id)) !== undefined) return true
      const { isFree, change } = await causes.next(wanted.version.causeId)
      const run = isFree
        ? this.#change(scope, await this.#newRecord(id, wanted), wanted.inputs)
        : { put: [], expect: [] }
      const isDone = await store.commit(scope, {
        put: [...run.put, ...change.put],
        expect: [...run.expect, ...change.expect],
      })
      return isDone || (await store.scope(scope.projectId))?.generation !== scope.generation ? true : undefined
    })
  }

  async #create(scope: ProjectScope, record: RunRecord, inputs: SealedInputs): Promise<Run> {
    const { store } = this.#parts
    const isNew = await store.commit(scope, this.#change(scope, record, inputs))
    if (!isNew && (await store.get(scope, 'run', record.id)) === undefined)
      throw new StowageError('conflict', 'the project was removed meanwhile')
    return runView(record)
  }

  async #newRecord(id: string, { automation, version, triggeredBy, reach }: NewRun): Promise<RunRecord> {
    const { store, functions, epochs } = this.#parts
    return {
      id,
      automationId: automation.id,
      functionId: automation.functionId,
      functionVersion: functions.find(automation.functionId)?.view.version ?? null,
      modelId: version.modelId,
      versionId: version.id,
      status: 'pending',
      message: null,
      progress: null,
      createdVersions: [],
      artifacts: [],
      annotations: NO_ANNOTATIONS,
      triggeredBy,
      logsTruncated: false,
      expired: [],
      createdAt: store.nowText(),
      startedAt: null,
      endedAt: null,
      chain: [...version.chain.filter((link) => link !== automation.id), automation.id],
      attempt: 0,
      leaseBeat: null,
      createdEpoch: (await epochs.current()).number,
      causeId: triggeredBy.kind === 'version' ? version.causeId : id,
      reach,
      revision: 1,
      sequence: 0,
      finalParts: 0,
      annotationBatches: 0,
      annotationObjects: 0,
      annotationBytes: 0,
      logLines: 0,
      logBytes: 0,
    }
  }

  #change(
    scope: ProjectScope,
    record: RunRecord,
    inputs: SealedInputs,
  ): { readonly put: readonly Entry[]; readonly expect: readonly Expectation[] } {
    const { store } = this.#parts
    const { id, automationId, triggeredBy } = record
    const key = projectKey(scope, 'run', id)
    const put = [
      store.entry(key, record),
      store.entry(projectKey(scope, 'inputs', id), inputs),
      store.entry(projectKey(scope, 'of', automationId, id), {}),
      store.entry(activeKey(scope, id), {}),
      ...(isWaiting(record)
        ? [store.entry(waitingKey(scope, record), { kind: triggeredBy.kind } satisfies WaitingMark)]
        : []),
    ]
    return { put, expect: [expectAbsent(key)] }
  }
}

function sealedOf({ inputs, sealed }: AutomationRecord): SealedInputs {
  return { inputs, sealed }
}
