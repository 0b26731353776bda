import { boundsOf, globalKey, partsOf } from '../records/keys.ts'
import { decodeRecord } from '../records/codec.ts'
import type { AutomationStore, ProjectScope } from '../records/store.ts'

/** The projects that automation holds, and with `removed` also those that it held. */
export async function* scopesOf(
  store: AutomationStore,
  signal: AbortSignal,
  removed = false,
): AsyncGenerator<ProjectScope> {
  for await (const entries of store.records.range(boundsOf(globalKey('head')), { signal })) {
    for (const { key, value } of entries) {
      const head = decodeRecord<{ readonly generation: number; readonly removed: boolean }>(key, value)
      if (removed || !head.removed)
        yield { projectId: partsOf(key)[2], generation: head.generation, head: { key, value } }
    }
  }
}
