/** One request of a load client. Its answer is counted and thrown away. */
export interface Exchange {
  readonly method: 'GET' | 'POST' | 'HEAD'
  /** Path and query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** A gzipped JSON array, sent as the only file part of a multipart body. */
  readonly uploadFile?: string
  /** A file that is the whole body; the headers say what it is. */
  readonly bodyFile?: string
  /** Marks this exchange in the report of a job that mixes several kinds. */
  readonly kind?: string
}

/** Work for one load client. */
export interface Job {
  /** The origin of the server, such as `http://127.0.0.1:8642`. */
  readonly origin: string
  /** Connections that send requests at the same time, each one after the other. */
  readonly connections: number
  /** Sent in this order, by whichever connection is free; from the beginning again after the last. */
  readonly exchanges: readonly Exchange[]
  /** Requests in all; as many as there are exchanges by default. */
  readonly total?: number
  /** Begins no further request after this time, even if `total` is not reached. */
  readonly durationMs?: number
  /** The most that each connection reads. Without it, a connection reads as fast as it can. */
  readonly readBytesPerSecondMax?: number
  /** The least time between two requests of one connection. */
  readonly intervalMs?: number
  /** Connects and sends nothing until the job is stopped. */
  readonly idle?: boolean
}

/** The answer to one request. Times are in milliseconds from the moment when the request was sent. */
export interface Timing {
  readonly kind: string
  readonly status: number
  readonly bytes: number
  readonly firstByteMs: number
  readonly totalMs: number
}

export interface Report {
  /** From the first request to the end of the last answer. */
  readonly seconds: number
  /** Bytes of all bodies as they were sent, without the framing of chunks. */
  readonly bytes: number
  readonly timings: readonly Timing[]
  /** Requests that had no complete answer; none after a job that was stopped. */
  readonly failures: readonly string[]
}

export type ToClient = { readonly type: 'run'; readonly job: Job } | { readonly type: 'stop' }
export type FromClient =
  | { readonly type: 'ready' }
  | { readonly type: 'connected' }
  | { readonly type: 'done'; readonly report: Report }
  | { readonly type: 'failed'; readonly message: string }
