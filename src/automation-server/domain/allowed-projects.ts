import { claimAuthorize, ALL_PROJECTS, type Principal } from '../../access/access.ts'
import { StowageError } from '../../errors.ts'
import { checkProjectId } from '../../object/id.ts'

/** Projects, beside its own, in which a run may read and write. */
export interface AllowedProjects {
  readonly others: readonly string[]
  readonly everywhere: boolean
}

/** The most projects that an automation names, and that are kept of the rights of the person who started a run. */
const PROJECTS_MAX = 100

/**
 * The projects that the automation names, and those in which the person who started the run may write, according to the
 * claims of the principal. Beyond a hundred of the latter, the rest is omitted.
 */
export function allowedProjectsOf(named: readonly string[], starter?: Principal): AllowedProjects {
  const { projects = {} } = starter ?? {}
  const claimed = [...(projects instanceof Map ? projects.keys() : Object.keys(projects))] as readonly string[]
  const own = claimed.filter(
    (id) => id !== ALL_PROJECTS && starter !== undefined && claimAuthorize(starter, id, 'write'),
  )
  return {
    others: [...new Set([...named, ...own.slice(0, PROJECTS_MAX)])],
    everywhere: starter !== undefined && claimed.includes(ALL_PROJECTS) && claimAuthorize(starter, '', 'write'),
  }
}

export function allowsProject({ others, everywhere }: AllowedProjects, projectId: string): boolean {
  return everywhere || others.includes(projectId)
}

/** Throws `invalid_request` for too many, and `invalid_id`. */
export function checkProjects(projects: readonly string[]): readonly string[] {
  if (projects.length > PROJECTS_MAX)
    throw new StowageError(
      'invalid_request',
      `an automation names ${projects.length} projects; the limit is ${PROJECTS_MAX}`,
    )
  for (const projectId of projects) checkProjectId(projectId)
  return [...new Set(projects)]
}
