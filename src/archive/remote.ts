import type { ClientOptions } from '../client/client.ts'
import { Connection } from '../client/http/connection.ts'
import { checkPathId } from '../client/http/remote.ts'
import { RetryPolicy } from '../client/http/retry.ts'
import { RemoteProject } from './remote-project.ts'

/** The place of a project: a server's address, or a service in this process with its `fetch`, and the token. */
export interface ProjectAddress extends ClientOptions {
  /** The project on that server. */
  readonly projectId: string
}

/** Throws `invalid_id`, and `TypeError` for an address that is not one. */
export function remoteProject(address: ProjectAddress, signal?: AbortSignal): RemoteProject {
  const { projectId, retry } = address
  checkPathId(projectId)
  return new RemoteProject({ connection: new Connection(address), retry: new RetryPolicy(retry), projectId }, signal)
}
