import { type Client, createClient } from '../../../client/client.ts'
import { Connection } from '../../../client/http/connection.ts'
import { ClientError } from '../../../client/common/errors.ts'
import { checkPathId, parseJson } from '../../../client/http/remote.ts'
import type { RetryOptions } from '../../../client/http/retry.ts'
import type { Fetch } from '../../../client/common/types.ts'
import type { NewArtifact, NewVersion, RunBackend, RunLease, SignalOptions, TriggeringVersion } from '../run-backend.ts'
import { RUN_STATUS_RANK, type RunFile, type RunReport, type RunStatus } from '../../author/run-data.ts'
import { SecretRedactor } from '../run/secret-redactor.ts'

/** Options of `httpRunBackend`. */
export interface HttpRunBackendOptions {
  /** Replaces the `fetch` of the platform. */
  readonly fetch?: Fetch
  /** How long the server may stay silent. 60,000 by default. */
  readonly stallTimeoutMs?: number
  /** Of the client. */
  readonly retry?: RetryOptions | false
}

interface Request {
  readonly method: 'GET' | 'POST'
  /** Below the project. */
  readonly path: readonly string[]
  readonly json?: unknown
  readonly signal?: AbortSignal | undefined
  readonly idempotencyKey?: string
}

const ANSWER_BYTES_MAX = 1_048_576

/**
 * Reports to a Stowage server, as a run file says. Each call is one request, tried once. Throws `TypeError` for an
 * invalid address, and `invalid_id`.
 */
export function httpRunBackend(runFile: RunFile, options: HttpRunBackendOptions = {}): RunBackend {
  return new HttpRunBackend(runFile, options)
}

class HttpRunBackend implements RunBackend {
  readonly client: Client
  readonly #connection: Connection
  readonly #projectId: string
  readonly #runId: string
  readonly #trigger: { readonly modelId: string; readonly versionId: string } | undefined
  readonly #redactor: SecretRedactor

  constructor(
    { speckleToken: token, automationRunData: run }: RunFile,
    { fetch, stallTimeoutMs, retry }: HttpRunBackendOptions,
  ) {
    const connection = {
      url: run.speckleServerUrl,
      token,
      ...(fetch === undefined ? {} : { fetch }),
      ...(stallTimeoutMs === undefined ? {} : { stallTimeoutMs }),
    }
    this.client = createClient({ ...connection, ...(retry === undefined ? {} : { retry }) })
    this.#connection = new Connection(connection)
    this.#projectId = run.projectId
    this.#runId = run.functionRunId
    this.#trigger = run.triggers[0]?.payload
    this.#redactor = new SecretRedactor([token])
    for (const id of [run.projectId, run.functionRunId]) checkPathId(id)
  }

  async triggeringVersion({ signal }: SignalOptions = {}): Promise<TriggeringVersion> {
    if (this.#trigger === undefined)
      throw new ClientError('not_found', 'nothing triggered this run: its run file names no version')
    const { modelId, versionId } = this.#trigger
    const version = await this.#json({ method: 'GET', path: ['models', modelId, 'versions', versionId], signal })
    return {
      modelId,
      versionId,
      rootObjectId: text(version, 'rootObjectId'),
      message: typeof version.message === 'string' ? version.message : '',
    }
  }

  async report(report: RunReport, { signal }: SignalOptions = {}): Promise<void> {
    await this.#json({ method: 'POST', path: ['runs', this.#runId, 'report'], json: report, signal })
  }

  async createVersion(
    { projectId, modelId, rootObjectId, message, idempotencyKey }: NewVersion,
    { signal }: SignalOptions = {},
  ): Promise<string> {
    return text(
      await this.#json({
        method: 'POST',
        path: ['runs', this.#runId, 'versions'],
        json: { ...(projectId === this.#projectId ? {} : { projectId }), modelId, rootObjectId, message },
        idempotencyKey,
        signal,
      }),
      'id',
    )
  }

  storeArtifact(
    { name, content, sizeBytes, idempotencyKey }: NewArtifact,
    { signal }: SignalOptions = {},
  ): Promise<string> {
    return this.#withoutToken(async () => {
      try {
        const answer = await this.#connection.request({
          method: 'POST',
          path: this.#below(['runs', this.#runId, 'artifacts']),
          query: [['name', name]],
          headers: { 'Content-Type': 'application/octet-stream', 'Idempotency-Key': idempotencyKey },
          body: bodyOf(content),
          bodyBytes: sizeBytes,
          ...(signal === undefined ? {} : { signal }),
        })
        return text(parseJson(await answer.text(ANSWER_BYTES_MAX), answer.what), 'id')
      } catch (error) {
        if (!(error instanceof ClientError) || error.statusCode !== 413) throw error
        throw new ClientError('artifact_too_large', error.message, { statusCode: 413, cause: error })
      }
    })
  }

  async renewLease({ signal }: SignalOptions = {}): Promise<RunLease> {
    const { status, canceled } = await this.#json({
      method: 'POST',
      path: ['runs', this.#runId, 'lease'],
      json: {},
      signal,
    })
    if (typeof status !== 'string' || !Object.hasOwn(RUN_STATUS_RANK, status))
      throw new ClientError('invalid_answer', 'the answer to a lease holds no status of a run')
    return { status: status as RunStatus, canceled: canceled === true }
  }

  #below(path: readonly string[]): readonly string[] {
    return ['api', 'v1', 'projects', this.#projectId, ...path]
  }

  #json({ method, path, json, signal, idempotencyKey }: Request): Promise<Readonly<Record<string, unknown>>> {
    return this.#withoutToken(async () => {
      const body = json === undefined ? undefined : JSON.stringify(json)
      const answer = await this.#connection.request({
        method,
        path: this.#below(path),
        headers: {
          Accept: 'application/json',
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
        },
        ...(body === undefined ? {} : { body, bodyBytes: body.length }),
        ...(signal === undefined ? {} : { signal }),
      })
      const answered = await answer.text(ANSWER_BYTES_MAX)
      return answered === '' ? {} : parseJson(answered, answer.what)
    })
  }

  /** A server, or a proxy in front of it, may repeat the request in its answer; a stack begins with the message. */
  async #withoutToken<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request()
    } catch (error) {
      for (let at: unknown = error; at instanceof Error; at = at.cause) {
        at.message = this.#redactor.text(at.message)
        if (at.stack !== undefined) at.stack = this.#redactor.text(at.stack)
      }
      throw error
    }
  }
}

function bodyOf(content: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = content[Symbol.asyncIterator]()
  return new ReadableStream({
    pull: async (controller) => {
      const next = await iterator.next()
      if (next.done === true) controller.close()
      else controller.enqueue(next.value)
    },
    cancel: async () => void (await iterator.return?.()),
  })
}

function text(answer: Readonly<Record<string, unknown>>, name: string): string {
  const value = answer[name]
  if (typeof value !== 'string') throw new ClientError('invalid_answer', `the answer holds no ${name}`)
  return value
}
