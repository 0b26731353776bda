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

/** How far a download of a graph is. */
export interface GraphProgress {
  /** Objects that were handed on so far. */
  readonly objects: number
  /** Of these, those that came from the client's cache. */
  readonly cached: number
  /** Bytes of the graph's own answer so far, those included that came twice. Objects that are asked for by id do not count. */
  readonly receivedBytes: number
  /** Bytes of the whole answer, where that is known. */
  readonly totalBytes: number | undefined
  /** Bytes of it that a journal had kept from an earlier download, and that were not asked for again. */
  readonly keptBytes: number
  /** Times that a broken download went on where it had stopped. */
  readonly resumes: number
  /** Times that the download began again from the start. */
  readonly restarts: number
}

/** How a graph is downloaded. */
export interface TransferOptions extends CallOptions {
  /** Roots that the client has: `<id>`, or `<id>@<closure>`. Their objects are left out. */
  readonly have?: readonly string[]
  /** Where the texts of what `have` names can be read. With it, what changed may come as what makes it of them, which is far less. */
  readonly bases?: ObjectTexts
  /** Fail with `objects_missing` when anything below the root is not held. */
  readonly strict?: boolean
  /** Take the hash of each object, also of those from a cache; for graphs whose ids are hashes. Throws `integrity_failed`. */
  readonly verifyIds?: boolean
  /** Keeps what comes, so that a later call can go on where this one ended, also in another process. */
  readonly journal?: DownloadJournal
  /**
   * Told what the server says of the answer, before the first object; again when a download starts anew. Where a cache has so much of the graph that there is
   * no such answer, told in the end what there was.
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
 * One root with everything below it, over as many connections as it takes. The compressed bytes are asked for as a file of their own, inflated here and,
 * when a connection breaks, continued at the byte where it broke (RFC 9110 sections 13.1.5 and 14). Where that cannot be, it starts anew and leaves out
 * what was handed on already.
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

  /** The answer from the start, or, where a journal has its beginning and it is still the same, the rest of it. */
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

  /** From that byte on, or, where there is no such byte, from the start: then more was kept than there is. */
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
      if (isArchive(answer)) throw this.#blamed(error)
      return this.#again(error)
    }
  }

  /** What cannot be read of a file that began with what was kept is the fault of that. */
  #blamed(error: unknown): unknown {
    if (this.#progress.keptBytes === 0 || !(error instanceof ClientError) || error.code !== 'invalid_answer')
      return error
    return new ClientError('integrity_failed', `${error.message}; the kept part of an earlier download is damaged`, {
      cause: error,
      isRetryable: true,
    })
  }

  /** A text that broke: there is nothing to continue. */
  async #again(error: unknown): Promise<Restart> {
    this.#takesDeltas = false
    await this.#attempts.failed(error)
    return new Restart(await this.#ask())
  }

  /** The bytes of a file over as many connections as it takes. Throws `Restart` when the file is another one by then. */
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

  /** What comes before the first answer, where that is the rest of something. Returns how much it was. */
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

/** The bytes of the whole file, where they are known. */
function lengthOf(answer: Answer): number | undefined {
  if (answer.headers.has('Content-Encoding')) return undefined
  return answer.status === 206 ? rangeOf(answer)?.length : answer.count('Content-Length')
}

/** Where a part starts, and how long the whole is (RFC 9110 section 14.4). */
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

/** Where the server says how many objects it sends, that many must have come. */
function checkCounts(answer: Answer, count: number): void {
  const announced = answer.count('Stowage-Objects')
  if (announced === undefined || announced === count) return
  throw new ClientError('integrity_failed', `${answer.what} returned ${count} of ${announced} objects`, {
    isRetryable: true,
  })
}
