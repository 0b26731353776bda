import type { IncomingMessage } from 'node:http'
import { StowageError } from '../errors.ts'
import { BodyRate } from './body-rate.ts'
import { valuesOf } from './header-values.ts'
import { parseLength, type RequestBody } from './exchange.ts'
import { bodyConsumed, exactBytes, parsedBody, parsedValues } from './parsed-body.ts'
import { waitFor } from './timeout.ts'

/** Set on a request whose client waits for `100 Continue` until that is sent. */
export const AWAITS_CONTINUE: unique symbol = Symbol('stowage.awaitsContinue')

/**
 * Members that hosts and their parsers add: the target before a mount shortened it, the parsed body, and the text or
 * bytes that they parsed.
 */
export type NodeRequest = IncomingMessage & {
  originalUrl?: string
  body?: unknown
  rawBody?: unknown
  [AWAITS_CONTINUE]?: boolean
}

export interface NodeBodyOptions {
  readonly signal: AbortSignal
  readonly stallTimeoutMs: number
  /** 0 by default: no such bound. */
  readonly bodyBytesPerSecondMin?: number
  /** The value that a parser of the host left, if not on the request. */
  readonly left?: unknown
}

/**
 * The body of a Node request. It is read by pulling, and stopping early never destroys it, so the response can still be
 * sent.
 */
export class NodeBody {
  readonly #req: NodeRequest
  readonly #options: NodeBodyOptions
  #bytesRead = 0

  constructor(req: NodeRequest, options: NodeBodyOptions) {
    this.#req = req
    this.#options = options
  }

  /** Bytes that were read so far. */
  get bytesRead(): number {
    return this.#bytesRead
  }

  /** Whether the client is still sending, or about to. A client that waits for `100 Continue` has not begun. */
  get underWay(): boolean {
    const { headers, httpVersionMajor } = this.#req
    const announced =
      httpVersionMajor > 1 ||
      headers['transfer-encoding'] !== undefined ||
      (parseLength(headers['content-length']) ?? 0) > 0
    return announced && !this.#req.complete && !this.#req.destroyed && this.#req[AWAITS_CONTINUE] !== true
  }

  asRequestBody(): RequestBody {
    const { headers } = this.#req
    const length = parseLength(headers['content-length'])
    const sent = headers['content-type']
    const type = sent === undefined ? undefined : valuesOf(this.#req, 'content-type', sent).join(', ')
    if (!this.#consumed()) {
      return {
        type,
        encoding: headers['content-encoding'],
        length,
        bytes: () => this.chunks(),
        values: () => this.chunks(),
      }
    }
    const parsed = parsedBody(this.#options.left ?? this.#req.rawBody ?? this.#req.body, type)
    return {
      type: parsed.type,
      encoding: undefined,
      length,
      bytes: () => exactBytes(parsed),
      values: () => parsedValues(parsed),
    }
  }

  /**
   * The chunks as they arrive. Throws `request_aborted` when the client disconnects or sends nothing for too long, and
   * `body_consumed` when other code has read a part.
   */
  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#req.readableDidRead) throw bodyConsumed()
    yield* this.rest(this.#options.stallTimeoutMs, new BodyRate(this.#options.bodyBytesPerSecondMin ?? 0))
  }

  /** The rest of it, for callers that do not mind a missing part. */
  async *rest(timeoutMs: number, rate?: BodyRate): AsyncGenerator<Uint8Array, void, undefined> {
    const req = this.#req
    for (;;) {
      const chunk = req.read() as Uint8Array | null
      if (chunk !== null) {
        this.#bytesRead += chunk.length
        rate?.came(chunk.length)
        yield chunk
      } else if (req.readableEnded) {
        return
      } else if (req.destroyed) {
        throw new StowageError('request_aborted', 'the connection ended before the body was complete', {
          cause: req.errored,
        })
      } else {
        const beganAtMs = performance.now()
        await waitFor((happened) => subscribe(req, happened), {
          signal: this.#options.signal,
          timeoutMs,
          late: () => new StowageError('request_aborted', `no byte of the body arrived for ${timeoutMs} ms`),
        })
        rate?.waited(performance.now() - beganAtMs)
      }
    }
  }

  #consumed(): boolean {
    return (
      this.#req.readableEnded || (this.#req.readableDidRead && this.#req.complete && this.#req.readableLength === 0)
    )
  }
}

function subscribe(req: IncomingMessage, happened: (error?: Error) => void): () => void {
  const wake = (): void => happened()
  for (const event of ['readable', 'end', 'close', 'error']) req.on(event, wake)
  return () => {
    for (const event of ['readable', 'end', 'close', 'error']) req.off(event, wake)
  }
}
