import { ClientError } from '../client/common/errors.ts'
import { StowageError } from '../errors.ts'
import { quoted, quotedPath } from '../object/id.ts'
import type { ExportBase } from './format.ts'
import type { RemoteProject } from './remote-project.ts'

/**
 * Makes sure, before anything is read, that the project exists and continues the base. Throws `not_found`,
 * `invalid_request` for the base of another project, and `conflict` for one of another history.
 */
export async function checkSubject(project: RemoteProject, base?: ExportBase): Promise<void> {
  const { connection, projectId } = project.remote
  if (base?.project !== undefined && base.project !== projectId)
    throw new StowageError(
      'invalid_request',
      `${nameOf(base)} is of the project ${quoted(base.project)}, not of ${quoted(projectId)}; name the last archive of ${quoted(projectId)}, or export everything`,
    )
  try {
    if (await project.exists(base?.cursor ?? null)) return
  } catch (cause) {
    if (!(cause instanceof ClientError) || cause.code !== 'conflict' || base === undefined) throw cause
    throw new StowageError(
      'conflict',
      `the project ${quoted(projectId)} at ${connection.url} does not continue ${nameOf(base)}: that was exported from another server, or this one was restored or got older data since. Export everything (without --since), and begin a new chain`,
      { cause },
    )
  }
  throw new StowageError('not_found', `there is no project ${quoted(projectId)} at ${connection.url}`)
}

function nameOf({ path, cursor }: ExportBase): string {
  return path === undefined ? `the export with the cursor ${cursor}` : quotedPath(path)
}
