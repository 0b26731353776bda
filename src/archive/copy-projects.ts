import type { ClientOptions } from '../client/client.ts'
import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import { listProjects } from './list-projects.ts'
import { mirrorProject, type MirrorProgress } from './mirror.ts'
import { differenceOf, type ProjectContents, projectContents } from './project-contents.ts'
import { remoteProject } from './remote.ts'

/** How projects are copied. */
export interface CopyProjectsOptions {
  /** Aborts the copy, which can be repeated. */
  readonly signal: AbortSignal
  /** Called as objects are copied, and `compared` before everything of a project is compared. */
  readonly onProgress: (project: string, progress: MirrorProgress | 'compared') => void
}

/** A project that was copied, and what both sides hold of it. */
export interface CopiedProject extends ProjectContents {
  readonly project: string
}

/**
 * Copies every project of a storage to another one that has the same keys, and then reads both sides and compares them.
 * A copy that was stopped continues when it is started again. Nobody may change either side meanwhile. Throws
 * `corrupt_data` where a project differs in the end.
 */
export async function copyProjects(
  from: ClientOptions,
  to: ClientOptions,
  { signal, onProgress }: CopyProjectsOptions,
): Promise<readonly CopiedProject[]> {
  const projects = await listProjects(from, signal)
  for (const projectId of projects)
    await mirrorProject(
      { ...from, projectId },
      { ...to, projectId },
      { signal, hasSealedSecrets: true, onProgress: (progress) => onProgress(projectId, progress) },
    )
  const copied: CopiedProject[] = []
  for (const projectId of projects) {
    onProgress(projectId, 'compared')
    const source = await projectContents(remoteProject({ ...from, projectId }, signal))
    const target = await projectContents(remoteProject({ ...to, projectId }, signal))
    const difference = differenceOf(source, target)
    if (difference !== undefined)
      throw new StowageError(
        'corrupt_data',
        `the copy of the project ${quoted(projectId)} differs: ${difference}. Copy into an empty place`,
      )
    copied.push({ project: projectId, ...source })
  }
  const others = (await listProjects(to, signal)).filter((id) => !projects.includes(id))
  if (others.length > 0)
    throw new StowageError(
      'corrupt_data',
      `the target has the project ${quoted(others[0])}, which the source lacks. Copy into an empty place`,
    )
  return copied
}
