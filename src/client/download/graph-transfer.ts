import type { Answer } from '../http/answer.ts'
import { checkContentIds } from '../common/content-id.ts'
import { ClientError } from '../common/errors.ts'
import { type GraphInfo, infoOf } from './graph-info.ts'
import { inflate } from '../common/gzip.ts'
import type { DownloadJournal, PartialDownload } from './journal.ts'
import { SeenIds } from '../common/seen-ids.ts'
import { type ObjectTexts, applyDeltas } from './deltas.ts'
import { decodeLines } from './lines.ts'
import { checkPathId, checkWellFormed, type Remote } from '../http/remote.ts'
import type { Attempts } from '../http/retry.ts'
import type { CallOptions, ObjectText } from '../common/types.ts'

/** The progress of a graph download. */
export interface GraphProgress {
  /** Objects that were handed on so far. */
  readonly objects: number
  /** How many of these came from the client's cache. */
  readonly cached: number
  /**
   * Received bytes of the graph's own response so far, including repeated ones. Objects that are requested by id do not
   * count.
   */
  readonly receivedBytes: number
  /** Bytes of the whole response, if known. */
  readonly totalBytes: number | undefined
  /** Bytes of it that a journal had kept from an earlier download, and that were not asked for again. */
  readonly keptBytes: number
  /** How often a broken download was resumed. */
  readonly resumes: number
  /** Times that the download began again from the start. */
  readonly restarts: number
}

/** Options for downloading a graph. */
export interface TransferOptions extends CallOptions {
  /** Roots that the client has: `<id>`, or `<id>@<closure>`. Their objects are left out. */
  readonly have?: readonly string[]
  /**
   * Provides the texts of the objects that `have` names. With it, changed objects may arrive as deltas, which are far
   * smaller.
   */
  readonly bases?: ObjectTexts
  /** Fail with `objects_missing` when anything below the root is not held. */
  readonly strict?: boolean
  /**
   * Take the hash of each object, also of those from a cache; for graphs whose ids are hashes. Throws
   * `integrity_failed`.
   */
  readonly verifyIds?: boolean
  /** Keeps the received bytes, so that a later call can continue where this one ended, also in another process. */
  readonly journal?: DownloadJournal
  /**
   * Receives the server's facts about the response before the first object, and again when a download starts anew. If a
   * cache has so much of the graph that there is no such response, it receives the totals at the end.
   */
  readonly onInfo?: (info: GraphInfo) => void
  /** Told after each batch of objects. */
  readonly onProgress?: (progress: GraphProgress) => void
}

/** The server's answer is another one than that which was begun. */
class Restart extends Error {
  readonly answer: Answer

  constructor(answer: Answer) {
    super('the answer changed')
    this.answer = answer
  }
}

/**
 * One root with everything below it, over as many connections as needed. The client requests the compressed bytes as a
 * file, inflates them here and, when a connection breaks, continues at the byte where it broke (RFC 9110 sections
 * 13.1.5 and 14). If that is impossible, it starts again and omits objects that were already passed on.
 */
export class GraphTransfer {
  readonly #remote: Remote
  readonly #root: string
  readonly #options: TransferOptions
  readonly #attempts: Attempts
  readonly #seen = new SeenIds()
  readonly #progress = {
    objects: 0,
    cached: 0,
    receivedBytes: 0,
    totalBytes: undefined as number | undefined,
    keptBytes: 0,
    resumes: 0,
    restarts: 0,
  }
  readonly #journal: DownloadJournal | undefined
  /** Until something breaks: an answer with deltas cannot be continued, so the next one is to be without. */
  #takesDeltas: boolean
  #kept: PartialDownload | undefined
  #answer: Answer | undefined

  /** Throws `invalid_id`. */
  constructor(remote: Remote, root: string, options: TransferOptions) {
    checkPathId(root)
    for (const known of options.have ?? []) checkWellFormed(known)
    this.#remote = remote
    this.#root = root
    this.#options = options
    this.#journal = options.journal
    this.#takesDeltas = options.bases !== undefined && (options.have ?? []).length > 0
    this.#attempts = remote.retry.begin(options.signal)
  }

  /** The objects, each once, the root first. Throws `not_found`. Returning early frees the connection. */
  async *batches(): AsyncGenerator<readonly ObjectText[]> {
    try {
      let answer = await this.#first()
      for (;;) {
        const restart = yield* this.#untilRestart(answer)
        if (restart === undefined) return
        this.#progress.restarts += 1
        answer = restart.answer
      }
    } finally {
      this.#answer?.cancel()
    }
  }

  /** The response from the start, or, if a journal has its beginning and it is unchanged, the rest of it. */
  async #first(): Promise<Answer> {
    const kept = await this.#journal?.load()
    if (kept === undefined || kept.bytes < 2) return this.#ask()
    this.#takesDeltas = false
    // The last byte is asked for again: a range behind the end would be an error.
    const at = kept.bytes - 1
    const answer = await this.#askFrom(at, kept.etag)
    const range = rangeOf(answer)
    if (range?.start !== at || strongTag(answer) !== kept.etag || !isArchive(answer)) return this.#whole(answer)
    this.#kept = kept
    return answer
  }

  /** From that byte on, or, if there is no such byte, from the start: then more was kept than exists. */
  async #askFrom(at: number, etag: string): Promise<Answer> {
    try {
      return await this.#ask({ Range: `bytes=${at}-`, 'If-Range': etag })
    } catch (error) {
      if (error instanceof ClientError && error.code === 'range_not_satisfiable') return this.#ask()
      throw error
    }
  }

  /** Everything of one answer that was not handed on before. */
  async *#untilRestart(answer: Answer): AsyncGenerator<readonly ObjectText[], Restart | undefined> {
    this.#options.onInfo?.(infoOf(answer))
    let count = 0
    try {
      for await (const lines of decodeLines(
        isArchive(answer) ? inflate(this.#resumedChunks(answer)) : this.#chunks(answer),
        answer.what,
      )) {
        this.#options.signal?.throwIfAborted()
        count += lines.length
        for await (const batch of this.#undone(lines)) {
          if (this.#options.verifyIds === true) await checkContentIds(batch)
          const fresh = batch.filter(({ id }) => this.#seen.add(id))
          if (fresh.length === 0) continue
          this.#attempts.progressed()
          this.#progress.objects += fresh.length
          this.#options.onProgress?.({ ...this.#progress })
          yield fresh
        }
      }
      checkCounts(answer, count)
      return undefined
    } catch (error) {
      if (error instanceof Restart) return error
      // A file of known length was continued for as long as that helped.
      if (isArchive(answer) && lengthOf(answer) !== undefined) throw this.#blamed(error)
      return this.#again(error)
    }
  }

  /** If a file that begins with kept bytes cannot be read, the kept bytes are to blame. */
  #blamed(error: unknown): unknown {
    if (this.#progress.keptBytes === 0 || !(error instanceof ClientError) || error.code !== 'invalid_answer')
      return error
    return new ClientError('integrity_failed', `${error.message}; the kept part of an earlier download is damaged`, {
      cause: error,
      isRetryable: true,
    })
  }

  /** A text, or a file of unknown length, that broke or ended early: there is nothing to continue. */
  async #again(error: unknown): Promise<Restart> {
    this.#takesDeltas = false
    await this.#attempts.failed(error)
    return new Restart(await this.#ask())
  }

  /**
   * The bytes of a file over as many connections as it takes. Throws `Restart` when the file is another one by then.
   */
  async *#resumedChunks(first: Answer): AsyncGenerator<Uint8Array> {
    const etag = strongTag(first)
    const length = lengthOf(first)
    this.#progress.totalBytes = length
    let at = yield* this.#keptChunks(first, etag)
    const journal = etag === undefined ? undefined : this.#journal
    for (let answer = first; ;) {
      try {
        for await (const chunk of this.#chunks(answer)) {
          if (answer !== first) this.#attempts.progressed()
          await journal?.write(at, chunk)
          at += chunk.length
          yield chunk
        }
        if (length === undefined || at === length) return
        throw new ClientError('network_failed', `${first.what} ended after ${at} of ${length} bytes`, {
          isRetryable: true,
        })
      } catch (error) {
        if (at === length) return
        this.#takesDeltas = false
        await this.#attempts.failed(error)
      }
      const isResumable = etag !== undefined && length !== undefined
      answer = await this.#ask(isResumable ? { Range: `bytes=${at}-`, 'If-Range': etag } : {})
      if (!isResumable || !continuesAt(answer, at, length, etag)) throw new Restart(await this.#whole(answer))
      this.#progress.resumes += 1
    }
  }

  /** The kept bytes before the first response, if that response is the rest of a file. Returns their number. */
  async *#keptChunks(first: Answer, etag: string | undefined): AsyncGenerator<Uint8Array, number> {
    const kept = this.#kept
    this.#kept = undefined
    if (kept === undefined) {
      if (etag !== undefined) await this.#journal?.begin(etag)
      return 0
    }
    const { start = 0 } = rangeOf(first) ?? {}
    let at = 0
    for await (const chunk of kept.read(start)) {
      at += chunk.length
      this.#progress.keptBytes = at
      yield chunk
    }
    if (at === start) return at
    throw new ClientError('integrity_failed', `of an earlier download ${at} bytes are there instead of ${start}`)
  }

  /** A part of something else is of no use. */
  async #whole(answer: Answer): Promise<Answer> {
    if (answer.status !== 206) return answer
    answer.cancel()
    return this.#ask()
  }

  async *#chunks(answer: Answer): AsyncGenerator<Uint8Array> {
    for await (const chunk of answer.chunks()) {
      this.#progress.receivedBytes += chunk.length
      yield chunk
    }
  }

  async #ask(headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const { signal, have = [], strict = false } = this.#options
    const query: [string, string][] = [
      ['archive', 'gzip'],
      ...have.map((root): [string, string] => ['have', root]),
      ...(strict ? [['strict', ''] as [string, string]] : []),
      ...(this.#takesDeltas ? [['delta', ''] as [string, string]] : []),
    ]
    for (;;) {
      try {
        this.#answer = await this.#remote.connection.request({
          method: 'GET',
          path: ['objects', this.#remote.projectId, this.#root],
          query,
          headers: { Accept: 'text/plain', ...headers },
          signal,
        })
        return this.#answer
      } catch (error) {
        await this.#attempts.failed(error)
      }
    }
  }

  async *#undone(lines: readonly ObjectText[]): AsyncGenerator<readonly ObjectText[]> {
    const { bases, signal } = this.#options
    if (bases === undefined) yield lines
    else yield* applyDeltas(lines, bases, this.#remote, signal)
  }
}

function isArchive(answer: Answer): boolean {
  if (answer.hasType('application/gzip')) return true
  answer.checkType('text/plain')
  return false
}

function strongTag(answer: Answer): string | undefined {
  const etag = answer.headers.get('ETag')
  return etag === null || etag.startsWith('W/') ? undefined : etag
}

/** The bytes of the whole file, if known. */
function lengthOf(answer: Answer): number | undefined {
  if (answer.headers.has('Content-Encoding')) return undefined
  return answer.status === 206 ? rangeOf(answer)?.length : answer.count('Content-Length')
}

/** The start of a part, and the length of the whole (RFC 9110 section 14.4). */
function rangeOf(answer: Answer): { readonly start: number; readonly length: number } | undefined {
  const [, start, length] =
    /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15})$/.exec(answer.headers.get('Content-Range') ?? '') ?? []
  return answer.status === 206 && start !== undefined ? { start: Number(start), length: Number(length) } : undefined
}

function continuesAt(answer: Answer, at: number, length: number, etag: string): boolean {
  return (
    answer.status === 206 &&
    answer.headers.get('Content-Range') === `bytes ${at}-${length - 1}/${length}` &&
    answer.headers.get('ETag') === etag
  )
}

/** If the server announces a number of objects, exactly that number must have arrived. */
function checkCounts(answer: Answer, count: number): void {
  const announced = answer.count('Stowage-Objects')
  if (announced === undefined || announced === count) return
  throw new ClientError('integrity_failed', `${answer.what} returned ${count} of ${announced} objects`, {
    isRetryable: true,
  })
}
