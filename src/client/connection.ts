import { Answer, Attempt } from './answer.ts'
import { answerError } from './errors.ts'
import type { Fetch } from './types.ts'

/** A bearer token, or what gives the one of the moment: it is asked before every request. `undefined` for a service that is open to everybody. */
export type Token = string | (() => string | Promise<string>) | undefined

export interface Call {
  readonly method: 'GET' | 'POST'
  /** Segments of the path below the service's address, not yet encoded. */
  readonly path: readonly string[]
  readonly query?: readonly (readonly [string, string])[]
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | FormData | Blob | ReadableStream<Uint8Array>
  /** Bytes of the body: a slow line gets the time for them. */
  readonly bodyBytes?: number
  readonly signal?: AbortSignal
}

export interface ConnectionOptions {
  readonly url: string | URL
  readonly token: Token
  readonly fetch?: Fetch
  readonly stallTimeoutMs?: number
}

const STALL_TIMEOUT_MS = 60_000
const ERROR_BYTES_MAX = 65_536
/** The slowest line on which an upload is still waited for. */
const SENT_BYTES_PER_MS_MIN = 8

/** Where the service is, and who asks. One call is one request, tried once. */
export class Connection {
  readonly url: string
  readonly #token: Token
  readonly #fetch: Fetch
  readonly #stallTimeoutMs: number

  /** Throws `TypeError` for an address that is not one, `RangeError` for a time that cannot be. */
  constructor(options: ConnectionOptions) {
    const { token, stallTimeoutMs = STALL_TIMEOUT_MS } = options
    if (!(stallTimeoutMs > 0)) throw new RangeError(`stallTimeoutMs is ${stallTimeoutMs}; it must be more than 0`)
    this.url = checkedUrl(options.url)
    this.#token = token
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init))
    this.#stallTimeoutMs = stallTimeoutMs
  }

  /** An answer with a status of success, to be read or cancelled. Throws `ClientError`, and the signal's reason. */
  async request(call: Call): Promise<Answer> {
    const { method, path, query = [], body, bodyBytes = 0, signal } = call
    signal?.throwIfAborted()
    const location = `/${path.map(encodeURIComponent).join('/')}`
    const search = query.length === 0 ? '' : `?${query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
    const headers = await this.#headers(call)
    const attempt = new Attempt(`${method} ${location}`, signal, this.#stallTimeoutMs)
    const response = await attempt.within(
      () => this.#fetch(this.url + location + search, { method, headers, signal: attempt.signal, ...(body === undefined ? {} : bodyInit(body)) }),
      bodyBytes / SENT_BYTES_PER_MS_MIN,
    )
    const answer = new Answer(response, attempt)
    if (response.ok) return answer
    const text = await answer.text(ERROR_BYTES_MAX).catch(() => '')
    signal?.throwIfAborted()
    throw answerError(response, attempt.what, text)
  }

  async #headers({ headers, signal }: Call): Promise<Headers> {
    const all = new Headers(headers)
    const token = typeof this.#token === 'function' ? await this.#token() : this.#token
    if (token !== undefined) all.set('Authorization', `Bearer ${token}`)
    signal?.throwIfAborted()
    return all
  }
}

/** A stream is sent while the answer has not begun (the Fetch standard, `RequestDuplex`). */
function bodyInit(body: NonNullable<Call['body']>): RequestInit {
  return body instanceof ReadableStream ? ({ body, duplex: 'half' } as RequestInit) : { body }
}

function checkedUrl(given: string | URL): string {
  const url = new URL(given)
  if (url.search !== '' || url.hash !== '' || url.username !== '' || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('url must be the http or https address of the service, without a query, a fragment and credentials')
  }
  return url.href.replace(/\/+$/, '')
}
