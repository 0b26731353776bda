import { relayed } from '../async/relay.ts'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import type { StowageError, StowageErrorCode } from '../errors.ts'
import type { PutResult } from '../object/graph-store.ts'
import type { Selection } from '../object/selection.ts'
import type { EventDispatcher } from './event-dispatcher.ts'

/** The number of uploads and downloads under way. */
export interface InFlight {
  uploads: number
  downloads: number
}

export interface RequestTraceOptions {
  readonly events: EventDispatcher
  readonly inFlight: InFlight
  readonly projectId?: string
  readonly environment?: Environment | undefined
  /** Only over HTTP. */
  readonly request?: { readonly requestId: string; readonly method: string }
}

/** Collects the facts of one request, or of one call in process, and reports them in the end. */
export class RequestTrace {
  readonly #options: RequestTraceOptions
  readonly #environment: Environment
  readonly #beganAtMs: number
  #route: string | undefined
  #projectId: string | undefined
  #status = 0
  #code: StowageErrorCode | undefined
  #bytesReceived = 0
  #bytesSent = 0
  #isComplete = false
  #isOver = false
  #stored: PutResult | undefined
  #sent: (Pick<Selection, 'objects' | 'missing'> & { readonly isPlanned: boolean }) | undefined
  #counted: keyof InFlight | undefined

  constructor(options: RequestTraceOptions) {
    this.#options = options
    this.#environment = options.environment ?? REAL_ENVIRONMENT
    this.#beganAtMs = this.#environment.monotonicMs()
    this.#projectId = options.projectId
  }

  /** Its path was understood. */
  routed(route: string, projectId: string | undefined): void {
    this.#route = route
    this.#projectId = projectId
  }

  /** The body of an upload, as it is read. */
  async *receiving(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.#bytesReceived += chunk.length
      yield chunk
    }
  }

  /** An upload is about to be read. */
  storing(): void {
    this.#count('uploads')
  }

  stored(result: PutResult): void {
    this.#stored = result
  }

  selected({ objects, missing, plan }: Pick<Selection, 'objects' | 'missing' | 'plan'>): void {
    this.#count('downloads')
    this.#sent = { objects, missing, isPlanned: plan !== undefined }
  }

  answered(status: number, code?: StowageErrorCode): void {
    this.#status = status
    this.#code = code
  }

  /** The body of the answer, as it is sent. */
  sending(
    body: Uint8Array | AsyncIterable<Uint8Array> | undefined,
    isBodiless: boolean,
  ): Uint8Array | AsyncIterable<Uint8Array> | undefined {
    if (body !== undefined && !(body instanceof Uint8Array) && !isBodiless) return this.counting(body)
    if (body instanceof Uint8Array && !isBodiless) this.#bytesSent += body.length
    this.#isComplete = true
    return body
  }

  counting(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    return relayed(() => body, {
      each: (chunk) => (this.#bytesSent += chunk.length),
      completed: () => (this.#isComplete = true),
    })
  }

  failed(error: StowageError): void {
    this.#options.events.emitError(error, this.#facts)
  }

  /** May be called more than once. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#counted !== undefined) this.#options.inFlight[this.#counted]--
    const durationMs = this.#environment.monotonicMs() - this.#beganAtMs
    this.#tellStored(durationMs)
    this.#tellSent(durationMs)
    this.#tellRequest(durationMs)
  }

  get #facts(): { readonly requestId?: string; readonly projectId?: string } {
    const requestId = this.#options.request?.requestId
    return {
      ...(requestId === undefined ? {} : { requestId }),
      ...(this.#projectId === undefined ? {} : { projectId: this.#projectId }),
    }
  }

  #count(kind: keyof InFlight): void {
    if (this.#counted !== undefined || this.#isOver) return
    this.#counted = kind
    this.#options.inFlight[kind]++
  }

  #tellStored(durationMs: number): void {
    const stored = this.#stored
    if (stored === undefined) return
    const { events } = this.#options
    const { objects, inserted: created, differing, differingIds: ids = [] } = stored
    const facts = { ...this.#facts, projectId: this.#projectId ?? '' }
    events.emit('upload', () => ({ ...facts, objects, created, differing, bytes: this.#bytesReceived, durationMs }))
    if (differing > 0) events.emit('differing', () => ({ ...facts, differing, ids }))
  }

  #tellSent(durationMs: number): void {
    const sent = this.#sent
    const isSent = this.#options.request === undefined || this.#status === 200 || this.#status === 206
    if (sent === undefined || !isSent) return
    this.#options.events.emit('download', () => ({
      ...this.#facts,
      projectId: this.#projectId ?? '',
      ...sent,
      isComplete: this.#isComplete,
      bytes: this.#bytesSent,
      durationMs,
    }))
  }

  #tellRequest(durationMs: number): void {
    const { request, events } = this.#options
    if (request === undefined) return
    events.emit('request', () => ({
      ...request,
      ...this.#facts,
      requestId: request.requestId,
      ...(this.#route === undefined ? {} : { route: this.#route }),
      status: this.#status,
      ...(this.#code === undefined ? {} : { code: this.#code }),
      bytesReceived: this.#bytesReceived,
      bytesSent: this.#bytesSent,
      isComplete: this.#isComplete,
      durationMs,
    }))
  }
}
