import type { DeflatePool } from '../compression/deflate-pool.ts'
import { emit, emittedLength, type Heartbeat } from '../emit/emit.ts'
import { type ErrorBody, StowageError } from '../errors.ts'
import type { AttributeMask } from '../object/wire-types.ts'
import { ANSWER_BYTES } from '../memory/answer-memory.ts'
import type { MemoryLease } from '../memory/memory-lease.ts'
import { quoted } from '../object/id.ts'
import { MISSING_IDS_TOLD_MAX, type Selection } from '../object/selection.ts'
import { checkIfMatch, isUnmodified, requestedRange } from './conditional.ts'
import type { Answer, Exchange } from './exchange.ts'
import { type Coding, type Format, MEDIA_TYPES } from './negotiate.ts'

/** The form in which the objects of a selection are sent. */
export interface Encoding {
  readonly format: Format
  readonly coding: Coding
  /**
   * The name of the file, when the gzip bytes leave as a file of their own (`?archive=gzip`) and not as the coding of a
   * text.
   */
  readonly archiveName?: string
  readonly mask?: AttributeMask
  readonly heartbeat?: Heartbeat
}

export interface AnswerOptions {
  readonly encoding: Encoding
  readonly compressor: DeflatePool
}

const MISSING_IDS_IN_MESSAGE = 5

/**
 * Hands a selection over to the answer that `make` makes of it, or frees it when that throws. What it holds is leased
 * first.
 */
export async function releasing(
  selection: Selection,
  memory: MemoryLease,
  make: () => Answer | Promise<Answer>,
): Promise<Answer> {
  try {
    await (selection.lease?.(memory) ?? memory.hold(ANSWER_BYTES))
    const answer = await make()
    return {
      ...answer,
      roomBytes: () => selection.roomBytes ?? Infinity,
      sent: (bytes) => selection.memory?.giveBack(bytes),
      release: () => selection.release(),
    }
  } catch (error) {
    selection.release()
    throw error
  }
}

/** Throws `objects_missing` for `?strict` if something is missing. */
export async function checkComplete(
  exchange: { readonly query: URLSearchParams },
  selection: Selection,
): Promise<void> {
  if (selection.missing === 0 || !exchange.query.has('strict')) return
  const ids = await selection.missingIds(MISSING_IDS_TOLD_MAX)
  const first = ids.slice(0, MISSING_IDS_IN_MESSAGE).map((id) => quoted(id))
  throw new ObjectsMissingError(`${selection.missing} of the objects are not held, such as ${first.join(', ')}`, ids)
}

/** Its body names the ids, the first hundred of them. */
class ObjectsMissingError extends StowageError {
  readonly ids: readonly string[]

  constructor(message: string, ids: readonly string[]) {
    super('objects_missing', message)
    this.ids = ids
  }

  override toJSON(): ErrorBody {
    return { ...super.toJSON(), ids: this.ids }
  }
}

/** The whole selection, streamed. */
export function wholeAnswer(selection: Selection, options: AnswerOptions, signal: AbortSignal): Answer {
  const { encoding, compressor } = options
  return {
    status: 200,
    headers: selectionHeaders(selection, encoding),
    body: emit(selection, encoding, { signal, compressor }),
  }
}

/** With a plan behind it every byte is known before the first one: lengths, entity tags, conditions and ranges. */
export function plannedAnswer<H>(exchange: Exchange<H>, selection: Selection, options: AnswerOptions): Answer {
  const { encoding, compressor } = options
  const { signal, method, headers: asked } = exchange
  if (selection.plan === undefined) return wholeAnswer(selection, options, signal)
  const etag = `"${selection.plan.digest}-${encoding.format}-${encoding.coding}"`
  const headers = { ...selectionHeaders(selection, encoding), ETag: etag }
  checkIfMatch(asked, etag)
  if (isUnmodified(asked, etag)) return { status: 304, headers: notModifiedHeaders(headers) }
  const length = emittedLength(selection, encoding)
  if (length === undefined) return { status: 200, headers, body: emit(selection, encoding, { signal, compressor }) }
  const ranged = { ...headers, 'Accept-Ranges': 'bytes' }
  const range = method === 'GET' ? requestedRange(asked, etag, length) : undefined
  if (range === undefined)
    return { status: 200, headers: ranged, length, body: emit(selection, encoding, { signal, compressor }) }
  const { start, end } = range
  return {
    status: 206,
    headers: { ...ranged, 'Content-Range': `bytes ${start}-${end - 1}/${length}` },
    length: end - start,
    body: emit(selection, { ...encoding, start, end }, { signal, compressor }),
  }
}

/** Everything that list, graph and stream say about a selection before its first byte. */
function selectionHeaders(selection: Selection, encoding: Encoding): Record<string, string> {
  const { closureDigest, have } = selection
  return {
    ...contentHeaders(encoding),
    Vary: 'Accept, Accept-Encoding, Authorization',
    'Cache-Control': 'private, no-cache',
    'Stowage-Objects': String(selection.objects),
    'Stowage-Missing-Objects': String(selection.missing),
    ...(closureDigest === undefined ? {} : { 'Stowage-Closure': closureDigest }),
    ...(have === undefined
      ? {}
      : { 'Stowage-Have': have.map(({ id, outcome }) => `${encodeURIComponent(id)};${outcome}`).join(', ') }),
  }
}

function contentHeaders({ format, coding, archiveName }: Encoding): Record<string, string> {
  if (archiveName !== undefined)
    return { 'Content-Type': 'application/gzip', 'Content-Disposition': `attachment; filename="${archiveName}"` }
  return { 'Content-Type': MEDIA_TYPES[format], ...(coding === 'gzip' ? { 'Content-Encoding': 'gzip' } : {}) }
}

/** A 304 has no representation to describe (RFC 9110 section 15.4.5). */
function notModifiedHeaders(headers: Record<string, string>): Record<string, string> {
  const { 'Content-Type': _type, 'Content-Encoding': _encoding, ...rest } = headers
  return rest
}
