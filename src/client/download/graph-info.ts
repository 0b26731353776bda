import type { Answer } from '../http/answer.ts'
import { ClientError } from '../common/errors.ts'
import { checkPathId, type Remote } from '../http/remote.ts'
import type { CallOptions } from '../common/types.ts'

/** The server's facts about a graph before its first object. */
export interface GraphInfo {
  /** The number of objects to come, if the server knows it. */
  readonly objects: number | undefined
  /** Objects that are missing. */
  readonly missing: number
  /** Names the set of all objects below the root, itself included: what `have` takes as `<root>@<closure>`. */
  readonly closure: string | undefined
  /** For each root of `have`, whether its objects were omitted, and if not, why. */
  readonly have: ReadonlyMap<string, string>
}

/** The server's facts about a graph, without the graph; `undefined` if its root is not held. */
export async function fetchInfo(
  { connection, retry, projectId }: Remote,
  root: string,
  { signal }: CallOptions,
): Promise<GraphInfo | undefined> {
  checkPathId(root)
  return retry.run(signal, async () => {
    try {
      const answer = await connection.request({
        method: 'HEAD',
        path: ['objects', projectId, root],
        headers: { Accept: 'text/plain' },
        signal,
      })
      answer.checkType('text/plain')
      answer.cancel()
      return infoOf(answer)
    } catch (error) {
      if (error instanceof ClientError && error.statusCode === 404) return undefined
      throw error
    }
  })
}

export function infoOf(answer: Answer): GraphInfo {
  return {
    objects: answer.count('Stowage-Objects'),
    missing: answer.count('Stowage-Missing-Objects') ?? 0,
    closure: answer.headers.get('Stowage-Closure') ?? undefined,
    have: parseHave(answer.headers.get('Stowage-Have')),
  }
}

function parseHave(header: string | null): ReadonlyMap<string, string> {
  const entries = (header ?? '').split(', ').filter((entry) => entry.includes(';'))
  return new Map(
    entries.map((entry): [string, string] => {
      const at = entry.lastIndexOf(';')
      return [decoded(entry.slice(0, at)), entry.slice(at + 1)]
    }),
  )
}

/** A text without encoding stays unchanged. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}
