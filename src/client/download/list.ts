import { linkedAbort, orAborted } from '../../async/abort.ts'
import { checkCount, CONCURRENCY_MAX, inGroups, merge } from '../common/concurrency.ts'
import { ClientError, quoted } from '../common/errors.ts'
import { SeenIds } from '../common/seen-ids.ts'
import { decodeLines } from './lines.ts'
import { IDS_PER_REQUEST, idsBody, type Remote } from '../http/remote.ts'
import type { CallOptions, Ids, ObjectText } from '../common/types.ts'

/** Options for downloading a list of objects. */
export interface ListOptions extends CallOptions {
  /** Requests at a time, of a thousand ids each. 4 by default, 1,000 at most. */
  readonly concurrency?: number
  /** Told of ids that the server does not hold, as soon as it is known. */
  readonly onMissing?: (ids: readonly string[]) => void
  /** Fail with `objects_missing` instead. */
  readonly strict?: boolean
}

const CONCURRENCY = 4

/**
 * The objects of a list, each once, in the order of their arrival. After a break the client asks for the rest again.
 */
export async function* listTexts(
  remote: Remote,
  ids: Ids,
  options: ListOptions,
): AsyncGenerator<readonly ObjectText[]> {
  const concurrency = checkCount('concurrency', options.concurrency ?? CONCURRENCY, CONCURRENCY_MAX)
  const { controller, unlink } = linkedAbort(options.signal)
  const { signal } = controller
  const batches = merge(parts(remote, ids, { ...options, signal }), concurrency)
  try {
    signal.throwIfAborted()
    for (
      let next = await orAborted(batches.next(), signal);
      next.done !== true;
      next = await orAborted(batches.next(), signal)
    )
      yield next.value
  } finally {
    unlink()
    controller.abort(new ClientError('network_failed', 'the list is not read any further'))
    batches.return(undefined).catch(() => undefined)
  }
}

async function* parts(
  remote: Remote,
  ids: Ids,
  options: ListOptions & { readonly signal: AbortSignal },
): AsyncGenerator<AsyncIterable<readonly ObjectText[]>> {
  for await (const group of inGroups(onlyOnce(ids), IDS_PER_REQUEST)) yield onePart(remote, group, options)
}

async function* onlyOnce(ids: Ids): AsyncGenerator<string> {
  const seen = new SeenIds()
  for await (const id of ids) if (seen.add(id)) yield id
}

async function* onePart(
  remote: Remote,
  group: readonly string[],
  options: ListOptions & { readonly signal: AbortSignal },
): AsyncGenerator<readonly ObjectText[]> {
  const left = new Set(group)
  const attempts = remote.retry.begin(options.signal)
  for (;;) {
    try {
      for await (const batch of request(remote, left, options.signal)) {
        attempts.progressed()
        yield batch
      }
      break
    } catch (error) {
      await attempts.failed(error)
      if (left.size === 0) return
    }
  }
  if (left.size === 0) return
  const missing = [...left]
  if (options.strict === true) throw missingError(missing)
  options.onMissing?.(missing)
}

/**
 * One request for the remaining ids. Removes received ids from `left`; resolves only if everything that was announced
 * has arrived.
 */
async function* request(remote: Remote, left: Set<string>, signal: AbortSignal): AsyncGenerator<readonly ObjectText[]> {
  const { headers, body } = idsBody([...left])
  const answer = await remote.connection.request({
    method: 'POST',
    path: ['api', 'getobjects', remote.projectId],
    headers: { ...headers, Accept: 'text/plain' },
    body,
    signal,
  })
  answer.checkType('text/plain')
  for await (const batch of decodeLines(answer.chunks(), answer.what)) {
    const wanted = batch.filter(({ id }) => left.delete(id))
    if (wanted.length > 0) yield wanted
  }
  const missing = answer.count('Stowage-Missing-Objects') ?? left.size
  if (left.size <= missing) return
  throw new ClientError(
    'integrity_failed',
    `${answer.what} omitted ${left.size} objects, but reported ${missing} missing`,
    { isRetryable: true },
  )
}

export function missingError(ids: readonly string[]): ClientError {
  const some = ids.slice(0, 5).map((id) => quoted(id))
  return new ClientError('objects_missing', `${ids.length} of the objects are not held, such as ${some.join(', ')}`, {
    ids: ids.slice(0, 100),
  })
}
