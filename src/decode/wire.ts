import { StowageError } from '../errors.ts'
import { tooLarge } from '../limits.ts'
import type { Breather } from './breather.ts'

/** So that no stage works on more than this in one go, also when a host hands over the whole body as one buffer. */
const CHUNK_BYTES_MAX = 262_144

/** A request's body with what its headers say about it. The body's iterator is returned early when decoding fails or is aborted. */
export interface UploadSource {
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  /** Bytes, as declared by the client. */
  readonly contentLength: number | undefined
  readonly body: AsyncIterable<Uint8Array>
}

export interface WireOptions {
  readonly code: 'request_too_large' | 'id_list_too_large'
  readonly bytesMax: number
  readonly signal: AbortSignal
  readonly breather: Breather
}

/**
 * The body as it comes from the wire, in pieces of 256 KB at most. A declared length over the bound is refused before anything is read, and
 * the first byte over it otherwise. Throws `request_aborted` when the client goes away, or the signal's own reason where that is a
 * `StowageError`.
 */
export async function* readWire(source: UploadSource, options: WireOptions): AsyncGenerator<Uint8Array> {
  const { bytesMax, signal, breather } = options
  if ((source.contentLength ?? 0) > bytesMax)
    throw tooLarge(options.code, `the request's body (${source.contentLength} bytes)`, bytesMax)
  const iterator = source.body[Symbol.asyncIterator]()
  let received = 0
  let ended = false
  try {
    for (;;) {
      const step = await nextUnlessAborted(iterator, signal)
      if (step.done === true) {
        ended = true
        return
      }
      received += step.value.length
      if (received > bytesMax) throw tooLarge(options.code, "the request's body", bytesMax)
      for (let at = 0; at < step.value.length; at += CHUNK_BYTES_MAX)
        yield step.value.subarray(at, at + CHUNK_BYTES_MAX)
      await breather.due()
    }
  } finally {
    if (!ended) void iterator.return?.().then(undefined, () => undefined)
  }
}

/** A body whose client is gone may never settle, so the signal wins over it. */
function nextUnlessAborted(
  iterator: AsyncIterator<Uint8Array>,
  signal: AbortSignal,
): Promise<IteratorResult<Uint8Array>> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(aborted(signal.reason))
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    const settled = (): void => signal.removeEventListener('abort', onAbort)
    iterator.next().then(
      (step) => {
        settled()
        resolve(step)
      },
      (cause: unknown) => {
        settled()
        reject(aborted(cause))
      },
    )
  })
}

function aborted(cause: unknown): StowageError {
  if (cause instanceof StowageError) return cause
  return new StowageError('request_aborted', 'the request ended before its body was complete', { cause })
}
