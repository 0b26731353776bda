import { NO_ANNOTATIONS, isFinal, type RunRecord } from '../../automation-server/domain/run-record.ts'
import { Annotations } from '../../automation-server/domain/annotations.ts'
import type { AutomationRecord } from '../../automation-server/domain/automations.ts'
import { finalResultEntries } from '../../automation-server/domain/final-result.ts'
import { Logs } from '../../automation-server/domain/logs.ts'
import type { AutomationLimits } from '../../automation-server/domain/options.ts'
import { checkProjects } from '../../automation-server/domain/allowed-projects.ts'
import { REDACTED, type SealedInputs, type SecretBox } from '../../automation-server/domain/secrets.ts'
import type { ModelRecord } from '../../automation-server/domain/models.ts'
import type { VersionRecord } from '../../automation-server/domain/versions.ts'
import { decodeRecord } from '../../automation-server/records/codec.ts'
import { boundsOf, projectKey } from '../../automation-server/records/keys.ts'
import {
  type AutomationStore,
  expectAbsent,
  expectSame,
  type ProjectScope,
  type Stored,
  timeOfId,
} from '../../automation-server/records/store.ts'
import { checkMessage, checkName, notFoundError } from '../../automation-server/schemas/checks.ts'
import type { Model, RunDetails, Version } from '../../automation-server/schemas/types.ts'
import type { JsonObject, LogLine } from '../../automation/author/run-data.ts'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import type { StoreEpoch } from '../../object/epochs.ts'
import type { ClosureSelector, GraphStore } from '../../object/graph-store.ts'
import type { Pin, PinStore } from '../../object/roots.ts'
import type { AnnotationPart, ImportedRecord, LogPart, MirrorMark, SealedAutomation } from './record-shapes.ts'

export interface RecordImportParts {
  readonly store: AutomationStore
  readonly graphs: ClosureSelector & Pick<GraphStore, 'collector'>
  readonly pins: PinStore | undefined
  readonly limits: AutomationLimits
  /** With the keys of the moment. */
  readonly secrets: () => Promise<SecretBox>
}

export type ImportOutcome = 'created' | 'updated' | 'unchanged'

/** Ids name a time, and later ids must follow them: one from the far future would leave no room. */
const CLOCK_DIFFERENCE_MS_MAX = 86_400_000
const MISSING_IDS_SHOWN = 3

/**
 * Takes records of another server under their own ids. Each record is one commit, and taking it again changes nothing.
 * Imported versions start no automation.
 */
export class RecordImport {
  readonly #parts: RecordImportParts
  readonly #annotations: Annotations
  readonly #logs: Logs

  constructor(parts: RecordImportParts) {
    this.#parts = parts
    this.#annotations = new Annotations(parts.store, parts.limits)
    this.#logs = new Logs(parts.store, parts.limits.logBytesMax)
  }

  /**
   * Throws `objects_missing`, `not_found` for a model that is not there, `conflict` for an id that is taken,
   * `invalid_request`.
   */
  async take(projectId: string, { kind, value }: ImportedRecord, signal: AbortSignal): Promise<ImportOutcome> {
    if ('id' in value) this.#checkTime(value.id)
    if (kind === 'pin') return this.#pin(projectId, value)
    if (kind === 'version') return this.#version(projectId, value, signal)
    return this.#parts.store.retried(async () => {
      const scope = await this.#parts.store.writingScope(projectId)
      if (kind === 'model') return this.#model(scope, value)
      if (kind === 'automation') return this.#automation(scope, value)
      if (kind === 'annotations') return this.#annotationPart(scope, value)
      if (kind === 'logs') return this.#logPart(scope, value)
      if (kind === 'mark') return this.#mark(scope, value)
      return this.#run(scope, value)
    })
  }

  async #pin(projectId: string, pin: Pin): Promise<ImportOutcome> {
    const { pins } = this.#parts
    if (pins === undefined) throw new StowageError('not_supported', 'pins need a storage backend')
    return (await pins.take(projectId, pin)) ? 'created' : 'unchanged'
  }

  async #model(scope: ProjectScope, model: Model): Promise<ImportOutcome | undefined> {
    const { store } = this.#parts
    checkName(model.name, "the model's name")
    const { name, retention } = model
    const stored = await store.get<ModelRecord>(scope, 'model', model.id)
    const key = projectKey(scope, 'model', model.id)
    const none = { versionCount: 0, latestVersionId: null, newestVersionId: null, deletedAt: null, deletion: null }
    const record: ModelRecord = stored === undefined ? { ...model, ...none } : { ...stored.value, name, retention }
    const entry = store.entry(key, record)
    if (stored !== undefined && Buffer.from(stored.bytes).equals(entry.value)) return 'unchanged'
    const expect = [stored === undefined ? expectAbsent(key) : expectSame(stored)]
    if (!(await store.commit(scope, { put: [entry], expect }))) return undefined
    return stored === undefined ? 'created' : 'updated'
  }

  async #version(projectId: string, version: Version, signal: AbortSignal): Promise<ImportOutcome> {
    const { store } = this.#parts
    checkMessage(version.message, "the version's message")
    return store.retried(async () => {
      const scope = await store.scope(projectId)
      const model = scope && (await store.get<ModelRecord>(scope, 'model', version.modelId))
      if (scope === undefined || model === undefined) throw notFoundError('model', version.modelId)
      // Items that were deleted here stay deleted.
      if (model.value.deletion !== null) return 'unchanged'
      const stored = await store.get<VersionRecord>(scope, 'version', version.modelId, version.id)
      if (stored !== undefined) return this.#knownVersion(scope, stored, version)
      const epoch = await this.#parts.graphs.collector?.revive(projectId, version.rootObjectId, { signal })
      await this.#checkComplete(projectId, version.rootObjectId, signal)
      return this.#newVersion(scope, model, version, epoch)
    })
  }

  async #newVersion(
    scope: ProjectScope,
    { key: modelKey, bytes, value: model }: Stored<ModelRecord>,
    version: Version,
    epoch: StoreEpoch | undefined,
  ): Promise<ImportOutcome | undefined> {
    const { store } = this.#parts
    const key = projectKey(scope, 'version', version.modelId, version.id)
    const record: VersionRecord = { ...version, chain: [], causeId: version.id, deletedAt: null, deletion: null }
    const changed: ModelRecord = {
      ...model,
      versionCount: model.versionCount + 1,
      latestVersionId: newer(model.latestVersionId, version.id),
      newestVersionId: newer(model.newestVersionId, version.id),
    }
    const change = {
      put: [store.entry(key, record), store.entry(modelKey, changed)],
      expect: [{ key: modelKey, value: bytes }, expectAbsent(key), ...(epoch === undefined ? [] : [epoch.expectation])],
    }
    return (await store.commit(scope, change)) ? 'created' : undefined
  }

  async #knownVersion(
    scope: ProjectScope,
    stored: Stored<VersionRecord>,
    { id, rootObjectId, kept }: Version,
  ): Promise<ImportOutcome | undefined> {
    const { store } = this.#parts
    if (stored.value.rootObjectId !== rootObjectId)
      throw new StowageError('conflict', `the version ${quoted(id)} exists with another root`)
    if (stored.value.kept === kept) return 'unchanged'
    const put = [store.entry(stored.key, { ...stored.value, kept })]
    return (await store.commit(scope, { put, expect: [expectSame(stored)] })) ? 'updated' : undefined
  }

  async #automation(scope: ProjectScope, given: SealedAutomation): Promise<ImportOutcome | undefined> {
    const { store } = this.#parts
    const stored = await store.get<AutomationRecord>(scope, 'automation', given.id)
    if (stored !== undefined && stored.value.functionId !== given.functionId)
      throw new StowageError('conflict', `the automation ${quoted(given.id)} exists with another function`)
    if ((await store.get(scope, 'model', given.modelId)) === undefined) throw notFoundError('model', given.modelId)
    if (stored === undefined) await this.#checkRoom(scope)
    const { sealed: _sealed, secrets: _secrets, ...automation } = given
    const sealed = (await this.#sealedHere(scope, given, stored?.value)) ?? stored?.value.sealed ?? {}
    const lacksSecrets = Object.entries(given.inputs).some(([name, text]) => text === REDACTED && !(name in sealed))
    const record: AutomationRecord = {
      ...automation,
      projects: checkProjects(given.projects),
      enabled: given.enabled && !lacksSecrets,
      sealed,
    }
    const key = projectKey(scope, 'automation', given.id)
    const entry = store.entry(key, record)
    if (stored !== undefined && Buffer.from(stored.bytes).equals(entry.value)) return 'unchanged'
    const expect = [stored === undefined ? expectAbsent(key) : expectSame(stored)]
    if (!(await store.commit(scope, { put: [entry], expect }))) return undefined
    return stored === undefined ? 'created' : 'updated'
  }

  /** The secrets as this server keeps them; `undefined` if none were given, or none that it can open. */
  async #sealedHere(
    { projectId }: ProjectScope,
    { id, inputs, sealed, secrets: given }: SealedAutomation,
    stored: AutomationRecord | undefined,
  ): Promise<Readonly<Record<string, string>> | undefined> {
    const secrets = await this.#parts.secrets()
    const owner = { projectId, automationId: id }
    const opened = (one: SealedInputs): JsonObject | undefined => {
      try {
        return secrets.open(one, owner)
      } catch {
        return undefined
      }
    }
    if (given === undefined)
      return sealed !== undefined && opened({ inputs, sealed }) !== undefined ? sealed : undefined
    const names = Object.keys(given)
    for (const name of names)
      if (inputs[name] !== REDACTED)
        throw new StowageError('invalid_request', `the automation ${quoted(id)} has no secret input ${quoted(name)}`)
    const kept = stored && opened(stored)
    // Sealing anew would change the record, and an import that is repeated changes nothing.
    if (stored !== undefined && names.every((name) => kept?.[name] === given[name])) return stored.sealed
    return secrets.seal({ ...given }, names, owner).sealed
  }

  async #annotationPart(
    scope: ProjectScope,
    { runId, part, items }: AnnotationPart,
  ): Promise<ImportOutcome | undefined> {
    const { store } = this.#parts
    const runKey = projectKey(scope, 'run', runId)
    if ((await store.getByKey(runKey)) !== undefined) return 'unchanged'
    const none = { id: runId, annotationObjects: 0, annotationBytes: 0, annotations: NO_ANNOTATIONS }
    const state = { ...none, annotationBatches: part }
    const prepared = await this.#annotations.prepare(scope, state, items)
    const { put } = this.#annotations.added(scope, state, prepared)
    if (await store.commit(scope, { put, expect: [expectAbsent(runKey)] })) return 'created'
    await this.#annotations.discard(prepared)
    return undefined
  }

  async #logPart(scope: ProjectScope, { runId, firstLine, lines }: LogPart): Promise<ImportOutcome | undefined> {
    const { store } = this.#parts
    const runKey = projectKey(scope, 'run', runId)
    if ((await store.getByKey(runKey)) !== undefined) return 'unchanged'
    for (let taken = 0; taken < lines.length;) {
      const state = { id: runId, logLines: firstLine + taken, logBytes: 0, logsTruncated: false }
      const { put, run } = this.#logs.added(scope, state, lines.slice(taken))
      if (!(await store.commit(scope, { put, expect: [expectAbsent(runKey)] }))) return undefined
      taken = run.logLines - firstLine
    }
    return 'created'
  }

  /** The place from which a mirror continues; `null` for a source without any imports. */
  async cursorOf(projectId: string, source: string): Promise<string | null> {
    const { store } = this.#parts
    const scope = await store.scope(projectId)
    return (scope && (await store.get<MirrorMark>(scope, 'mirror', source)))?.value.cursor ?? null
  }

  async #mark(scope: ProjectScope, mark: MirrorMark): Promise<ImportOutcome | undefined> {
    const { store } = this.#parts
    const entry = store.entry(projectKey(scope, 'mirror', mark.source), mark)
    return (await store.commit(scope, { put: [entry] })) ? 'updated' : undefined
  }

  /** The last record of a run: from here on the run, its annotations, its log and its files are visible. */
  async #run(scope: ProjectScope, details: RunDetails): Promise<ImportOutcome | undefined> {
    const { store } = this.#parts
    const { result, cause: _cause, ...run } = details
    if (!isFinal(run.status))
      throw new StowageError(
        'invalid_request',
        `the run ${quoted(run.id)} is ${run.status}; only ended runs are imported`,
      )
    const key = projectKey(scope, 'run', run.id)
    if ((await store.getByKey(key)) !== undefined) return 'unchanged'
    const final = result === null ? [] : finalResultEntries(store, scope, run.id, result)
    const record: RunRecord = {
      ...run,
      chain: [run.automationId],
      causeId: run.id,
      reach: { others: [], everywhere: false },
      attempt: 1,
      leaseBeat: null,
      createdEpoch: 0,
      revision: 1,
      sequence: 0,
      finalParts: final.length,
      annotationObjects: 0,
      ...(await this.#annotationTotals(scope, run.id)),
      ...(await this.#logTotals(scope, run.id)),
    }
    const put = [store.entry(key, record), store.entry(projectKey(scope, 'of', run.automationId, run.id), {}), ...final]
    return (await store.commit(scope, { put, expect: [expectAbsent(key)] })) ? 'created' : undefined
  }

  async #annotationTotals(
    scope: ProjectScope,
    runId: string,
  ): Promise<Pick<RunRecord, 'annotationBatches' | 'annotationBytes'>> {
    const totals = { annotationBatches: 0, annotationBytes: 0 }
    for await (const entries of this.#parts.store.records.range(boundsOf(projectKey(scope, 'annotation', runId)))) {
      for (const { key, value } of entries) {
        totals.annotationBatches++
        totals.annotationBytes += decodeRecord<{ readonly bytes: number }>(key, value).bytes
      }
    }
    return totals
  }

  async #logTotals(scope: ProjectScope, runId: string): Promise<Pick<RunRecord, 'logLines' | 'logBytes'>> {
    const totals = { logLines: 0, logBytes: 0 }
    for await (const entries of this.#parts.store.records.range(boundsOf(projectKey(scope, 'log', runId)))) {
      for (const { key, value } of entries) {
        totals.logLines += decodeRecord<readonly LogLine[]>(key, value).length
        totals.logBytes += value.length
      }
    }
    return totals
  }

  async #checkRoom(scope: ProjectScope): Promise<void> {
    const { store, limits } = this.#parts
    let count = 0
    for await (const entries of store.records.range(boundsOf(projectKey(scope, 'automation')))) count += entries.length
    if (count >= limits.automationsMax)
      throw new StowageError('conflict', `this project has ${count} automations, the limit`)
  }

  async #checkComplete(projectId: string, rootObjectId: string, signal: AbortSignal): Promise<void> {
    const selection = await this.#parts.graphs.closure(projectId, rootObjectId, { signal })
    if (selection === undefined)
      throw new StowageError('objects_missing', `the object ${quoted(rootObjectId)} is not held by this project`)
    try {
      if (selection.missing === 0) return
      const shown = (await selection.missingIds(MISSING_IDS_SHOWN)).map((id) => quoted(id))
      throw new StowageError(
        'objects_missing',
        `${selection.missing} objects below ${quoted(rootObjectId)} are not held, such as ${shown.join(', ')}`,
      )
    } finally {
      selection.release()
    }
  }

  #checkTime(id: string): void {
    if (timeOfId(id) <= this.#parts.store.clock.now() + CLOCK_DIFFERENCE_MS_MAX) return
    throw new StowageError(
      'invalid_id',
      `the id ${quoted(id)} contains a time more than a day ahead of this server's clock`,
    )
  }
}

/** Ids sort by age. */
function newer(id: string | null, other: string): string {
  return id === null || id < other ? other : id
}
