import type { StoreEpochs } from '../../object/epochs.ts'
import type { Entry } from '../../storage/backend.ts'
import type { AutomationRecord } from '../domain/automations.ts'
import { deletedKey } from '../domain/deletion.ts'
import type { DomainOptions } from '../domain/domain.ts'
import { ErrorCollector } from '../domain/error-collector.ts'
import type { ModelRecord } from '../domain/models.ts'
import type { VersionRecord } from '../domain/versions.ts'
import { decodeRecord } from '../records/codec.ts'
import { boundsOf, globalKey, parseGeneration, partsOf, projectKey } from '../records/keys.ts'
import { type AutomationStore, expectSame, type ProjectScope } from '../records/store.ts'
import { removeKeys, removeRange } from './sweep-storage.ts'

export interface PurgeParts {
  readonly store: AutomationStore
  readonly emit: DomainOptions['emit']
  readonly epochs: StoreEpochs
  /** How long deleted items can be restored. */
  readonly graceMs: number
}

/**
 * Removes models and versions for good whose deletion is older than the grace. It may be cut off at any point and
 * continues from there.
 */
export async function purgeDeleted(parts: PurgeParts, signal: AbortSignal): Promise<void> {
  const { store, epochs, graceMs } = parts
  const errors = new ErrorCollector()
  // The deletion may have come at the end of its epoch.
  const graceEpochs = Math.ceil(graceMs / epochs.epochMs) + 1
  let current: number | undefined
  for await (const entries of store.records.range(boundsOf(globalKey('deleted')), { signal })) {
    current ??= (await epochs.current()).number
    for (const entry of entries) {
      signal.throwIfAborted()
      const epoch = Number.parseInt(partsOf(entry.key)[2], 16)
      // Marks sort by epoch.
      if (epoch + graceEpochs > current) return errors.check()
      await errors.attempt(() => purgeMarked(parts, entry, epoch, signal))
    }
  }
  errors.check()
}

async function purgeMarked(parts: PurgeParts, { key }: Entry, epoch: number, signal: AbortSignal): Promise<void> {
  const { store } = parts
  const [, , , projectId, generation, modelId, versionId] = partsOf(key)
  const scope = await store.scope(projectId)
  // The leftovers of a removed project are swept as a whole.
  const isOfLiving = scope?.generation === parseGeneration(generation)
  const isDone =
    !isOfLiving ||
    (versionId === undefined
      ? await purgeModel(parts, scope, { modelId, epoch }, signal)
      : await purgeVersion(parts, scope, { modelId, versionId, epoch }))
  if (isDone) await removeKeys(store, [key])
}

/**
 * False if the model was changed at the same time, so that the next purge looks again. The model's own record is
 * removed first: from then on nothing can restore it or add to it, and a purge that was cut off continues.
 */
async function purgeModel(
  { store, emit }: PurgeParts,
  scope: ProjectScope,
  { modelId, epoch }: { readonly modelId: string; readonly epoch: number },
  signal: AbortSignal,
): Promise<boolean> {
  const model = await store.get<ModelRecord>(scope, 'model', modelId)
  if (model !== undefined) {
    if (model.value.deletion?.epoch !== epoch) return true
    if (!(await store.commit(scope, { remove: [model.key], expect: [expectSame(model)] }))) return false
    emit('deletion', () => ({
      projectId: scope.projectId,
      kind: 'model' as const,
      action: 'removed' as const,
      id: modelId,
    }))
  }
  const versions = boundsOf(projectKey(scope, 'version', modelId))
  for await (const entries of store.records.range(versions, { signal })) {
    const marks = entries.flatMap(({ key, value }) => {
      const { id, deletion } = decodeRecord<VersionRecord>(key, value)
      return deletion === null ? [] : [deletedKey(scope, deletion.epoch, modelId, id)]
    })
    await removeKeys(store, marks)
  }
  await removeRange(store, versions, signal)
  for await (const entries of store.records.range(boundsOf(projectKey(scope, 'automation')), { signal })) {
    const ofModel = entries.filter(({ key, value }) => decodeRecord<AutomationRecord>(key, value).modelId === modelId)
    await removeKeys(
      store,
      ofModel.map(({ key }) => key),
    )
  }
  return true
}

/** False as above. */
async function purgeVersion(
  { store, emit }: PurgeParts,
  scope: ProjectScope,
  { modelId, versionId, epoch }: { readonly modelId: string; readonly versionId: string; readonly epoch: number },
): Promise<boolean> {
  const version = await store.get<VersionRecord>(scope, 'version', modelId, versionId)
  if (version?.value.deletion?.epoch !== epoch) return true
  const isRemoved = await store.commit(scope, { remove: [version.key], expect: [expectSame(version)] })
  const told = { projectId: scope.projectId, kind: 'version' as const, action: 'removed' as const, id: versionId }
  if (isRemoved) emit('deletion', () => told)
  return isRemoved
}
