import { setTimeout as delay } from 'node:timers/promises'
import { ClientError } from '../client/common/errors.ts'
import type { Answer } from '../client/http/answer.ts'
import type { Call } from '../client/http/connection.ts'
import { parseJson, type Remote } from '../client/http/remote.ts'
import { listedStore } from './list-projects.ts'

/** A part of everything that a project holds. */
export interface ObjectLines {
  /** Lines `<id> TAB <json> LF`. */
  readonly lines: Buffer
  readonly objects: number
  /** The start of the next part. */
  readonly next: string
  /** The end of the run, with which it can go on from `next` later. */
  readonly end: string
}

/** A record on its way from one server to another. */
export interface MovedRecord {
  readonly kind: string
  readonly value: Readonly<Record<string, unknown>>
}

type Json = Readonly<Record<string, unknown>>

const PAGE_ITEMS = 100
const ANSWER_BYTES_MAX = 64 * 1_048_576
/** An upload that was committed is applied within this time, or its server is gone. */
const APPLIED_MS_MAX = 60_000
const APPLIED_INTERVAL_MS = 100

/**
 * One project on a Stowage server, with its operations for export and import beyond the contract. Calls reject with
 * `ClientError`.
 */
export class RemoteProject {
  readonly remote: Remote
  readonly signal: AbortSignal | undefined

  constructor(remote: Remote, signal?: AbortSignal) {
    this.remote = remote
    this.signal = signal
  }

  /**
   * Everything that the project held when the first page was asked for, in the order in which it came; each object
   * once. With `endOfRun` an earlier run goes on.
   */
  async *objectPages(after: string | null, endOfRun?: string): AsyncGenerator<ObjectLines> {
    let place = after
    let end = endOfRun
    let waitedMs = 0
    for (;;) {
      const page = await this.#objectPage(place, end)
      if (page === undefined) return
      end ??= page.end
      // The last page tells where the next run begins, though it be empty.
      if (page.objects > 0 || page.next === end) yield page
      const isSame = page.next === place
      place = page.next
      if (place === end) return
      if (!isSame) continue
      if ((waitedMs += APPLIED_INTERVAL_MS) > APPLIED_MS_MAX)
        throw new ClientError(
          'http_error',
          'the server is still storing an upload, and makes no progress; check that all servers on its storage run',
          { isRetryable: true },
        )
      await delay(APPLIED_INTERVAL_MS, undefined, { signal: this.signal })
    }
  }

  /** Items of a list of the server, in pages. */
  list(...path: readonly string[]): AsyncGenerator<readonly Json[]> {
    return this.#pages(path)
  }

  /** Automations with their secrets: sealed for the recipient of a public key, or as the server keeps them. */
  automationsWithSecrets(recipient: string | undefined): AsyncGenerator<readonly Json[]> {
    return this.#pages(['export', 'automations'], recipient === undefined ? [] : [['sealedFor', recipient]])
  }

  async *#pages(
    path: readonly string[],
    parameters: readonly [string, string][] = [],
  ): AsyncGenerator<readonly Json[]> {
    let cursor: string | null = null
    do {
      const query: [string, string][] = [...parameters, ['limit', String(PAGE_ITEMS)]]
      if (cursor !== null) query.push(['cursor', cursor])
      const { items, cursor: next } = await this.#json({ path, query })
      if (!Array.isArray(items))
        throw new ClientError('invalid_answer', `the response of ${path.join('/')} has no items`)
      yield items as readonly Json[]
      cursor = typeof next === 'string' ? next : null
    } while (cursor !== null)
  }

  get(...path: readonly string[]): Promise<Json> {
    return this.#json({ path })
  }

  /** The time by the clock of the server. */
  async timeText(): Promise<string> {
    const answer = await this.#request({ path: ['models'], query: [['limit', '1']] })
    answer.cancel()
    const date = Date.parse(answer.headers.get('Date') ?? '')
    return new Date(Number.isNaN(date) ? Date.now() : date).toISOString()
  }

  /**
   * Whether the server has something of the project. Throws `conflict` if `after` is given and is not a place in its
   * history.
   */
  async exists(after: string | null = null): Promise<boolean> {
    try {
      ;(await this.#request({ path: ['export', 'objects'], ...(after && { query: [['after', after]] }) })).cancel()
      return true
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== 'not_found') throw error
    }
    // It may have models alone, or automations or pins; the list of all projects takes longest.
    if (await this.#hasModels()) return true
    return (await listedStore(this.remote, this.signal)).projects.includes(this.remote.projectId)
  }

  /** Whether the server has models, versions and runs. */
  async hasRecords(): Promise<boolean> {
    return this.#has(['models'])
  }

  /** Whether the server can give out everything that a project holds. */
  async hasPages(): Promise<boolean> {
    return this.#has(['export', 'objects'])
  }

  /** Whether the server takes records under their own ids. Needs the right to write. */
  async takesRecords(): Promise<boolean> {
    return this.#has(['import', 'marks', '0'.repeat(32)])
  }

  /** The bytes of an artifact. Not retried: the reader starts again. */
  async *artifact(id: string): AsyncGenerator<Uint8Array> {
    yield* (await this.#request({ path: ['artifacts', id] })).chunks()
  }

  /** Sends records, in this order. Taking one again changes nothing. */
  putRecords(records: readonly MovedRecord[]): Promise<Json> {
    const body = JSON.stringify(records)
    return this.#json({ path: ['import', 'records'], method: 'POST', body, type: 'application/json' })
  }

  async putArtifact(
    { id, runId, name, sha256 }: { readonly [K in 'id' | 'runId' | 'name' | 'sha256']: string },
    open: () => ReadableStream<Uint8Array>,
  ): Promise<void> {
    await this.#json({
      path: ['import', 'artifacts', id],
      query: [
        ['runId', runId],
        ['name', name],
        ['sha256', sha256],
      ],
      method: 'POST',
      type: 'application/octet-stream',
      open,
    })
  }

  async #objectPage(
    after: string | null,
    endOfRun: string | undefined,
  ): Promise<(ObjectLines & { readonly end: string }) | undefined> {
    const query: [string, string][] = after === null ? [] : [['after', after]]
    if (endOfRun !== undefined) query.push(['end', endOfRun])
    try {
      return await this.remote.retry.run(this.signal, async () => {
        const answer = await this.#once({ path: ['export', 'objects'], query })
        const [next, end] = [answer.headers.get('Stowage-Next'), answer.headers.get('Stowage-End')]
        if (next === null || end === null) {
          answer.cancel()
          throw new ClientError('invalid_answer', `${answer.what} does not contain the end of its page`)
        }
        const chunks: Uint8Array[] = []
        for await (const chunk of answer.chunks()) chunks.push(chunk)
        return { lines: Buffer.concat(chunks), objects: answer.count('Stowage-Objects') ?? 0, next, end }
      })
    } catch (error) {
      // Nothing was ever uploaded.
      if (error instanceof ClientError && error.code === 'not_found') return undefined
      throw error
    }
  }

  async #hasModels(): Promise<boolean> {
    if (!(await this.hasRecords())) return false
    const { items } = await this.#json({ path: ['models'], query: [['limit', '1']] })
    return Array.isArray(items) && items.length > 0
  }

  async #has(path: readonly string[]): Promise<boolean> {
    try {
      ;(await this.#request({ path })).cancel()
      return true
    } catch (error) {
      if (!(error instanceof ClientError) || error.statusCode !== 404) throw error
      return error.code === 'not_found'
    }
  }

  async #json(asked: Asked): Promise<Json> {
    return this.remote.retry.run(this.signal, async () => {
      const answer = await this.#once(asked)
      return parseJson(await answer.text(ANSWER_BYTES_MAX), answer.what)
    })
  }

  #request(asked: Asked): Promise<Answer> {
    return this.remote.retry.run(this.signal, () => this.#once(asked))
  }

  #once({ path, query, method = 'GET', body, open, type }: Asked): Promise<Answer> {
    const { connection, projectId } = this.remote
    return connection.request({
      method,
      path: ['api', 'v1', 'projects', projectId, ...path],
      ...(query === undefined ? {} : { query }),
      ...(type === undefined ? {} : { headers: { 'Content-Type': type } }),
      ...(body === undefined ? {} : { body, bodyBytes: body.length }),
      ...(open === undefined ? {} : { body: open() }),
      ...(this.signal === undefined ? {} : { signal: this.signal }),
    })
  }
}

interface Asked {
  readonly path: readonly string[]
  readonly query?: NonNullable<Call['query']>
  readonly method?: 'GET' | 'POST'
  readonly body?: string
  /** Opens the body once more for each try. */
  readonly open?: () => ReadableStream<Uint8Array>
  readonly type?: string
}
