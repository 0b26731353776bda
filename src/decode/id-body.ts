import { isUtf8 } from 'node:buffer'
import { StowageError } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { MemoryLease } from '../memory/memory-lease.ts'
import { quoted } from '../object/id.ts'
import type { Yielder } from '../async/yielder.ts'
import { isGzip, isGzipEncoded } from './content-format.ts'
import { collectBytes } from './collect-bytes.ts'
import { gunzip } from './gunzip.ts'
import type { ContentType } from './header-value.ts'
import { sniff } from './sniff.ts'
import { type UploadSource, readWire } from './wire.ts'

const GZIP_MAGIC_BYTES = 2
const WHAT = 'the body'
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

export interface IdBody {
  readonly type: 'json' | 'form'
  /** The whole body, inflated; it may be overwritten. */
  readonly bytes: Uint8Array
}

export interface IdBodyOptions {
  readonly signal: AbortSignal
  readonly yielder: Yielder
  readonly formAccepted: boolean
  readonly memory?: MemoryLease | undefined
}

/**
 * The whole body of a request that lists ids. Throws `unsupported_media_type`, `id_list_too_large` for more than
 * `idListBytesMax` bytes on the wire or inflated, `invalid_gzip`, `invalid_utf8` and `request_aborted`.
 */
export async function readIdBody(source: UploadSource, limits: Limits, options: IdBodyOptions): Promise<IdBody> {
  const type = acceptedType(source.contentType, options.formAccepted)
  const gzipPromised = isGzipEncoded(source.contentEncoding, WHAT)
  const bytesMax = limits.idListBytesMax
  const { signal, yielder, memory } = options
  const content = await sniff(
    readWire(source, { code: 'id_list_too_large', bytesMax, signal, yielder }),
    GZIP_MAGIC_BYTES,
  )
  try {
    const gzip = isGzip(content.opening, gzipPromised ? 'gzip' : 'json', WHAT)
    const inflate = { tally: { inflatedBytes: 0 }, code: 'id_list_too_large', bytesMax, what: WHAT, yielder } as const
    const chunks = gzip ? gunzip(content.whole, inflate) : content.whole
    const bytes = await collectBytes(chunks, {
      expectedBytes: gzip ? 0 : source.contentLength,
      bytesMax,
      memory,
      code: 'id_list_too_large',
    })
    if (!isUtf8(bytes)) throw new StowageError('invalid_utf8', 'the body is not UTF-8')
    return { type, bytes }
  } finally {
    await content.close()
  }
}

function acceptedType({ mediaType, parameters, text }: ContentType, formAccepted: boolean): IdBody['type'] {
  const charset = parameters.get('charset')?.toLowerCase() ?? 'utf-8'
  const isUtf8Declared = charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii'
  if (isUtf8Declared && mediaType === JSON_TYPE) return 'json'
  if (isUtf8Declared && mediaType === FORM_TYPE && formAccepted) return 'form'
  const accepted = formAccepted ? `${JSON_TYPE} or ${FORM_TYPE}` : JSON_TYPE
  throw new StowageError(
    'unsupported_media_type',
    `${WHAT} has the content type ${quoted(text)}; it must be ${accepted}, in UTF-8`,
  )
}
