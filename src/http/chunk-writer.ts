import { OutgoingMessage, type ServerResponse } from 'node:http'
import { StowageError } from '../errors.ts'
import { Timeout } from './timeout.ts'

/** A connection whose write failed is closed within this time. */
const CLOSING_MS = 50

export interface ChunkWriterOptions {
  readonly res: ServerResponse
  readonly signal: AbortSignal
  readonly stallTimeoutMs: number
  /** Is told that the system has taken a chunk and nobody refers to it any more. */
  readonly sent?: ((chunk: Uint8Array) => void) | undefined
}

interface Writing {
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/**
 * Writes the chunks of a streamed body, one at a time. It listens once for the whole body to what can end it: a long one
 * has tens of thousands of chunks.
 */
export class ChunkWriter {
  /**
   * Resolves when the system has taken the last chunk. Rejects when the client is gone or reads nothing for too long,
   * and with the signal's reason.
   */
  taken: Promise<void> = Promise.resolve()
  readonly #options: ChunkWriterOptions
  readonly #timeout: Timeout
  #writing: Writing | undefined
  #failure: Error | undefined

  constructor(options: ChunkWriterOptions) {
    const { res, signal, stallTimeoutMs } = options
    this.#options = options
    this.#timeout = new Timeout(stallTimeoutMs, () => {
      if (this.#writing !== undefined) this.#fail(tooSlow(stallTimeoutMs))
    })
    res.once('close', this.#onClose)
    signal.addEventListener('abort', this.#onAbort)
    if (signal.aborted) this.#onAbort()
  }

  /** Call it when the chunk before was taken. */
  write(chunk: Uint8Array): void {
    const { res } = this.#options
    const sent = isNodesOwn(res) ? this.#options.sent : undefined
    this.taken = new Promise((resolve, reject) => {
      if (this.#failure === undefined) this.#writing = { resolve, reject }
      else reject(this.#failure)
    })
    // The error is thrown where the promise is awaited; until then it must not count as unhandled.
    this.taken.catch(() => undefined)
    this.#timeout.start()
    res.write(chunk, (error) => {
      // The response closes a moment after its write failed, and then it is known that the client left.
      if (error) setTimeout(this.#onClose, CLOSING_MS)
      else this.#wasTaken(chunk, sent)
    })
  }

  close(): void {
    this.#timeout.cancel()
    this.#options.res.off('close', this.#onClose)
    this.#options.signal.removeEventListener('abort', this.#onAbort)
  }

  #wasTaken(chunk: Uint8Array, sent: ((chunk: Uint8Array) => void) | undefined): void {
    const writing = this.#writing
    if (writing === undefined) return
    this.#writing = undefined
    sent?.(chunk)
    writing.resolve()
  }

  readonly #onClose = (): void => this.#fail(clientGone())

  readonly #onAbort = (): void => this.#fail(this.#options.signal.reason as Error)

  #fail(error: Error): void {
    this.#failure ??= error
    this.#writing?.reject(this.#failure)
    this.#writing = undefined
  }
}

/**
 * A host can wrap the `write` of a response, and a monitoring tool that of all responses. Either may keep what is
 * written. Node's own method is the one that responses inherit from `OutgoingMessage`.
 */
function isNodesOwn(res: ServerResponse): boolean {
  return Object.is(Reflect.get(res, 'write'), Reflect.get(OutgoingMessage.prototype, 'write'))
}

export function tooSlow(stallTimeoutMs: number): StowageError {
  return new StowageError('request_aborted', `the client read nothing for ${stallTimeoutMs} ms`)
}

export function clientGone(): StowageError {
  return new StowageError('request_aborted', 'the client disconnected before the response was complete')
}
