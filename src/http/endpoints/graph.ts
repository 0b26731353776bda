import type { DeflatePool } from '../../compression/deflate-pool.ts'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import type { ClosureSelector } from '../../object/graph-store.ts'
import { parseHaveRoot } from '../../object/have-root.ts'
import type { Guard } from '../core.ts'
import type { Exchange, Operation } from '../exchange.ts'
import { negotiateCoding, negotiateFormat } from '../negotiate.ts'
import { checkComplete, type Encoding, plannedAnswer, releasing } from '../selection-answer.ts'

const HAVE_ROOTS_MAX = 100
/** Headers about lengths and entity tags, which only a planned answer has. */
const PLAN_HEADERS = ['range', 'if-range', 'if-match', 'if-none-match'] as const

export interface GraphDeps<H> {
  readonly store: ClosureSelector
  readonly guard: Guard<H>
  readonly compressor: DeflatePool
}

/**
 * `GET /objects/{projectId}/{objectId}`: a root with everything below it, without the objects that the client has
 * (`?have=`), or with deltas against them (`&delta`).
 */
export function graphOperation<H>(deps: GraphDeps<H>): Operation<H> {
  const { store, guard, compressor } = deps
  return async (exchange) => {
    const { params, query, signal, memory } = exchange
    const { projectId, objectId = '' } = params
    await guard(exchange, 'read')
    const encoding = graphEncoding(exchange)
    const have = query.getAll('have').map((value) => parseHaveRoot(value))
    if (have.length > HAVE_ROOTS_MAX)
      throw new StowageError('invalid_request', `have is repeated ${have.length} times; the limit is ${HAVE_ROOTS_MAX}`)
    // A line names the object of its delta by its id; an array of objects would not.
    const deltas = query.has('delta') && encoding.format === 'text'
    const selection = await store.closure(projectId, objectId, {
      signal,
      memory,
      needsPlan: needsPlan(exchange),
      ...(have.length === 0 ? {} : { have, deltas }),
    })
    if (selection === undefined)
      throw new StowageError('not_found', `there is no object ${quoted(objectId)} in this project`)
    exchange.trace.selected(selection)
    return releasing(selection, memory, async () => {
      await checkComplete(exchange, selection)
      return plannedAnswer(exchange, selection, { encoding, compressor })
    })
  }
}

function needsPlan({ method, headers }: Pick<Exchange<unknown>, 'method' | 'headers'>): boolean {
  return method === 'HEAD' || PLAN_HEADERS.some((name) => headers.has(name))
}

function graphEncoding(exchange: Pick<Exchange<unknown>, 'headers' | 'query' | 'params'>): Encoding {
  const archive = exchange.query.get('archive')
  if (archive === 'gzip') return { format: 'text', coding: 'gzip', archiveName: archiveName(exchange.params.objectId) }
  if (archive !== null)
    throw new StowageError('invalid_request', `archive is ${quoted(archive)}; "gzip" is the only archive format`)
  return { format: negotiateFormat(exchange.headers), coding: negotiateCoding(exchange.headers) }
}

/** An id names the file, if every file system and every header accepts it. */
function archiveName(objectId = ''): string {
  return /^[\w-]{1,100}$/.test(objectId) ? `${objectId}.txt.gz` : 'objects.txt.gz'
}
