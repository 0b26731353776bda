import { ErrorCollector } from '../domain/error-collector.ts'
import { isFinal, type RunRecord } from '../domain/run-record.ts'
import type { RunTimes } from '../domain/options.ts'
import { decodeRecord } from '../records/codec.ts'
import { boundsOf, generationText, globalKey, partsOf, projectKey } from '../records/keys.ts'
import { type AutomationStore, expectSame, type ProjectScope, type Stored, timeOfId } from '../records/store.ts'
import { scopesOf } from './project-scopes.ts'

type RunPart = RunRecord['expired'][number]

/** The leftovers of a run that cannot be found by its id. */
export interface RunGarbage {
  readonly artifactIds: readonly string[]
  /** Only these parts are to go; absent for the whole run. */
  readonly parts?: readonly RunPart[]
}

/** When runs must have ended for them, or parts of them, to go. */
export interface ExpiryTimes {
  readonly runMs: number
  readonly partMs: Readonly<Record<RunPart, number>>
}

export function endsOf(times: RunTimes, nowMs: number): ExpiryTimes {
  const { runRetentionMs, annotationRetentionMs, logRetentionMs, artifactRetentionMs } = times
  return {
    runMs: nowMs - runRetentionMs,
    partMs: {
      annotations: nowMs - annotationRetentionMs,
      logs: nowMs - logRetentionMs,
      artifacts: nowMs - artifactRetentionMs,
    },
  }
}

/** Makes runs that ended long ago unreadable, or parts of them, and marks their leftovers for `sweepGarbage`. */
export async function expireRuns(store: AutomationStore, times: ExpiryTimes, signal: AbortSignal): Promise<void> {
  const errors = new ErrorCollector()
  for await (const scope of scopesOf(store, signal))
    await errors.attempt(() => expireRunsOf(store, scope, times, signal))
  errors.check()
}

async function expireRunsOf(
  store: AutomationStore,
  scope: ProjectScope,
  times: ExpiryTimes,
  signal: AbortSignal,
): Promise<void> {
  const newestMs = Math.max(times.runMs, ...Object.values(times.partMs))
  for await (const entries of store.records.range(boundsOf(projectKey(scope, 'run')), { signal })) {
    signal.throwIfAborted()
    for (const { key, value } of entries) {
      const run = { key, bytes: value, value: decodeRecord<RunRecord>(key, value) }
      if (hasEndedBefore(run.value, times.runMs)) await expire(store, scope, run)
      else await expireParts(store, scope, run, times)
    }
    // Ids sort by age: the following ones were made after the time at which they would have to have ended.
    const newest = entries.at(-1)
    if (newest !== undefined && timeOfId(partsOf(newest.key)[3]) >= newestMs) return
  }
}

function hasEndedBefore({ status, endedAt }: RunRecord, beforeMs: number): boolean {
  return isFinal(status) && endedAt !== null && Date.parse(endedAt) < beforeMs
}

async function expire(store: AutomationStore, scope: ProjectScope, stored: Stored<RunRecord>): Promise<void> {
  const { id, automationId, artifacts } = stored.value
  const mark = globalKey('garbage', scope.projectId, generationText(scope.generation), id)
  const garbage: RunGarbage = { artifactIds: artifacts.map((artifact) => artifact.id) }
  await store.commit(scope, {
    put: [store.entry(mark, garbage)],
    remove: [stored.key, projectKey(scope, 'of', automationId, id)],
    expect: [expectSame(stored)],
  })
}

/** A run that was changed at the same time is looked at again by the next sweep. */
async function expireParts(
  store: AutomationStore,
  scope: ProjectScope,
  stored: Stored<RunRecord>,
  { partMs }: ExpiryTimes,
): Promise<void> {
  const { value: run } = stored
  const parts = partsIn(run).filter((part) => hasEndedBefore(run, partMs[part]))
  if (parts.length === 0) return
  const isGone = (part: RunPart): boolean => parts.includes(part)
  const changed: RunRecord = {
    ...run,
    expired: [...run.expired, ...parts],
    revision: run.revision + 1,
    ...(isGone('annotations') ? { annotationBatches: 0, annotationObjects: 0, annotationBytes: 0 } : {}),
    ...(isGone('logs') ? { logLines: 0, logBytes: 0 } : {}),
    ...(isGone('artifacts') ? { artifacts: [] } : {}),
  }
  // Each sweep that removes parts has a mark of its own: none may replace another that was not swept yet.
  const mark = globalKey('garbage', scope.projectId, generationText(scope.generation), run.id, String(changed.revision))
  const artifactIds = isGone('artifacts') ? run.artifacts.map(({ id }) => id) : []
  const garbage: RunGarbage = { artifactIds, parts }
  await store.commit(scope, {
    put: [store.entry(stored.key, changed), store.entry(mark, garbage)],
    expect: [expectSame(stored)],
  })
}

/** The parts that the run has still. */
function partsIn({ annotationBatches, logLines, artifacts }: RunRecord): readonly RunPart[] {
  return [
    ...(annotationBatches > 0 ? ['annotations' as const] : []),
    ...(logLines > 0 ? ['logs' as const] : []),
    ...(artifacts.length > 0 ? ['artifacts' as const] : []),
  ]
}
