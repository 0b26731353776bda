import { hash } from 'node:crypto'
import type { DeflatePool } from '../../compression/deflate-pool.ts'
import { gzipFromFragments, shortGzip } from '../../emit/gzip.ts'
import { StowageError } from '../../errors.ts'
import type { ObjectSelector } from '../../object/graph-store.ts'
import { quoted } from '../../object/id.ts'
import type { Fragment } from '../../object/selection.ts'
import { checkIfMatch, isUnmodified } from '../conditional.ts'
import type { Guard } from '../core.ts'
import type { Answer, Operation } from '../exchange.ts'
import { acceptsIdentity, MEDIA_TYPES, negotiateCoding } from '../negotiate.ts'
import { readObject } from '../../operations/read-object.ts'

/** Shorter texts fit a packet as they are. */
const GZIP_BYTES_MIN = 1_024
/** Longer ones are compressed in the thread pool. */
const GZIP_HERE_BYTES_MAX = 32_768
const ETAG_HEX_DIGITS = 32

export interface SingleDeps<H> {
  readonly store: ObjectSelector
  readonly guard: Guard<H>
  readonly compressor: DeflatePool
}

/**
 * `GET /objects/{projectId}/{objectId}/single`: one object without its children. Answers JSON regardless of `Accept`,
 * since clients ask for text here and parse JSON.
 */
export function singleOperation<H>(deps: SingleDeps<H>): Operation<H> {
  const { store, guard, compressor } = deps
  return async (exchange) => {
    const { params, headers, signal, memory } = exchange
    const { projectId, objectId = '' } = params
    await guard(exchange, 'read')
    const coding = negotiateCoding(headers)
    const json = await readObject(store, projectId, objectId, { signal, memory })
    if (json === undefined)
      throw new StowageError('not_found', `there is no object ${quoted(objectId)} in this project`)
    exchange.trace.selected({ objects: 1, missing: 0 })
    const isGzip = coding === 'gzip' && (json.length >= GZIP_BYTES_MIN || !acceptsIdentity(headers))
    if (!isGzip) return objectAnswer(headers, json, undefined)
    const compressed = memory.part()
    await compressed.set(json.length)
    const gzip = json.length > GZIP_HERE_BYTES_MAX ? await gzipped(json, compressor, signal) : shortGzip(json)
    await compressed.set(gzip.length)
    return objectAnswer(headers, json, gzip)
  }
}

async function gzipped(json: Uint8Array, compressor: DeflatePool, signal: AbortSignal): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of gzipFromFragments(asFragments(json), { compressor, signal })) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function* asFragments(lines: Uint8Array): AsyncGenerator<readonly Fragment[]> {
  yield [{ lines }]
}

function objectAnswer(headers: Headers, json: Uint8Array, gzip: Uint8Array | undefined): Answer {
  const digest = hash('sha256', json, 'hex').slice(0, ETAG_HEX_DIGITS)
  const etag = `"${digest}-${gzip === undefined ? 'identity' : 'gzip'}"`
  const fields: Record<string, string> = {
    ETag: etag,
    'Cache-Control': 'private, max-age=31536000, immutable',
    Vary: 'Accept-Encoding, Authorization',
  }
  checkIfMatch(headers, etag)
  if (isUnmodified(headers, etag)) return { status: 304, headers: fields }
  fields['Content-Type'] = MEDIA_TYPES.json
  if (gzip !== undefined) fields['Content-Encoding'] = 'gzip'
  return { status: 200, headers: fields, body: gzip ?? json }
}
