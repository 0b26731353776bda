import type { GraphStore } from '../object/graph-store.ts'
import type { ServiceExtension } from './extension.ts'

/** What may hold something of a project. */
export interface ProjectSources {
  readonly store: Pick<GraphStore, 'projects' | 'holds'>
  readonly extensions: readonly Pick<ServiceExtension, 'projects' | 'holds'>[]
  readonly ready: () => Promise<void>
}

/** Ids of the projects of which something is held, each once, in batches. */
export async function* knownProjects({ store, extensions, ready }: ProjectSources): AsyncGenerator<readonly string[]> {
  await ready()
  const told = new Set<string>()
  for (const source of [store, ...extensions]) {
    for await (const ids of source.projects?.() ?? []) {
      const others = ids.filter((id) => !told.has(id))
      for (const id of others) told.add(id)
      if (others.length > 0) yield others
    }
  }
}

/** Whether anything of the project is held. */
export async function isKnownProject(
  { store, extensions, ready }: ProjectSources,
  projectId: string,
): Promise<boolean> {
  await ready()
  for (const source of [store, ...extensions]) if ((await source.holds?.(projectId)) === true) return true
  return false
}
