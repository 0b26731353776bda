import type { RequestTrace } from '../events/request-trace.ts'
import type { MemoryLease } from '../memory/memory-budget.ts'

/** The decoded values of a path, by the names in the resource's path. */
export type PathParams = Readonly<Record<string, string>>

/** The response of an operation, before the kind of host is known. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | AsyncIterable<Uint8Array>
  /** Bytes of a streamed body, if known before it starts. */
  readonly length?: number
  /** How large its buffers should be at the moment, for streamed bodies that share memory with others. */
  readonly roomBytes?: () => number
  /** Is told that the system has taken a buffer of the body and nobody refers to it any more. */
  readonly sent?: (bytes: Uint8Array) => void
  /** Frees the resources of the response. Called exactly once, whether or not the body was read. */
  readonly release?: () => void
}

/** A request's body. It is not touched until it is read. */
export interface RequestBody {
  /** `Content-Type`, or the type of `parsed` if the host's own parser read the body. */
  readonly type: string | undefined
  /** `Content-Encoding`, unless the host's own parser took it off already. */
  readonly encoding: string | undefined
  /** `Content-Length` if it is a number. */
  readonly length: number | undefined
  /**
   * The bytes as they arrive. Returning early leaves the rest unread. Throws `body_consumed` if a parser of the host
   * left only parsed values.
   */
  bytes(): AsyncIterable<Uint8Array>
  /**
   * The same for a body whose spelling does not matter: values that a parser of the host left are written as JSON
   * again.
   */
  values(): AsyncIterable<Uint8Array>
}

/** One request as the operations see it. */
export interface Exchange<H> {
  readonly method: string
  /** Unchanged, with the prefix, without the query. */
  readonly path: string
  /** Whether a host may have removed the beginning of the path, as `hono.mount` does. */
  readonly isPathCut: boolean
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly params: PathParams
  readonly body: RequestBody
  /** Aborts when the client is gone or the service closes. */
  readonly signal: AbortSignal
  readonly requestId: string
  readonly host: H
  /** Collects the facts that are reported about the request. */
  readonly trace: RequestTrace
  /** The lease of all memory that the request needs. It ends when the response is sent, or the client is gone. */
  readonly memory: MemoryLease
}

/** One endpoint: authorize, decode, ask, encode. */
export type Operation<H> = (exchange: Exchange<H>) => Promise<Answer>

/** The length in a header; `undefined` if it is missing or not a number. */
export function parseLength(header: string | null | undefined): number | undefined {
  return header !== null && header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : undefined
}
