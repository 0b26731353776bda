import type { RequestTrace } from '../events/request-trace.ts'
import type { MemoryLease } from '../memory/memory-budget.ts'

/** What a path names, decoded, by the names in the resource's path. */
export type PathParams = Readonly<Record<string, string>>

/** What an operation answers with, before it is known through which kind of host it leaves. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | AsyncIterable<Uint8Array>
  /** Bytes of a streamed body where they are known before it starts. */
  readonly length?: number
  /** How large its buffers should be at the moment, for streamed bodies that share memory with others. */
  readonly roomBytes?: () => number
  /** Frees what the answer holds. Called exactly once, whether or not the body was read. */
  readonly release?: () => void
}

/** A request's body. It is not touched until somebody asks for it. */
export interface RequestBody {
  /** `Content-Type`, or what describes `parsed` when the host's own parser read the body. */
  readonly type: string | undefined
  /** `Content-Encoding`, unless the host's own parser took it off already. */
  readonly encoding: string | undefined
  /** `Content-Length` if it is a number. */
  readonly length: number | undefined
  /** The bytes as they arrive. Returning early leaves the rest unread. Throws `body_consumed` where a parser of the host left only parsed values. */
  bytes(): AsyncIterable<Uint8Array>
  /** The same for a body whose spelling does not matter: values that a parser of the host left are written as JSON again. */
  values(): AsyncIterable<Uint8Array>
}

/** One request as the operations see it. */
export interface Exchange<H> {
  readonly method: string
  /** As it came, with the prefix, without the query. */
  readonly path: string
  /** Whether a host may have cut off the beginning of the path, as `hono.mount` does. */
  readonly isPathCut: boolean
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly params: PathParams
  readonly body: RequestBody
  /** Aborts when the client is gone or the service closes. */
  readonly signal: AbortSignal
  readonly requestId: string
  readonly host: H
  /** Where operations note what is to be told of the request. */
  readonly trace: RequestTrace
  /** Whatever the request makes the server hold is leased here first. Given back when the answer is out, or the client gone. */
  readonly memory: MemoryLease
}

/** One endpoint: authorize, decode, ask, encode. */
export type Operation<H> = (exchange: Exchange<H>) => Promise<Answer>

/** The length as a header gives it; `undefined` for none and for what is not a number. */
export function parseLength(header: string | null | undefined): number | undefined {
  return header !== null && header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : undefined
}
