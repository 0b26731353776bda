import type { Connection } from './connection.ts'
import { isWholeTextOf } from '../common/content-id.ts'
import { ClientError, quoted } from '../common/errors.ts'
import type { RetryPolicy } from './retry.ts'
import type { ObjectText } from '../common/types.ts'

/** One project on the server, as all calls need it. */
export interface Remote {
  readonly connection: Connection
  readonly retry: RetryPolicy
  readonly projectId: string
}

/** The most ids that the interface recommends for one request. */
export const IDS_PER_REQUEST = 1_000

const LONE_SURROGATE = /\p{Surrogate}/u
const SINGLE_BYTES_MAX = 256 * 1_048_576
const DIFF_BYTES_MAX = 16 * 1_048_576

export function idsBody(ids: readonly string[]): { readonly headers: Record<string, string>; readonly body: string } {
  return { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ objects: JSON.stringify(ids) }) }
}

/** The text of one object, `undefined` when it is not held. */
export function fetchObject(
  { connection, retry, projectId }: Remote,
  id: string,
  signal: AbortSignal | undefined,
): Promise<ObjectText | undefined> {
  checkPathId(id)
  return retry.run(signal, async () => {
    try {
      const answer = await connection.request({
        method: 'GET',
        path: ['objects', projectId, id, 'single'],
        headers: { Accept: 'application/json' },
        signal,
      })
      answer.checkType('application/json')
      const object = { id, json: await answer.text(SINGLE_BYTES_MAX) }
      if (isWholeTextOf(object)) return object
      throw new ClientError('invalid_answer', `${answer.what} did not return the object ${quoted(id)}`)
    } catch (error) {
      if (error instanceof ClientError && error.code === 'not_found') return undefined
      throw error
    }
  })
}

/** Which of these ids, a thousand at most, are held. */
export function fetchHeld(
  { connection, retry, projectId }: Remote,
  ids: readonly string[],
  signal: AbortSignal | undefined,
  onHeaders?: (headers: Headers) => void,
): Promise<ReadonlySet<string>> {
  return retry.run(signal, async () => {
    const answer = await connection.request({
      method: 'POST',
      path: ['api', 'diff', projectId],
      ...idsBody(ids),
      signal,
    })
    onHeaders?.(answer.headers)
    const held = parseJson(await answer.text(DIFF_BYTES_MAX), answer.what)
    const silent = ids.find((id) => !Object.hasOwn(held, id) || typeof held[id] !== 'boolean')
    if (silent !== undefined)
      throw new ClientError('invalid_answer', `${answer.what} does not say whether ${quoted(silent)} is held`)
    return new Set(ids.filter((id) => held[id] === true))
  })
}

/** Throws `invalid_answer` unless it is a JSON object. */
export function parseJson(text: string, what: string): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch (cause) {
    throw new ClientError('invalid_answer', `${what} answered with invalid JSON`, { cause })
  }
  throw new ClientError('invalid_answer', `${what} answered with JSON that is not an object`)
}

/** URL parsers take dots for steps in the path, encoded or not. Throws `invalid_id`. */
export function checkPathId(id: string): void {
  checkWellFormed(id)
  if (id === '' || id === '.' || id === '..')
    throw new ClientError(
      'invalid_id',
      `the id ${JSON.stringify(id)} cannot be part of a URL; only objects can have it, and list fetches them`,
    )
}

/** Half a character has no UTF-8, so nothing can be named by it. Throws `invalid_id`. */
export function checkWellFormed(id: string): void {
  if (LONE_SURROGATE.test(id))
    throw new ClientError('invalid_id', `the id ${quoted(id)} holds a lone surrogate; it must be well-formed Unicode`)
}
