import type { Domain } from '../domain/domain.ts'
import { ErrorCollector } from '../domain/error-collector.ts'
import type { ModelRecord } from '../domain/models.ts'
import { decodeRecord } from '../records/codec.ts'
import { boundsOf, projectKey } from '../records/keys.ts'
import { scopesOf } from './project-scopes.ts'

/** Deletes the versions that the retention rules of all models do not keep. */
export async function applyRetention({ store, retention }: Domain, signal: AbortSignal): Promise<void> {
  const errors = new ErrorCollector()
  for await (const scope of scopesOf(store, signal)) {
    for await (const entries of store.records.range(boundsOf(projectKey(scope, 'model')), { signal })) {
      for (const { key, value } of entries) {
        const model = decodeRecord<ModelRecord>(key, value)
        if (model.retention === null || model.deletion !== null) continue
        await errors.attempt(async () => {
          for (let hasMore = true; hasMore;)
            ({ hasMore } = await retention.prune(scope.projectId, model.id, {}, signal))
        })
      }
    }
  }
  errors.check()
}
