import type { Entry } from '../../storage/backend.ts'
import type { ArtifactRecord } from '../domain/artifacts.ts'
import {
  blobFolder,
  boundsOf,
  generationBounds,
  globalKey,
  type KeyBounds,
  parseGeneration,
  partsOf,
  type ProjectTable,
  projectKey,
  type Scope,
} from '../records/keys.ts'
import { decodeRecord } from '../records/codec.ts'
import { type AutomationStore, type ProjectScope, timeOfId } from '../records/store.ts'
import { ErrorCollector } from '../domain/error-collector.ts'
import type { RunGarbage } from './expire-runs.ts'
import { blobsOfProject, generationOfBlob } from './named-blobs.ts'
import { scopesOf } from './project-scopes.ts'

const ORPHAN_GRACE_MS = 60 * 60_000
const REMOVALS_AT_ONCE = 24
/** Since when a blob has had no name. */
interface OrphanMark {
  readonly epoch: number
}

/** Tables whose keys go on with the run. */
const TABLES_OF_RUN: readonly ProjectTable[] = ['inputs', 'annotation', 'log', 'final', 'once']

/** Frees the space of removed projects and expired runs. It may be cut off at any point and continues from there. */
export async function sweepGarbage(store: AutomationStore, signal: AbortSignal): Promise<void> {
  const errors = new ErrorCollector()
  for await (const entries of store.records.range(boundsOf(globalKey('garbage')), { signal })) {
    for (const entry of entries) {
      signal.throwIfAborted()
      await errors.attempt(() => sweepMarked(store, entry, signal))
    }
  }
  errors.check()
}

/** Removes the counts of causes that are older than all of their runs. */
export async function expireCauses(store: AutomationStore, olderThanMs: number, signal: AbortSignal): Promise<void> {
  for await (const entries of store.records.range(boundsOf(globalKey('cause')), { signal })) {
    const old = entries.filter(({ key }) => timeOfId(partsOf(key)[2]) < olderThanMs)
    if (old.length > 0) await store.records.commit({ remove: old.map(({ key }) => key) })
    // Ids sort by age.
    if (old.length < entries.length) return
  }
}

/** When a blob is an orphan: it has had no name for so many epochs, and now is this one. */
export interface OrphanAge {
  readonly epoch: number
  readonly graceEpochs: number
}

/**
 * A run may name its blobs as long as it lasts, and they are no orphans before. It ends by the clocks of the servers that
 * see it, so an hour more.
 */
export function orphanAge({ number, epochMs }: { number: number; epochMs: number }, runMsMax: number): OrphanAge {
  return { epoch: number, graceEpochs: Math.ceil((runMsMax + ORPHAN_GRACE_MS) / epochMs) + 1 }
}

/**
 * Marks blobs that no record names, and removes those whose marks are old: of uploads that failed or were cut off before
 * their commit. Only of projects that have a record.
 */
export async function sweepOrphans(store: AutomationStore, age: OrphanAge, signal: AbortSignal): Promise<void> {
  const errors = new ErrorCollector()
  for await (const scope of scopesOf(store, signal, true))
    await errors.attempt(() => sweepOrphansOf(store, scope, age, signal))
  errors.check()
}

async function sweepOrphansOf(
  store: AutomationStore,
  scope: ProjectScope,
  { epoch, graceEpochs }: OrphanAge,
  signal: AbortSignal,
): Promise<void> {
  const unnamed = new Set<string>()
  for await (const batch of store.blobs.list(blobFolder(scope.projectId), { signal })) {
    for (const { name } of batch) if (generationOfBlob(name) <= scope.generation) unnamed.add(name)
  }
  if (unnamed.size > 0) for await (const { name } of blobsOfProject(store, scope, signal)) unnamed.delete(name)
  const due: string[] = []
  const done: Uint8Array[] = []
  for await (const entries of store.records.range(boundsOf(globalKey('orphan', scope.projectId)), { signal })) {
    for (const { key, value } of entries) {
      const name = partsOf(key)[3]
      const isDue = decodeRecord<OrphanMark>(key, value).epoch + graceEpochs <= epoch
      if (isDue && unnamed.has(name)) due.push(name)
      if (isDue || !unnamed.has(name)) done.push(key)
      unnamed.delete(name)
    }
  }
  signal.throwIfAborted()
  const marks = [...unnamed].map((name) =>
    store.entry(globalKey('orphan', scope.projectId, name), { epoch } satisfies OrphanMark),
  )
  if (marks.length > 0) await store.records.insertMany(marks)
  await store.blobs.remove(due)
  await removeKeys(store, done)
}

async function sweepMarked(store: AutomationStore, { key, value }: Entry, signal: AbortSignal): Promise<void> {
  const [, , projectId, generationPart, runId] = partsOf(key)
  const scope = { projectId, generation: parseGeneration(generationPart) }
  if (runId === undefined) await sweepGeneration(store, scope, signal)
  else await sweepRun(store, scope, runId, decodeRecord<RunGarbage>(key, value), signal)
  await store.records.commit({ remove: [key] })
}

async function sweepGeneration(store: AutomationStore, scope: Scope, signal: AbortSignal): Promise<void> {
  for await (const batch of store.blobs.list(blobFolder(scope.projectId), { signal })) {
    await store.blobs.remove(batch.map(({ name }) => name).filter((name) => generationOfBlob(name) <= scope.generation))
  }
  await removeRange(store, generationBounds(scope), signal)
}

async function sweepRun(
  store: AutomationStore,
  scope: Scope,
  runId: string,
  { artifactIds, parts }: RunGarbage,
  signal: AbortSignal,
): Promise<void> {
  const artifactKeys = artifactIds.map((id) => projectKey(scope, 'artifact', id))
  const artifacts = await store.getMany<ArtifactRecord>(artifactKeys)
  await store.blobs.remove(artifacts.flatMap((artifact) => (artifact === undefined ? [] : [artifact.blob])))
  await removeKeys(store, artifactKeys)
  if (parts === undefined || parts.includes('annotations'))
    for await (const { name } of blobsOfProject(store, scope, signal, runId)) await store.blobs.remove([name])
  for (const table of tablesOf(parts)) await removeRange(store, boundsOf(projectKey(scope, table, runId)), signal)
}

function tablesOf(parts: RunGarbage['parts']): readonly ProjectTable[] {
  if (parts === undefined) return TABLES_OF_RUN
  return [
    ...(parts.includes('annotations') ? ['annotation' as const] : []),
    ...(parts.includes('logs') ? ['log' as const] : []),
  ]
}

export async function removeRange(store: AutomationStore, bounds: KeyBounds, signal: AbortSignal): Promise<void> {
  for await (const entries of store.records.range(bounds, { signal })) {
    signal.throwIfAborted()
    await removeKeys(
      store,
      entries.map(({ key }: Entry) => key),
    )
  }
}

export async function removeKeys(store: AutomationStore, keys: readonly Uint8Array[]): Promise<void> {
  for (let at = 0; at < keys.length; at += REMOVALS_AT_ONCE)
    await store.records.commit({ remove: keys.slice(at, at + REMOVALS_AT_ONCE) })
}
