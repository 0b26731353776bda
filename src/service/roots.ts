import { StowageError } from '../errors.ts'
import type { GraphStore } from '../object/graph-store.ts'
import type { GraphRoot, ProjectUsage } from '../object/roots.ts'
import type { ServiceExtension } from './extension.ts'

/** The sources of the roots of a service. */
export interface RootSources {
  readonly store: GraphStore
  readonly extensions: readonly Pick<ServiceExtension, 'roots'>[]
  readonly ready: () => Promise<void>
}

/** Everything of a project that must not be collected, in batches: pins, and the needs of the extensions. */
export async function* rootsOf(
  { store, extensions }: RootSources,
  projectId: string,
): AsyncGenerator<readonly GraphRoot[]> {
  const pins = (await store.pins?.list(projectId)) ?? []
  yield pins.map(({ id, rootObjectId }) => ({ kind: 'pin', id, groupId: null, rootObjectId }))
  for (const extension of extensions) yield* extension.roots?.(projectId) ?? []
}

/** The usage of a project, by its roots. Throws `not_supported` over a host's own `ObjectStore`. */
export async function usageOf(sources: RootSources, projectId: string, signal: AbortSignal): Promise<ProjectUsage> {
  const { usages } = sources.store
  if (usages === undefined) throw new StowageError('not_supported', 'usage needs a storage backend')
  await sources.ready()
  const roots: GraphRoot[] = []
  for await (const batch of rootsOf(sources, projectId)) roots.push(...batch)
  return usages.usage(projectId, roots, { signal })
}
