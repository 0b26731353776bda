import type { ClientOptions } from '../client/client.ts'
import { Connection } from '../client/http/connection.ts'
import type { Remote } from '../client/http/remote.ts'
import { RetryPolicy } from '../client/http/retry.ts'

/** What a server says about itself. */
export interface ListedStore {
  /** The id of its storage; `undefined` if it does not tell. */
  readonly storeId: string | undefined
  /** Ids of the projects in which the token may read. */
  readonly projects: readonly string[]
}

const IDS_BYTES_MAX = 64 * 1_048_576

/** Ids of the projects of a server in which the token may read. */
export async function listProjects(server: ClientOptions, signal: AbortSignal | undefined): Promise<readonly string[]> {
  return (await listStore(server, signal)).projects
}

/** The same with the id of the storage. */
export function listStore(server: ClientOptions, signal: AbortSignal | undefined): Promise<ListedStore> {
  return listedStore({ connection: new Connection(server), retry: new RetryPolicy(server.retry) }, signal)
}

export async function listedStore(
  { connection, retry }: Pick<Remote, 'connection' | 'retry'>,
  signal: AbortSignal | undefined,
): Promise<ListedStore> {
  return retry.run(signal, async () => {
    const answer = await connection.request({ method: 'GET', path: ['api', 'v1', 'projects'], signal })
    const lines = (await answer.text(IDS_BYTES_MAX)).split('\n').slice(0, -1)
    return {
      storeId: answer.headers.get('Stowage-Store') ?? undefined,
      projects: lines.map((line) => JSON.parse(line) as string),
    }
  })
}
