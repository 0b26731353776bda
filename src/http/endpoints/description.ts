import { createHash } from 'node:crypto'
import { type DocumentOptions, openApiDocument } from '../../openapi/document.ts'
import { checkIfMatch, isUnmodified } from '../conditional.ts'
import type { Exchange, Operation } from '../exchange.ts'
import { MEDIA_TYPES } from '../negotiate.ts'

export const DESCRIPTION_PATH = '/api/openapi.json'

const ETAG_HEX_DIGITS = 32
const MAX_AGE_S = 3_600
/** Relative to the document's own address: two segments up, where the paths begin. */
const RELATIVE_SERVER = '..'

interface Described {
  readonly server: string
  readonly text: Uint8Array
  readonly etag: string
}

/** `GET /api/openapi.json`: the description of the service, for everybody. It names the path under which it was asked for as its server. */
export function descriptionOperation<H>(options: Omit<DocumentOptions, 'server'>): Operation<H> {
  // Nearly always one: a service is mounted in several places seldom, and under a path with parameters more seldom
  // still.
  let last: Described | undefined
  return async (exchange) => {
    const server = serverOf(exchange)
    const { text, etag } = last?.server === server ? last : (last = described({ ...options, server }))
    const common = { ETag: etag, 'Cache-Control': `public, max-age=${MAX_AGE_S}` }
    checkIfMatch(exchange.headers, etag)
    if (isUnmodified(exchange.headers, etag)) return { status: 304, headers: common }
    return { status: 200, headers: { ...common, 'Content-Type': MEDIA_TYPES.json }, body: text }
  }
}

function described(options: DocumentOptions): Described {
  const text = Buffer.from(JSON.stringify(openApiDocument(options)))
  const etag = `"${createHash('sha256').update(text).digest('hex').slice(0, ETAG_HEX_DIGITS)}"`
  return { server: options.server, text, etag }
}

/** A path that begins with two slashes would name another server. */
function serverOf({ path, isPathCut }: Pick<Exchange<unknown>, 'path' | 'isPathCut'>): string {
  if (isPathCut || !path.endsWith(DESCRIPTION_PATH) || path.startsWith('//')) return RELATIVE_SERVER
  const mountedAt = path.slice(0, -DESCRIPTION_PATH.length)
  return mountedAt === '' ? '/' : mountedAt
}
