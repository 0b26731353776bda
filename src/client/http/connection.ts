import { Answer, Attempt } from './answer.ts'
import { orAborted } from '../../async/abort.ts'
import { answerError, ClientError, quoted } from '../common/errors.ts'
import type { Fetch } from '../common/types.ts'

/**
 * A bearer token, or a function that returns the current one before every request. `undefined` for a service without
 * authentication.
 */
export type Token = string | (() => string | Promise<string>) | undefined

export interface Call {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE'
  /** Segments of the path below the service's address, not yet encoded. */
  readonly path: readonly string[]
  readonly query?: readonly (readonly [string, string])[]
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | FormData | Blob | ReadableStream<Uint8Array>
  /** Bytes of the body: a slow line gets the time for them. */
  readonly bodyBytes?: number
  readonly signal?: AbortSignal
}

/** The address of the service with its prefix, the token of its bearer scheme, and an optional `fetch`. */
export interface ConnectionOptions {
  /** The address of the service, with its prefix. */
  readonly url: string | URL
  /** The token that every request carries, a function that returns it, or `undefined` for none. */
  readonly token: Token
  /** Replaces the `fetch` of the platform. */
  readonly fetch?: Fetch
  /** Milliseconds without any progress after which a request fails with `timed_out`. 60,000 by default. */
  readonly stallTimeoutMs?: number
}

const STALL_TIMEOUT_MS = 60_000
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** The characters that a header may contain (RFC 9110 section 5.5). */
const SENDABLE = /^[\u0020-\u007e\u0080-\u00ff]*$/
const LOCATION_CHARACTERS_MAX = 200
const ERROR_BYTES_MAX = 65_536
/** The slowest line on which an upload is still waited for. */
const SENT_BYTES_PER_MS_MIN = 8

/** A connection to the service with its credentials. One call is one request, tried once. */
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
    const search =
      query.length === 0 ? '' : `?${query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
    const headers = await this.#headers(call)
    const attempt = new Attempt(`${method} ${location}`, signal, this.#stallTimeoutMs)
    const init: RequestInit = {
      method,
      headers,
      signal: attempt.signal,
      redirect: method === 'GET' || method === 'HEAD' ? 'follow' : 'manual',
      ...(body === undefined ? {} : bodyInit(body)),
    }
    const response = await attempt.within(
      () => this.#fetched(this.url + location + search, init),
      bodyBytes / SENT_BYTES_PER_MS_MIN,
    )
    const answer = new Answer(response, attempt)
    if (response.ok) return answer
    if (response.type === 'opaqueredirect' || REDIRECTS.has(response.status)) {
      answer.cancel()
      throw redirectError(response, attempt.what)
    }
    const text = await answer.text(ERROR_BYTES_MAX).catch(() => '')
    signal?.throwIfAborted()
    throw answerError(response, attempt.what, text)
  }

  /** An answer that comes when nothing waits for it any more is not left open. */
  async #fetched(url: string, init: RequestInit): Promise<Response> {
    const response = await this.#fetch(url, init)
    if (init.signal?.aborted === true) response.body?.cancel().catch(() => undefined)
    return response
  }

  async #headers({ headers, signal }: Call): Promise<Headers> {
    const all = new Headers(headers)
    const asked = typeof this.#token === 'function' ? Promise.resolve(this.#token()) : this.#token
    const token = await (signal === undefined || !(asked instanceof Promise) ? asked : orAborted(asked, signal))
    if (token !== undefined) all.set('Authorization', `Bearer ${checkedToken(token)}`)
    signal?.throwIfAborted()
    return all
  }
}

/** Without the token in the message, which a refusal of the header would contain. */
function checkedToken(token: string): string {
  const text = token.trim()
  if (SENDABLE.test(text)) return text
  throw new ClientError(
    'unauthenticated',
    'the token cannot be sent: it holds line ends, control characters or characters beyond Latin-1',
  )
}

/** After a redirect an upload would become a GET, or its body would go to a host that nobody named. */
function redirectError({ status, headers }: Response, what: string): ClientError {
  const location = headers.get('Location')
  const target = location === null ? 'another address' : quoted(location, LOCATION_CHARACTERS_MAX)
  return new ClientError('http_error', `${what} was redirected to ${target}; use the URL of the service itself`, {
    statusCode: status,
  })
}

/** A stream is sent while the answer has not begun (the Fetch standard, `RequestDuplex`). */
function bodyInit(body: NonNullable<Call['body']>): RequestInit {
  return body instanceof ReadableStream ? ({ body, duplex: 'half' } as RequestInit) : { body }
}

function checkedUrl(given: string | URL): string {
  const url = new URL(given)
  if (
    url.search !== '' ||
    url.hash !== '' ||
    url.username !== '' ||
    url.password !== '' ||
    !/^https?:$/.test(url.protocol)
  ) {
    throw new TypeError(
      'url must be the http or https address of the service, without a query, a fragment and credentials',
    )
  }
  return url.href.replace(/\/+$/, '')
}
