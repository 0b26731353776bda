import type { ClientOptions } from '../client/client.ts'
import { Connection } from '../client/http/connection.ts'
import { RetryPolicy } from '../client/http/retry.ts'

const IDS_BYTES_MAX = 64 * 1_048_576

/** Ids of the projects of a server in which the token may read. */
export async function listProjects(server: ClientOptions, signal: AbortSignal | undefined): Promise<readonly string[]> {
  const text = await new RetryPolicy(server.retry).run(signal, async () => {
    const answer = await new Connection(server).request({ method: 'GET', path: ['api', 'v1', 'projects'], signal })
    return answer.text(IDS_BYTES_MAX)
  })
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as string)
}
