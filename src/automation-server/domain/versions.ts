import { createHash } from 'node:crypto'
import { StowageError } from '../../errors.ts'
import { checkObjectId, quoted } from '../../object/id.ts'
import type { GraphRoot } from '../../object/roots.ts'
import type { Selection } from '../../object/selection.ts'
import type { Change, Expectation } from '../../storage/backend.ts'
import { decodeRecord } from '../records/codec.ts'
import { boundsOf, globalKey, generationText, projectKey } from '../records/keys.ts'
import { expectAbsent, expectSame, type ProjectScope, type Stored } from '../records/store.ts'
import type { DeletableFilter, NewModelVersion, Page, Version, VersionChange } from '../schemas/types.ts'
import {
  checkIdempotencyKey,
  checkMessage,
  checkName,
  checkPage,
  checkResourceId,
  notFoundError,
} from '../schemas/checks.ts'
import type { DeletionMark, ModelRecord, Models } from './models.ts'
import type { DomainParts } from './parts.ts'
import { checkAttempt } from './run-changes.ts'
import { isFinal, type RunRecord } from './run-record.ts'

const MISSING_IDS_SHOWN = 3

/** A version as it is kept: with the automations that led to it. */
export interface VersionRecord extends Version {
  /**
   * Ids of the automations whose runs made this version or the versions that it came from. None of them starts on it.
   */
  readonly chain: readonly string[]
  /** The original cause; the version itself, if no run made it. */
  readonly causeId: string
  /** How it was deleted; `null` unless it is. */
  readonly deletion: VersionDeletion | null
}

interface VersionDeletion extends DeletionMark {
  /** Whether a rule deleted it, and nobody asked for it. */
  readonly byRetention: boolean
}

/** The mark of a version whose automations do not all have their runs yet. */
export interface TriggerMark {
  readonly modelId: string
  readonly versionId: string
}

interface OfRun {
  /** Of the run. */
  readonly projectId: string
  readonly runId: string
  readonly attempt: number
  /** Names the call; without one, its content does. */
  readonly idempotencyKey?: string | undefined
}

/** Versions of models: the roots that people still want. */
export class Versions {
  readonly #parts: Pick<DomainParts, 'store' | 'graphs' | 'limits'> & { readonly models: Models }

  constructor(parts: Pick<DomainParts, 'store' | 'graphs' | 'limits'> & { readonly models: Models }) {
    this.#parts = parts
  }

  /**
   * Throws `not_found` for a model that there is not, `objects_missing` when the root is not held or something below it
   * is missing. With `run`, the same version is created once however often the run asks.
   */
  async create(
    projectId: string,
    modelId: string,
    wanted: NewModelVersion,
    options: { readonly run?: OfRun; readonly signal: AbortSignal },
  ): Promise<Version> {
    checkObjectId(wanted.rootObjectId)
    checkMessage(wanted.message, "the version's message")
    checkIdempotencyKey(options.run?.idempotencyKey)
    if (wanted.source !== undefined && wanted.source !== null) checkName(wanted.source, "the version's source")
    const { store, models } = this.#parts
    await models.getLive(projectId, modelId)
    const record = await store.retried(async () => {
      const expect = await this.#checkHeld(projectId, wanted.rootObjectId, options.signal)
      const scope = await store.scope(projectId)
      if (scope === undefined) throw notFoundError('model', modelId)
      const model = await models.live(scope, modelId)
      return options.run === undefined
        ? this.#commit(scope, model, wanted, expect)
        : this.#commitOfRun(scope, model, wanted, { ...options.run, expect })
    })
    return versionView(record)
  }

  /** Throws `not_found`. */
  async get(projectId: string, modelId: string, versionId: string): Promise<Version> {
    return versionView(await this.record(projectId, modelId, versionId))
  }

  async record(projectId: string, modelId: string, versionId: string): Promise<VersionRecord> {
    checkResourceId(modelId, 'model')
    checkResourceId(versionId, 'version')
    const { store } = this.#parts
    const scope = await store.scope(projectId)
    if (scope === undefined) throw notFoundError('version', versionId)
    return (await this.stored(scope, modelId, versionId)).value
  }

  /** Throws `conflict` for one that is deleted, or whose model is. */
  async liveRecord(projectId: string, modelId: string, versionId: string): Promise<VersionRecord> {
    await this.#parts.models.getLive(projectId, modelId)
    const record = await this.record(projectId, modelId, versionId)
    if (record.deletedAt !== null)
      throw new StowageError('conflict', `the version ${quoted(versionId)} is deleted; restore it first`)
    return record
  }

  async stored(scope: ProjectScope, modelId: string, versionId: string): Promise<Stored<VersionRecord>> {
    checkResourceId(versionId, 'version')
    const stored = await this.#parts.store.get<VersionRecord>(scope, 'version', modelId, versionId)
    if (stored === undefined) throw notFoundError('version', versionId)
    return stored
  }

  /** Throws `not_found`. */
  async change(projectId: string, modelId: string, versionId: string, { kept }: VersionChange): Promise<Version> {
    checkResourceId(modelId, 'model')
    const { store } = this.#parts
    const record = await store.retried(async () => {
      const scope = await store.scope(projectId)
      if (scope === undefined) throw notFoundError('version', versionId)
      const stored = await this.stored(scope, modelId, versionId)
      const changed = { ...stored.value, kept: kept ?? stored.value.kept }
      const change = { put: [store.entry(stored.key, changed)], expect: [expectSame(stored)] }
      return (await store.commit(scope, change)) ? changed : undefined
    })
    return versionView(record)
  }

  /**
   * The newest first, without deleted ones unless they are asked for. Throws `not_found` for a model that there is not.
   */
  async list(
    projectId: string,
    modelId: string,
    { deleted = false, ...request }: DeletableFilter = {},
  ): Promise<Page<Version>> {
    checkPage(request)
    const { store, models } = this.#parts
    await models.get(projectId, modelId)
    const scope = await store.scope(projectId)
    if (scope === undefined) return { items: [], cursor: null }
    const { items, cursor } = await store.page<VersionRecord>(projectKey(scope, 'version', modelId), {
      ...request,
      newestFirst: true,
    })
    const shown = items.filter(({ value }) => deleted || value.deletedAt === null)
    return { items: shown.map(({ value }) => versionView(value)), cursor }
  }

  /** Versions of all models, deleted ones too, as what must not be collected. */
  async *roots(projectId: string): AsyncGenerator<readonly GraphRoot[]> {
    const { store } = this.#parts
    const scope = await store.scope(projectId)
    if (scope === undefined) return
    for await (const entries of store.records.range(boundsOf(projectKey(scope, 'version')))) {
      yield entries.map(({ key, value }) => {
        const { id, modelId, rootObjectId } = decodeRecord<VersionRecord>(key, value)
        return { kind: 'version', id, groupId: modelId, rootObjectId }
      })
    }
  }

  async #checkComplete(projectId: string, rootObjectId: string, signal: AbortSignal): Promise<void> {
    const selection = await this.#parts.graphs.closure(projectId, rootObjectId, { signal })
    if (selection === undefined) {
      throw new StowageError(
        'objects_missing',
        `the object ${quoted(rootObjectId)} is not held by this project; upload it with everything below it, then create the version`,
      )
    }
    try {
      if (selection.missing > 0) throw await missingBelow(rootObjectId, selection)
    } finally {
      selection.release()
    }
  }

  /** What is to be collected is wanted again. The commit must not come later than the epoch of this check. */
  async #checkHeld(projectId: string, rootObjectId: string, signal: AbortSignal): Promise<readonly Expectation[]> {
    const epoch = await this.#parts.graphs.collector?.revive(projectId, rootObjectId, { signal })
    await this.#checkComplete(projectId, rootObjectId, signal)
    return epoch === undefined ? [] : [epoch.expectation]
  }

  async #commit(
    scope: ProjectScope,
    model: Stored<ModelRecord>,
    wanted: NewModelVersion,
    expect: readonly Expectation[],
  ): Promise<VersionRecord | undefined> {
    const record = this.#newRecord(model, wanted, { runId: null, chain: [] })
    const change = this.#change(scope, model, record)
    const isMade = await this.#parts.store.commit(scope, { ...change, expect: [...change.expect, ...expect] })
    return isMade ? record : undefined
  }

  async #commitOfRun(
    scope: ProjectScope,
    model: Stored<ModelRecord>,
    wanted: NewModelVersion,
    { projectId, runId, attempt, idempotencyKey, expect }: OfRun & { readonly expect: readonly Expectation[] },
  ): Promise<VersionRecord | undefined> {
    const { store, limits } = this.#parts
    const isOwn = projectId === scope.projectId
    const own = isOwn ? scope : await store.scope(projectId)
    if (own === undefined) throw notFoundError('run', runId)
    const once = projectKey(own, 'once', runId, digestOf(model.value.id, wanted, idempotencyKey))
    const before = await store.getByKey<TriggerMark>(once)
    if (before !== undefined)
      return (await store.get<VersionRecord>(scope, 'version', before.value.modelId, before.value.versionId))?.value
    const run = await store.get<RunRecord>(own, 'run', runId)
    if (run === undefined) throw notFoundError('run', runId)
    checkAttempt(run.value, attempt)
    if (isFinal(run.value.status))
      throw new StowageError('conflict', `the run has ended (${run.value.status}), so it creates no more versions`)
    if (run.value.createdVersions.length >= limits.createdVersionsMax)
      throw new StowageError('conflict', `the run has created ${limits.createdVersionsMax} versions, the limit`)
    const record = this.#newRecord(model, wanted, {
      // Another project knows no such run.
      runId: isOwn ? runId : null,
      chain: run.value.chain,
      causeId: run.value.causeId,
    })
    const createdVersions = [
      ...run.value.createdVersions,
      { ...(isOwn ? {} : { projectId: scope.projectId }), modelId: record.modelId, versionId: record.id },
    ]
    const change = this.#change(scope, model, record)
    const put = [
      ...change.put,
      store.entry(run.key, { ...run.value, createdVersions, revision: run.value.revision + 1 }),
      store.entry(once, { modelId: record.modelId, versionId: record.id }),
    ]
    const all = [...change.expect, expectSame(run), expectAbsent(once), ...expect]
    return (await store.commit(scope, { put, expect: all })) ? record : undefined
  }

  #newRecord(
    model: Stored<ModelRecord>,
    wanted: NewModelVersion,
    origin: Pick<VersionRecord, 'runId' | 'chain'> & Partial<Pick<VersionRecord, 'causeId'>>,
  ): VersionRecord {
    const { store } = this.#parts
    const { rootObjectId, message, source = null } = wanted
    const id = store.newId(model.value.newestVersionId ?? undefined)
    return {
      causeId: id,
      id,
      modelId: model.value.id,
      rootObjectId,
      message,
      source,
      ...origin,
      createdAt: store.nowText(),
      kept: false,
      deletedAt: null,
      deletion: null,
    }
  }

  #change(
    scope: ProjectScope,
    model: Stored<ModelRecord>,
    record: VersionRecord,
  ): Required<Pick<Change, 'put' | 'expect'>> {
    const { store } = this.#parts
    const key = projectKey(scope, 'version', record.modelId, record.id)
    const mark = globalKey('trigger', record.id, scope.projectId, generationText(scope.generation))
    const put = [
      store.entry(key, record),
      store.entry(model.key, {
        ...model.value,
        versionCount: model.value.versionCount + 1,
        latestVersionId: record.id,
        newestVersionId: record.id,
      }),
      store.entry(mark, { modelId: record.modelId, versionId: record.id } satisfies TriggerMark),
    ]
    return { put, expect: [expectSame(model), expectAbsent(key)] }
  }
}

export function versionView(record: VersionRecord): Version {
  const { id, modelId, rootObjectId, message, source, runId, createdAt, kept, deletedAt } = record
  return { id, modelId, rootObjectId, message, source, runId, createdAt, kept, deletedAt }
}

function digestOf(modelId: string, { rootObjectId, message }: NewModelVersion, key: string | undefined): string {
  const named = key === undefined ? ['version', modelId, rootObjectId, message] : ['version by key', key]
  return createHash('sha256').update(JSON.stringify(named)).digest('hex')
}

async function missingBelow(rootObjectId: string, selection: Selection): Promise<StowageError> {
  const shown = await selection.missingIds(MISSING_IDS_SHOWN)
  const more = selection.missing > shown.length ? ' and others' : ''
  return new StowageError(
    'objects_missing',
    `${selection.missing} objects below ${quoted(rootObjectId)} are not held: ${shown.map(quoted).join(', ')}${more}; upload them, then create the version`,
  )
}
