import type { ObjectCache } from './download/cache.ts'
import { Connection, type ConnectionOptions } from './http/connection.ts'
import { createProject, type Project } from './project.ts'
import { checkPathId } from './http/remote.ts'
import { RetryPolicy, type RetryOptions } from './http/retry.ts'
import { Origins } from './serializer/origins.ts'

/** Where the service is, who asks, and how patiently. */
export interface ClientOptions extends ConnectionOptions {
  /** How failures of the network and passing ones of the server are dealt with; `false` never tries again. */
  readonly retry?: RetryOptions | false
  /** Keeps what is downloaded, so that it is not downloaded twice. */
  readonly cache?: ObjectCache
  /** What is known of values that were received. Clients that share it can send what another one received, under the same ids. */
  readonly origins?: Origins
}

/** One service, as one token sees it. */
export interface Client {
  /** The service's address, without a slash at the end. */
  readonly url: string
  /** Asks nothing: a project exists from its first object on. Throws `invalid_id`. */
  project(projectId: string): Project
}

/** A client of one service, with one token. Throws `TypeError` and `RangeError` for options that cannot be. */
export function createClient(options: ClientOptions): Client {
  const connection = new Connection(options)
  const retry = new RetryPolicy(options.retry)
  const origins = options.origins ?? new Origins()
  return {
    url: connection.url,
    project: (projectId) => {
      checkPathId(projectId)
      return createProject({ remote: { connection, retry, projectId }, cache: options.cache, origins })
    },
  }
}
