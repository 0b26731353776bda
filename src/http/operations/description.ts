import { createHash } from 'node:crypto'
import { type DocumentOptions, openApiDocument } from '../../openapi/document.ts'
import { checkIfMatch, isUnmodified } from '../conditional.ts'
import type { Operation } from '../exchange.ts'
import { MEDIA_TYPES } from '../negotiate.ts'

const ETAG_HEX_DIGITS = 32
const MAX_AGE_S = 3_600

/** `GET /api/openapi.json`: the description of the service, for everybody. */
export function descriptionOperation<H>(options: DocumentOptions): Operation<H> {
  const described = madeOnce(() => {
    const text = Buffer.from(JSON.stringify(openApiDocument(options)))
    return { text, etag: `"${createHash('sha256').update(text).digest('hex').slice(0, ETAG_HEX_DIGITS)}"` }
  })
  return async ({ headers }) => {
    const { text, etag } = described()
    const common = { ETag: etag, 'Cache-Control': `public, max-age=${MAX_AGE_S}` }
    checkIfMatch(headers, etag)
    if (isUnmodified(headers, etag)) return { status: 304, headers: common }
    return { status: 200, headers: { ...common, 'Content-Type': MEDIA_TYPES.json }, body: text }
  }
}

/** A service is created more often than it is asked what it is. */
function madeOnce<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}
