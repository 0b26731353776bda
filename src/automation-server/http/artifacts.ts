import { checkIfMatch, isUnmodified, requestedRange } from '../../http/conditional.ts'
import type { Answer, Exchange } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import type { ArtifactRecord, Artifacts } from '../domain/artifacts.ts'
import type { HttpDeps } from './deps.ts'
import { resource } from './handlers.ts'

const ETAG_HEX_DIGITS = 32
/** Characters of `attr-char` (RFC 8187 section 3.2.1) that `encodeURIComponent` leaves, though they are none. */
const NO_ATTR_CHARACTERS = /['()*]/g

/** Files of runs, as files: whatever they hold, a browser saves them and runs nothing of them. */
export function artifactResources<H>({ domain, context: { guard } }: HttpDeps<H>): readonly Resource<H>[] {
  return [
    resource('/api/v1/projects/:projectId/artifacts/:artifactId', {
      GET: async (exchange) => {
        await guard(exchange, 'read')
        return artifactAnswer(
          domain.artifacts,
          await domain.artifacts.get(exchange.params.projectId, exchange.params.artifactId),
          exchange,
        )
      },
    }),
  ]
}

function artifactAnswer(
  artifacts: Artifacts,
  record: ArtifactRecord,
  { method, headers, signal }: Pick<Exchange<unknown>, 'method' | 'headers' | 'signal'>,
): Answer {
  const { sizeBytes, sha256, name } = record
  const etag = `"${sha256.slice(0, ETAG_HEX_DIGITS)}"`
  const common = {
    ETag: etag,
    'Cache-Control': 'private, max-age=31536000, immutable',
    'Accept-Ranges': 'bytes',
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'X-Content-Type-Options': 'nosniff',
  }
  checkIfMatch(headers, etag)
  if (isUnmodified(headers, etag)) return { status: 304, headers: common }
  // A range of a HEAD has no meaning (RFC 9110 section 14.2).
  const range = method === 'HEAD' ? undefined : requestedRange(headers, etag, sizeBytes)
  const { start, end } = range ?? { start: 0, end: sizeBytes }
  return {
    status: range === undefined ? 200 : 206,
    headers: {
      ...common,
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': contentDisposition(name),
      ...(range === undefined ? {} : { 'Content-Range': `bytes ${start}-${end - 1}/${sizeBytes}` }),
    },
    body: artifacts.read(record, start, end, signal),
    length: end - start,
  }
}

/**
 * RFC 6266 section 4, with the extended name of RFC 8187 for anything that ASCII cannot express. The extension, by
 * which people know the kind of file, always stays at the end.
 */
export function contentDisposition(displayName: string): string {
  const name = displayName.replace(/\p{Bidi_Control}/gu, '')
  const plain = name.replace(/[^\x20-\x7e]|["\\%/]/g, '_')
  const extended = encodeURIComponent(name).replace(
    NO_ATTR_CHARACTERS,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${extended}`
}
