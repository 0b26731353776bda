import type { ObjectCache } from './download/cache.ts'
import { Connection, type ConnectionOptions } from './http/connection.ts'
import { createProject, type Project } from './project.ts'
import { checkPathId } from './http/remote.ts'
import { RetryPolicy, type RetryOptions } from './http/retry.ts'
import { Origins } from './serializer/origins.ts'

/** The address of the service, the credentials, and the time limits. */
export interface ClientOptions extends ConnectionOptions {
  /** How failures of the network and temporary ones of the server are retried; `false` turns retries off. */
  readonly retry?: RetryOptions | false
  /** Keeps downloaded objects, so that they are not downloaded twice. */
  readonly cache?: ObjectCache
  /**
   * Facts about received values. Clients that share it can send values that another one received, under the same ids.
   */
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
