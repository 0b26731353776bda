import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import { startsGzip } from './gunzip.ts'
import type { ContentType } from './header-value.ts'

/** The format that the headers of a body or of a part promise; with `open` the bytes decide. */
export type PromisedFormat = 'json' | 'gzip' | 'open'

const FORMAT_BY_TYPE: ReadonlyMap<string, PromisedFormat> = new Map([
  ['application/json', 'json'],
  ['text/plain', 'json'],
  ['application/gzip', 'gzip'],
  ['application/x-gzip', 'gzip'],
  ['application/octet-stream', 'open'],
  ['', 'open'],
])
const JSON_CHARSETS: ReadonlySet<string | undefined> = new Set([undefined, 'utf-8', 'utf8', 'us-ascii'])

export interface ContentHeaders {
  readonly contentType: ContentType
  readonly contentEncoding: string | undefined
}

export function isFileType({ mediaType }: ContentType): boolean {
  return FORMAT_BY_TYPE.has(mediaType ?? '')
}

/**
 * The format that the content type and the content encoding promise together. A gzip encoding around a gzip type is one
 * compression, not two: clients send both. `what` names the body or the part. Throws `unsupported_media_type`.
 */
export function promisedFormat(headers: ContentHeaders, what: string): PromisedFormat {
  const { mediaType, parameters, text } = headers.contentType
  const format = mediaType === undefined ? undefined : FORMAT_BY_TYPE.get(mediaType)
  if (format === undefined) {
    throw new StowageError(
      'unsupported_media_type',
      `${what} has the content type ${quoted(text)}; it must be application/json, text/plain, application/gzip or application/octet-stream`,
    )
  }
  if (format === 'json' && !JSON_CHARSETS.has(parameters.get('charset')?.toLowerCase())) {
    throw new StowageError(
      'unsupported_media_type',
      `${what} has the charset ${quoted(parameters.get('charset') ?? '')}; JSON must be UTF-8 (RFC 8259, section 8.1)`,
    )
  }
  return isGzipEncoded(headers.contentEncoding, what) ? 'gzip' : format
}

/** Throws `unsupported_media_type` for a coding other than gzip and identity. */
export function isGzipEncoded(contentEncoding: string | undefined, what: string): boolean {
  const coding = (contentEncoding ?? '').trim().toLowerCase()
  if (coding === 'gzip' || coding === 'x-gzip') return true
  if (coding === '' || coding === 'identity') return false
  throw new StowageError(
    'unsupported_media_type',
    `${what} has the content encoding ${quoted(coding)}; only gzip is accepted`,
  )
}

/**
 * Whether the content is gzip, from its first two bytes. Throws `invalid_request` if the headers promised another
 * format.
 */
export function isGzip(opening: Uint8Array, promised: PromisedFormat, what: string): boolean {
  const gzip = startsGzip(opening)
  if (gzip && promised === 'json') {
    throw new StowageError(
      'invalid_request',
      `${what} is gzip but is declared as plain JSON; declare the type application/gzip, or the encoding gzip, or send it uncompressed`,
    )
  }
  if (!gzip && promised === 'gzip') {
    throw new StowageError(
      'invalid_request',
      `${what} is declared as gzip but does not start with the bytes 1f 8b; compress it, or declare it as application/json`,
    )
  }
  return gzip
}
