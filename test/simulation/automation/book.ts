import { isDeepStrictEqual } from 'node:util'
import { RUN_STATUS_RANK } from '../../../src/automation/author/run-data.ts'
import type { Model, Run, Version } from '../../../src/automation-server/index.ts'
import type { PlannedVersion } from '../../../src/simulation/models.ts'
import { Violation } from '../../../src/simulation/oracle.ts'
import { Fate, type Span, type Timeline } from './history.ts'

/** A model that was acknowledged. */
export interface KnownModel {
  readonly id: string
  readonly fate: Fate
  /** Nothing before this moment is expected of it. */
  readonly created: Span
}

/** A version that was acknowledged to a client or a run. */
export interface KnownVersion {
  readonly id: string
  readonly model: KnownModel
  readonly content: PlannedVersion
  readonly fate: Fate
  readonly created: Span
}

/** An automation that was acknowledged, and that versions start. */
export interface KnownAutomation {
  readonly id: string
  readonly model: KnownModel
  readonly created: Span
}

/** The latest state of a run that a client saw. */
interface KnownRun {
  readonly id: string
  readonly created: Span
  readonly automationId: string
  readonly seen: { readonly span: Span; readonly run: Run }[]
}

/** What a call of a function attached, in one of the attempts of its run. */
export interface Invocation {
  readonly runId: string
  readonly attached: Set<string>
  /** Those of them whose report was acknowledged. */
  readonly acknowledged: Set<string>
  hasSucceeded: boolean
}

/** What clients and functions were told, and whether answers agree with it. */
export class Book {
  readonly timeline: Timeline
  readonly models: KnownModel[] = []
  readonly versions: KnownVersion[] = []
  readonly automations: KnownAutomation[] = []
  readonly invocations: Invocation[] = []
  readonly #runs = new Map<string, KnownRun>()

  constructor(timeline: Timeline) {
    this.timeline = timeline
  }

  get runIds(): readonly string[] {
    return [...this.#runs.keys()]
  }

  /** Runs that were acknowledged or seen, and were not seen to end. */
  get openRunIds(): readonly string[] {
    return [...this.#runs.values()].filter(({ seen }) => !seen.some(({ run }) => isFinal(run))).map(({ id }) => id)
  }

  addModel(id: string, created: Span): void {
    this.models.push({ id, created, fate: new Fate(this.timeline) })
  }

  addVersion(id: string, model: KnownModel, content: PlannedVersion, created: Span): void {
    if (this.versions.every((known) => known.id !== id))
      this.versions.push({ id, model, content, created, fate: new Fate(this.timeline) })
  }

  /** A run as an answer shows it. */
  sawRun(run: Run, span: Span): void {
    const known = this.#runs.get(run.id) ?? { id: run.id, automationId: run.automationId, created: span, seen: [] }
    this.#runs.set(run.id, known)
    for (const before of known.seen) {
      if (before.span.end < span.start) checkOrder(before.run, run)
      else if (span.end < before.span.start) checkOrder(run, before.run)
      else if (isFinal(run) && isFinal(before.run)) checkSame(before.run, run)
    }
    // The last one that did not end and the first one that did say all.
    if (!known.seen.some((before) => isFinal(before.run) && before.span.end < span.start))
      known.seen.push({ run, span })
  }

  /** The server does not know this run. */
  missedRun(id: string, span: Span): void {
    const known = this.#runs.get(id)
    if (known !== undefined && known.created.end < span.start) throw new Violation(`the run ${id} is gone`)
  }

  /** All models that a server lists. */
  sawModels(models: readonly Model[], span: Span): void {
    const listed = new Set(models.map(({ id }) => id))
    for (const { id, fate, created } of this.models) {
      if (created.end > span.start) continue
      if (fate.isLive(span) && !listed.has(id)) throw new Violation(`the model ${id} is not listed`)
      if (fate.isDeleted(span) && listed.has(id)) throw new Violation(`the deleted model ${id} is listed`)
    }
  }

  /** All versions of a model that a server lists. */
  sawVersions(model: KnownModel, versions: readonly Version[], span: Span): void {
    const listed = new Map(versions.map((version) => [version.id, version]))
    if (listed.size < versions.length) throw new Violation(`a version of the model ${model.id} is listed twice`)
    for (const { id, fate, created, content } of this.versionsOf(model)) {
      if (created.end > span.start) continue
      const version = listed.get(id)
      if (fate.isLive(span) && version === undefined && !model.fate.mayBePurged(span))
        throw new Violation(`the version ${id} is not listed`)
      if (fate.isDeleted(span) && version !== undefined) throw new Violation(`the deleted version ${id} is listed`)
      if (version !== undefined && version.rootObjectId !== content.rootId)
        throw new Violation(`the version ${id} has the root ${version.rootObjectId}, and not ${content.rootId}`)
    }
  }

  versionsOf(model: KnownModel): readonly KnownVersion[] {
    return this.versions.filter((version) => version.model === model)
  }

  /** Whether it must be there, deleted or not, with everything below its root. */
  mustBeHeld({ created, fate, model }: KnownVersion, span: Span): boolean {
    return created.end < span.start && !fate.mayBePurged(span) && !model.fate.mayBePurged(span)
  }

  /** The annotations of a run that has ended, each by the text that the function gave it. */
  sawAnnotations(run: Run, texts: readonly string[]): void {
    if (new Set(texts).size < texts.length) throw new Violation(`the run ${run.id} has an annotation twice`)
    const own = this.invocations.filter(({ runId }) => runId === run.id)
    const sources = own.filter(({ attached }) => texts.some((text) => attached.has(text)))
    if (sources.length > 1) throw new Violation(`the run ${run.id} has annotations of two attempts`)
    for (const text of texts)
      if (!own.some(({ attached }) => attached.has(text))) throw new Violation(`nobody reported ${text}`)
    const present = new Set(texts)
    for (const { acknowledged } of own)
      for (const text of acknowledged)
        if (!present.has(text)) throw new Violation(`the run ${run.id} lost the annotation ${text}`)
    if (run.status !== 'succeeded') return
    const successful = own.filter(({ hasSucceeded }) => hasSucceeded)
    const source = (sources.length > 0 ? sources : successful).at(0)
    if (source?.hasSucceeded !== true) throw new Violation(`the run ${run.id} succeeded, and its function did not`)
    if (sources.length === 0 && successful.length > 1) return
    for (const text of source.attached)
      if (!present.has(text)) throw new Violation(`the run ${run.id} succeeded without the annotation ${text}`)
  }
}

export function isFinal({ status }: Run): boolean {
  return RUN_STATUS_RANK[status] >= RUN_STATUS_RANK.succeeded
}

function checkOrder(before: Run, after: Run): void {
  if (isFinal(before)) checkSame(before, after)
  if (RUN_STATUS_RANK[after.status] < RUN_STATUS_RANK[before.status])
    throw new Violation(`the run ${after.id} was ${before.status}, and is ${after.status} later`)
}

function checkSame(one: Run, other: Run): void {
  const differs = one.status !== other.status || one.message !== other.message || one.endedAt !== other.endedAt
  if (differs || !isDeepStrictEqual(one.createdVersions, other.createdVersions))
    throw new Violation(`the run ${one.id} ended as ${one.status} and as ${other.status}`)
}
