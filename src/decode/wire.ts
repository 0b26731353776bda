import { closeIterator, orAborted } from '../async/abort.ts'
import { isServiceError, StowageError } from '../errors.ts'
import { tooLarge } from '../limits.ts'
import type { ContentType } from './header-value.ts'
import type { Yielder } from '../async/yielder.ts'

/** So that no stage works on more than this in one go, also when a host hands over the whole body as one buffer. */
const CHUNK_BYTES_MAX = 262_144

/**
 * A request's body with the facts from its headers. The body's iterator is returned early when decoding fails or is
 * aborted.
 */
export interface UploadSource {
  readonly contentType: ContentType
  readonly contentEncoding: string | undefined
  /** Bytes, as declared by the client. */
  readonly contentLength: number | undefined
  readonly body: AsyncIterable<Uint8Array>
}

export interface WireOptions {
  readonly code: 'request_too_large' | 'id_list_too_large'
  readonly bytesMax: number
  readonly signal: AbortSignal
  readonly yielder: Yielder
}

/**
 * The body as it comes from the wire, in pieces of at most 256 KB. A declared length over the bound is refused before
 * anything is read; otherwise the first byte over it is. Throws `request_aborted` when the client disconnects, or the
 * signal's own reason if that is a `StowageError`.
 */
export async function* readWire(source: UploadSource, options: WireOptions): AsyncGenerator<Uint8Array> {
  const { bytesMax, signal, yielder } = options
  if ((source.contentLength ?? 0) > bytesMax)
    throw tooLarge(options.code, `the request's body (${source.contentLength} bytes)`, bytesMax)
  const iterator = source.body[Symbol.asyncIterator]()
  let received = 0
  let ended = false
  try {
    for (;;) {
      // A body whose client is gone may never settle, so the signal wins over it.
      const step = await orAborted(iterator.next(), signal).catch((cause: unknown) => {
        throw aborted(cause)
      })
      if (step.done === true) {
        ended = true
        return
      }
      received += step.value.length
      if (received > bytesMax) throw tooLarge(options.code, "the request's body", bytesMax)
      for (let at = 0; at < step.value.length; at += CHUNK_BYTES_MAX)
        yield step.value.subarray(at, at + CHUNK_BYTES_MAX)
      await yielder.due()
    }
  } finally {
    if (!ended) void closeIterator(iterator)
  }
}

function aborted(cause: unknown): StowageError {
  if (isServiceError(cause)) return cause
  return new StowageError('request_aborted', 'the request ended before its body was complete', { cause })
}
